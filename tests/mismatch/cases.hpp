// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Programs in which one process does something else than the others, and what each must be told.
/// On loopback all of them run in one program (op/mismatch.loopback.cpp), under mpiexec each in a
/// job of its own (mismatch/mismatch.cpp).
///
///     for (const Deviation& d : deviations) d.run(part);     // part.odd: this process deviates
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tessera.hpp>

namespace mismatch {

using namespace tessera;

struct rows : Axis<> {};
struct columns : Axis<> {};
using Grid = Mesh<rows, columns>;

/// One process's part of a program.
struct Part {
  std::shared_ptr<Transport> world;
  MeshSizes<Grid> size;
  bool odd = false;  ///< this process deviates
  Check check = Check::communicating;
  Shared shared = Shared::automatic;
  Wait wait = Wait::automatic;

  ProcessMesh<Grid> mesh() const {
    MeshOptions options;
    options.check = check;
    options.shared = shared;
    options.wait = wait;
    return make_mesh<Grid>(world, size, options);
  }
};

inline const Sharding& split_rows() {
  static const Sharding s = named_sharding<Grid, P<rows, _>>();
  return s;
}
inline const Sharding& split_columns() {
  static const Sharding s = named_sharding<Grid, P<columns, _>>();
  return s;
}
inline const Sharding& whole(int rank) {
  static const Sharding all[] = {Sharding::replicated(0), Sharding::replicated(1),
                                 Sharding::replicated(2), Sharding::replicated(3)};
  return all[rank];
}

/// Returns a tensor of zeros.
inline DynamicTensor zeros_of(const ProcessMesh<Grid>& mesh, DType type, const Extents& extents,
                              const Sharding& sharding) {
  const TensorCore core = TensorCore::make(mesh.core(), {type, extents, sharding});
  const std::vector<char> zero(
      static_cast<std::size_t>(core.local_size() * static_cast<Index>(size_of(type))), 0);
  detail::copy_from_host(core.data(), zero.data(), static_cast<Index>(zero.size()));
  return DynamicTensor(core);
}
inline DynamicTensor matrix(const ProcessMesh<Grid>& mesh, DType type = DType::f32,
                            const Extents& extents = {6, 6},
                            const Sharding& sharding = split_rows()) {
  return zeros_of(mesh, type, extents, sharding);
}

/// Functions that hold numbers.
struct TimesPlus {
  float factor, more;
  KOKKOS_FUNCTION float operator()(float x) const { return factor * x + more; }
};
struct Raised {
  int power;
  template <class Told> void numbers(Told& told) const { told.add(power); }
  KOKKOS_FUNCTION float operator()(float x) const { return power == 2 ? x * x : x * x * x; }
};

/// `regular` and `odd` are how the message names what the two sorts of processes do.
struct Deviation {
  std::string_view name;
  void (*run)(const Part& part);
  std::string_view regular;
  std::string_view odd;
};

/// Different operators, or the same one on other operands: each process is told both calls.
inline const Deviation different_calls[] = {
    {"einsum or sum",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       if (p.odd)
         reduce<Sum>("ij->i", x);
       else
         einsum("ik,kj->ij", x, x);
     },
     "einsum ik,kj->ij of float 6x6", "sum ij->i of float 6x6"},
    {"sum or max",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       if (p.odd)
         reduce<Max>("ij->i", x);
       else
         reduce<Sum>("ij->i", x);
     },
     "sum ij->i of", "max ij->i of"},
    {"sum or mean",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       if (p.odd)
         reduce<Mean>("ij->i", x);
       else
         reduce<Sum>("ij->i", x);
     },
     "sum ij->i of", "mean ij->i of"},
    {"one function or another",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       if (p.odd)
         map_dynamic<float>("ij->ij", fn::Tanh{}, split_rows(), x);
       else
         map_dynamic<float>("ij->ij", fn::Exp{}, split_rows(), x);
     },
     "Exp of float 6x6", "Tanh of float 6x6"},
    {"the larger or the smaller",
     [](const Part& p) {
       const auto x = zeros<ShardedTensor<double, Grid, P<rows, columns>>>(p.mesh(), 5, 7);
       if (p.odd)
         minimum(x, x);
       else
         maximum(x, x);
     },
     "Maximum of double 5x7", "Minimum of double 5x7"},
    {"reshard or transpose",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       if (p.odd)
         transpose("ij->ji", x);
       else
         reshard(x, split_columns());
     },
     "reshard of float 6x6", "transpose ij->ji of float 6x6"},
    {"the equation",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       einsum(p.odd ? "ik,kj->ji" : "ik,kj->ij", x, x);
     },
     "einsum ik,kj->ij of", "einsum ik,kj->ji of"},
    {"the letters of the equation",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       einsum(p.odd ? "ik,jk->ij" : "ik,kj->ij", x, x);
     },
     "einsum ik,kj->ij of", "einsum ik,jk->ij of"},
    {"the spec of the result",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       einsum("ik,kj->ij", x, x, p.odd ? whole(2) : split_rows());
     },
     "to P<rows,_>", "to P<_,_>"},
    {"the spec that is asked for",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       reshard(x, p.odd ? whole(2) : split_columns());
     },
     "to P<columns,_>", "to P<_,_>"},
    {"the spec of an operand",
     [](const Part& p) {
       const auto x = matrix(p.mesh(), DType::f32, {6, 6}, p.odd ? split_columns() : split_rows());
       reduce<Sum>("ij->j", x, whole(1));
     },
     "float 6x6 P<rows,_>", "float 6x6 P<columns,_>"},
    {"float or double",
     [](const Part& p) {
       const auto x = matrix(p.mesh(), p.odd ? DType::f64 : DType::f32);
       reduce<Sum>("ij->j", x, whole(1));
     },
     "of float 6x6", "of double 6x6"},
    {"int32 or int64",
     [](const Part& p) {
       const auto x = matrix(p.mesh(), p.odd ? DType::i64 : DType::i32);
       reduce<Max>("ij->j", x, whole(1));
     },
     "of int32 6x6", "of int64 6x6"},
    {"float or int32, of one size",
     [](const Part& p) {
       const auto x = matrix(p.mesh(), p.odd ? DType::i32 : DType::f32);
       reshard(x, whole(2));
     },
     "of float 6x6", "of int32 6x6"},
    {"the extents",
     [](const Part& p) {
       const auto x = matrix(p.mesh(), DType::f32, {6, p.odd ? 7 : 6});
       reduce<Sum>("ij->i", x);
     },
     "of float 6x6", "of float 6x7"},
    {"extents with blocks alike",
     [](const Part& p) {  // the last block alone differs
       const auto x = matrix(p.mesh(), DType::f32, {p.odd ? 11 : 12, 3});
       reshard(x, whole(2));
     },
     "of float 12x3", "of float 11x3"},
    {"an empty tensor",
     [](const Part& p) {
       const auto x = matrix(p.mesh(), DType::f32, {p.odd ? 0 : 6, 3});
       reduce<Sum>("ij->j", x, whole(1));
     },
     "of float 6x3", "of float 0x3"},
    {"the number of dimensions",
     [](const Part& p) {
       const auto mesh = p.mesh();
       if (p.odd)
         reduce<Sum>("ijk->", zeros_of(mesh, DType::f32, {6, 6, 2}, whole(3)));
       else
         reduce<Sum>("ij->", zeros_of(mesh, DType::f32, {6, 6}, whole(2)));
     },
     "of float 6x6", "of float 6x6x2"},
    {"the order of operators",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       if (p.odd) reshard(x, whole(2));
       reduce<Max>("ij->j", x, whole(1));
       if (!p.odd) reshard(x, whole(2));
     },
     "max ij->j of", "reshard of"},
    {"an operator more",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       reduce<Sum>("ij->j", x, whole(1));
       if (p.odd) reduce<Min>("ij->j", x, whole(1));
       reshard(x, whole(2));
     },
     "reshard of", "min ij->j of"},
    {"an operator less",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       if (!p.odd) reduce<Min>("ij->j", x, whole(1));
       reshard(x, whole(2));
     },
     "min ij->j of", "reshard of"},
    {"values gathered in between",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       if (p.odd) to_host<float>(x);
       reduce<Sum>("ij->j", x, whole(1));
     },
     "sum ij->j of", "to_host of float 6x6"},
    {"a branch on the data of a block",
     [](const Part& p) {
       auto x = matrix(p.mesh());
       if (p.odd) x.data<float>()[0] = 1;
       if (x.data<float>()[0] > 0.5f) x = reshard(x, split_columns());
       einsum("ik,kj->ij", x, x, whole(2));
     },
     "einsum ik,kj->ij of", "reshard of"},
    {"local work only",
     [](const Part& p) {  // no process communicates, and still they must agree
       const auto x = matrix(p.mesh());
       if (p.odd)
         reduce<Min>("ij->i", x);
       else
         reduce<Max>("ij->i", x);
     },
     "max ij->i of", "min ij->i of"},
    {"the scalar",
     [](const Part& p) {
       const auto x = zeros<ShardedTensor<float, Grid, P<rows, _>>>(p.mesh(), 6, 6);
       (void)maximum(x, p.odd ? 3.0f : 0.5f);
     },
     " with 0.5", " with 3"},
    {"a number of the user's function",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       map_dynamic<float>("ij->ij", TimesPlus{2, p.odd ? 3.0f : 4.0f}, split_rows(), x);
     },
     " with bytes 4080000040000000", " with bytes 4040000040000000"},
    {"a number that the user's function names",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       map_dynamic<float>("ij->ij", Raised{p.odd ? 3 : 2}, split_rows(), x);
     },
     " with 2", " with 3"},
    {"what comes in from outside",
     [](const Part& p) {
       const auto x = matrix(p.mesh());
       shift(x, 1, 0, p.odd ? 3 : 2, split_rows());
     },
     " with bytes 0000000040000000", " with bytes 0000000040400000"},
    {"a number of which a tensor was made",
     [](const Part& p) {
       const auto x =
           full<ShardedTensor<float, Grid, P<rows, _>>>(p.mesh(), {6, 6}, p.odd ? 3.0f : 2.0f);
       reduce<Sum>("ij->j", DynamicTensor(x), whole(1));
     },
     "sum ij->j of", "sum ij->j of"},
    {"the seed of random numbers",
     [](const Part& p) {
       const auto x =
           random_normal<ShardedTensor<float, Grid, P<rows, _>>>(p.mesh(), {6, 6}, p.odd ? 3 : 2);
       reduce<Sum>("ij->j", DynamicTensor(x), whole(1));
     },
     "sum ij->j of", "sum ij->j of"},
    {"the ends of a line",
     [](const Part& p) {
       const auto x =
           linspace<ShardedTensor<std::int32_t, Grid, P<rows>>>(p.mesh(), 0, p.odd ? 101 : 100, 5);
       reduce<Sum>("i->", DynamicTensor(x), whole(0));
     },
     "sum i-> of", "sum i-> of"},
    {"what a halo tensor is made of",
     [](const Part& p) {
       const auto x = make_halo(DynamicMesh(p.mesh()), {6, 6}, Sharding{{0}, {}},
                                Halo{{1, 1, Boundary::constant}, {}}, p.odd ? 2.0 : 1.0);
       x.exchange();
       reduce<Sum>("ij->", DynamicTensor(x), whole(0));
     },
     "halo_exchange of double 6x6", "halo_exchange of double 6x6"},
};

/// Meshes that are not alike: found when they are made, at every check level.
inline void make(const Part& p, const MeshSizes<Grid>& size, const MeshOptions& options) {
  make_mesh<Grid>(p.world, size, options);
}
inline const Deviation different_meshes[] = {
    {"the sizes of the axes",
     [](const Part& p) {
       const MeshShape s = p.size.shape;
       make(p, p.odd ? sizes<Grid>(s[0] * s[1], 1) : sizes<Grid>(1, s[0] * s[1]), {});
     },
     "rows=1 x columns=", "columns=1 "},
    {"the check level",
     [](const Part& p) {
       MeshOptions options;
       options.check = p.odd ? Check::heavy : Check::normal;
       make(p, p.size, options);
     },
     "check normal", "check heavy"},
    {"the machine model",
     [](const Part& p) {
       MeshOptions options;
       if (p.odd) options.machine.message_ps += 1;
       make(p, p.size, options);
     },
     "the machine model and the device assignment count too",
     "the machine model and the device assignment count too"},
    {"the workspace limit",
     [](const Part& p) {
       MeshOptions options;
       options.workspace_limit = p.odd ? 1000 : 2000;
       make(p, p.size, options);
     },
     "workspace limit 2000", "workspace limit 1000"},
    {"shared memory",
     [](const Part& p) {
       MeshOptions options;
       options.shared = p.odd ? Shared::on : Shared::off;
       make(p, p.size, options);
     },
     "shared memory off", "shared memory on"},
    {"the arena",
     [](const Part& p) {
       MeshOptions options;
       options.arena_bytes = p.odd ? 1 << 20 : 0;
       make(p, p.size, options);
     },
     "arena 0", "arena 1048576"},
};

}  // namespace mismatch
