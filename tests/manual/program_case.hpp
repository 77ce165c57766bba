// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Random functions in manual mode over `model`, and the same in automatic mode, where what varies
/// is one tensor with a leading dimension for `model`: they return the same, and so do their
/// gradients; the same bits, where no step adds more than two numbers. Used on loopback and under
/// MPI.
///
///     std::string wrong = support::manual_case(world, random, 4);
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/manual.hpp>
#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"
#include "support/grid.hpp"

namespace support {
using namespace tessera;

template <class... D> using InGrid = ShardedTensor<double, Grid, P<D...>>;
template <class... D> using EqualBlock = ShardedTensor<double, ManualMesh<Grid, model>, P<D...>>;
template <class... D>
using VaryingBlock = ShardedTensor<double, Manual<Grid, ManualAxes<model>, Varies<model>>, P<D...>>;

/// One step: a kind, and the numbers of the values that it reads.
struct ManualStep {
  int kind, a, b, by;
};
inline constexpr int manual_steps = 19;
/// The kinds that add no more than two numbers, and whose gradients by what varies do neither where
/// nothing that varies is read more than twice.
inline constexpr int exact_steps[] = {0, 1, 2, 3, 9, 10, 12, 13, 14, 15, 17, 18};

/// What a process has at each step: (s, s) matrices, equal or varying. `at` walks both forms.
template <class E, class V> struct ManualPool {
  std::vector<E> equal;
  std::vector<V> varying;
  const E& e(int i) const { return equal[static_cast<std::size_t>(i) % equal.size()]; }
  const V& v(int i) const { return varying[static_cast<std::size_t>(i) % varying.size()]; }
};

/// The manual form.
struct InManual {
  using E = EqualBlock<_, data>;
  using V = VaryingBlock<_, data>;

  template <class X> static auto home(const X& x) { return reshard<P<_, data>>(x); }
  static void step(const ManualStep& s, ManualPool<E, V>& pool) {
    const E &e = pool.e(s.a), &f = pool.e(s.b);
    const V &v = pool.v(s.a), &w = pool.v(s.b);
    const auto keep_v = [&](const V& made) { pool.varying.push_back(made); };
    const auto keep_e = [&](const E& made) { pool.equal.push_back(made); };
    switch (s.kind) {
      case 0:
        return keep_v(v + w);
      case 1:
        return keep_v(v * f);
      case 2:
        return keep_e(e * f);
      case 3:
        return keep_v(e - w);
      case 4:
        return keep_v(sin(home(einsum<"ij,jk->ik">(v, w))));
      case 5:
        return keep_v(sin(home(einsum<"ij,jk->ik">(e, w))));
      case 6:
        return keep_v(sin(home(einsum<"ij,kj->ik">(v, f))));
      case 7:
        return keep_e(sin(home(einsum<"ij,jk->ik">(e, f))));
      case 8:
        return keep_e(sin(all_reduce_over<model>(v)));
      case 9: {
        const auto all = roll<0>(all_gather_over<model, 0>(v), s.by);
        return keep_v(own_block<model, 0>(all) * w);
      }
      case 10:
        return keep_v(own_block<model, 0>(all_gather_over<model, 0>(v) * 0.5));
      case 11: {
        const auto rows = reduce_scatter_over<model, 0>(v);
        const auto numbered = rows * (cast<double>(axis_index<model>(v)) + 1.0);
        return keep_e(sin(all_gather_over<model, 0>(numbered)));
      }
      case 12: {
        const auto turned = roll<1>(all_to_all_over<model, 0, 1>(v), s.by);
        return keep_v(all_to_all_over<model, 1, 0>(turned));
      }
      case 13:
        return keep_v(permute_over<model, Shift<1>>(v) * f);
      case 14:
        return keep_v(permute_over<model, Shift<-1>>(v) + e);
      case 15:
        return keep_v(w * (cast<double>(axis_index<model>(w)) - 0.5));
      case 16:
        return keep_e(
            home(einsum<"pij,pij->ij">(all_gather_over<model>(v), all_gather_over<model>(w))));
      case 17:
        return keep_e(e + equal_by_promise<model>(varying<model>(f)));
      default:
        return keep_v(home(reshard<P<data, _>>(v) * reshard<P<data, _>>(varying<model>(e))));
    }
  }
  static auto loss(const ManualPool<E, V>& pool) {
    const auto varies = pool.v(-1 + static_cast<int>(pool.varying.size()));
    return sum<"ij->", P<>>(all_reduce_over<model>(varies * varies)) +
           sum<"ij->", P<>>(pool.e(-1 + static_cast<int>(pool.equal.size())));
  }
};

/// The automatic form: a value that varies is (p, s, s), split over model.
struct InAutomatic {
  using E = InGrid<_, data>;
  using V = InGrid<model, _, data>;

  static V home(const DynamicTensor& x) {
    return as<V>(reshard(x, named_sharding<Grid, P<model, _, data>>()));
  }
  static V wide(const E& e, int p) {
    return einsum<"p,ij->pij", P<model, _, data>>(
        ones<InGrid<model>>(ProcessMesh<Grid>(e.core().mesh()), p), e);
  }
  static V numbered(const V& like, double add) {
    const auto mesh = ProcessMesh<Grid>(like.core().mesh());
    const auto place = iota<ShardedTensor<std::int64_t, Grid, P<model>>>(mesh, {like.extent(0)});
    return einsum<"p,pij->pij", P<model, _, data>>(cast<double>(place) + add, like);
  }
  static void step(const ManualStep& s, ManualPool<E, V>& pool) {
    const E &e = pool.e(s.a), &f = pool.e(s.b);
    const V &v = pool.v(s.a), &w = pool.v(s.b);
    const Index p = v.extent(0), n = v.extent(1);
    const auto keep_v = [&](const V& made) { pool.varying.push_back(made); };
    const auto keep_e = [&](const E& made) { pool.equal.push_back(made); };
    const auto of = [&](const E& x) { return wide(x, static_cast<int>(p)); };
    switch (s.kind) {
      case 0:
        return keep_v(v + w);
      case 1:
        return keep_v(v * of(f));
      case 2:
        return keep_e(e * f);
      case 3:
        return keep_v(of(e) - w);
      case 4:
        return keep_v(sin(einsum<"pij,pjk->pik", P<model, _, data>>(v, w)));
      case 5:
        return keep_v(sin(einsum<"pij,pjk->pik", P<model, _, data>>(of(e), w)));
      case 6:
        return keep_v(sin(einsum<"pij,kj->pik", P<model, _, data>>(v, f)));
      case 7:
        return keep_e(sin(einsum<"ij,jk->ik", P<_, data>>(e, f)));
      case 8:
        return keep_e(sin(sum<"pij->ij", P<_, data>>(v)));
      case 9: {
        const DynamicTensor flat = reshape(DynamicTensor(v), {p * n, n});
        return keep_v(home(reshape(roll(flat, s.by, 0), {p, n, n})) * w);
      }
      case 10:
        return keep_v(v * 0.5);
      case 11: {
        const E all = sum<"pij->ij", P<_, data>>(v);
        const V shares = home(reshape(DynamicTensor(all), {p, n / p, n}));
        const DynamicTensor flat = reshape(DynamicTensor(numbered(shares, 1.0)), {n, n});
        return keep_e(sin(as<E>(reshard(flat, named_sharding<Grid, P<_, data>>()))));
      }
      case 12: {
        const DynamicTensor turned = reshape(transpose("pij->ipj", DynamicTensor(v)), {n, p * n});
        const DynamicTensor rolled = reshape(roll(turned, s.by, 1), {n, p, n});
        return keep_v(home(transpose("ipj->pij", rolled)));
      }
      case 13:
        return keep_v(roll<0>(v, 1) * of(f));
      case 14:
        return keep_v(roll<0>(v, -1) + of(e));
      case 15:
        return keep_v(numbered(w, -0.5));
      case 16:
        return keep_e(einsum<"pij,pij->ij", P<_, data>>(v, w));
      case 17:
        return keep_e(e + f);
      default:
        return keep_v(v * of(e));
    }
  }
  static auto loss(const ManualPool<E, V>& pool) {
    const auto varies = pool.v(-1 + static_cast<int>(pool.varying.size()));
    return sum(varies * varies) + sum(pool.e(-1 + static_cast<int>(pool.equal.size())));
  }
};

/// Whole numbers' sines: bounded, and different everywhere.
struct Sines {
  double first;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    return Kokkos::sin(first + 1.7 * static_cast<double>(i[0]) + 0.9 * static_cast<double>(i[1]));
  }
};

template <class Host> std::string apart(const Host& mine, const Host& other, const char* what) {
  double greatest = 1, most = 0;
  for (std::size_t i = 0; i < other.values.size(); ++i) {
    greatest = std::max(greatest, std::fabs(other.values[i]));
    most = std::max(most, std::fabs(mine.values[i] - other.values[i]));
    if (!std::isfinite(mine.values[i]) || !std::isfinite(other.values[i]))
      return std::string(what) + " is not finite";
  }
  return most <= 1e-12 * greatest
             ? ""
             : std::string(what) + " differs by " + std::to_string(most / greatest * 1e12) + "e-12";
}

/// The same where the bits are to be equal.
template <class Host, class Other>
std::string other_bits(const Host& mine, const Other& other, const char* what) {
  const auto bits = [](const auto& host) {
    std::vector<std::uint64_t> all;
    for (const double x : host.values) all.push_back(std::bit_cast<std::uint64_t>(x));
    return all;
  };
  return bits(mine) == bits(other) ? "" : std::string(what) + " has other bits";
}

/// A mesh data x model, by itself or as a part of one of more axes.
struct SomeGrid {
  std::shared_ptr<MeshCore> whole;
  ProcessMesh<Grid> mesh;
  std::string text;
};
namespace fixed {
struct stage : Axis<> {};
struct replica : Axis<> {};
}  // namespace fixed

/// Returns one of all processes of `world`, or of those at some coordinates of other axes, which
/// stand before, between and behind these two.
inline SomeGrid some_grid(const std::shared_ptr<Transport>& world, Random& random,
                          const MeshOptions& options) {
  using namespace fixed;
  const int kind = random.chance(40) ? 0 : 1 + random.below(5), size = world->size();
  const int s = kind == 0 ? 1 : some_divisor(random, size),
            r = kind < 4 ? 1 : some_divisor(random, size / s);
  const int left = size / s / r, m = some_divisor(random, left), d = left / m;
  const int i = random.below(s), j = random.below(r);
  const std::string text = std::to_string(d) + "x" + std::to_string(m);
  const auto of_part = [&](const auto& whole, const ProcessMesh<Grid>& part) {
    return SomeGrid{whole.core(), part, text + " of " + whole.core()->to_string()};
  };
  const auto whole = [&](auto mesh, auto... sizes_of) {
    using M = typename decltype(mesh)::type;
    return make_mesh<M>(world, sizes<M>(sizes_of...), options);
  };
  switch (kind) {
    case 0: {
      const auto mesh = whole(std::type_identity<Grid>{}, d, m);
      return {mesh.core(), mesh, text};
    }
    case 1: {
      const auto mesh = whole(std::type_identity<Mesh<stage, data, model>>{}, s, d, m);
      return of_part(mesh, mesh.part<stage>(i));
    }
    case 2: {
      const auto mesh = whole(std::type_identity<Mesh<data, stage, model>>{}, d, s, m);
      return of_part(mesh, mesh.part<stage>(i));
    }
    case 3: {
      const auto mesh = whole(std::type_identity<Mesh<data, model, stage>>{}, d, m, s);
      return of_part(mesh, mesh.part<stage>(i));
    }
    default: {
      const auto mesh = whole(std::type_identity<Mesh<stage, data, replica, model>>{}, s, d, r, m);
      return kind == 4 ? of_part(mesh, mesh.part<stage, replica>(i, j))
                       : of_part(mesh, mesh.part<replica>(j).part<stage>(i));
    }
  }
}

/// What is run in both forms.
struct ManualProgram {
  Index n;  ///< ragged over data, or empty on some
  std::vector<ManualStep> steps;
  std::string text;
};
inline ManualProgram some_manual_program(const SomeGrid& on, Random& random, bool exact = false) {
  ManualProgram program{on.mesh.size<model>() * (1 + random.below(3)), {}, ""};
  for (int i = 2 + random.below(7); i > 0; --i)
    program.steps.push_back(
        {exact ? exact_steps[random.below(static_cast<int>(std::size(exact_steps)))]
               : random.below(manual_steps),
         random.below(9), random.below(9), random.below(5)});
  program.text = "n " + std::to_string(program.n) + " on " + on.text + ":";
  for (const ManualStep& s : program.steps)
    program.text += " " + std::to_string(s.kind) + "(" + std::to_string(s.a) + "," +
                    std::to_string(s.b) + "," + std::to_string(s.by) + ")";
  return program;
}

/// How often what varies is read, by these kinds and by the loss: the most of all values.
inline int most_readers(const std::vector<ManualStep>& steps) {
  std::vector<int> readers{0};
  for (const ManualStep& s : steps) {
    const auto read = [&](int i) { ++readers[static_cast<std::size_t>(i) % readers.size()]; };
    const auto is = [&](std::initializer_list<int> kinds) {
      return std::find(kinds.begin(), kinds.end(), s.kind) != kinds.end();
    };
    if (is({0, 1, 9, 10, 12, 13, 14, 18})) read(s.a);
    if (is({0, 3, 9, 15})) read(s.b);
    if (!is({2, 17})) readers.push_back(0);
  }
  readers.back() += 2;
  return *std::max_element(readers.begin(), readers.end());
}

/// Runs some functions of random steps, each in both forms. Processes that have no part in the mesh
/// call them too, or do not.
inline std::string manual_case(const std::shared_ptr<Transport>& world, Random& random, int count) {
  MeshOptions options;
  options.check = Check::communicating;
  const SomeGrid on = some_grid(world, random, options);
  const ProcessMesh<Grid>& mesh = on.mesh;
  const Index p = mesh.size<model>();
  for (int k = 0; k < count; ++k) {
    const bool exact = k % 2 == 0;
    const ManualProgram program = some_manual_program(on, random, exact);
    const Index n = program.n;
    const bool all_call = random.chance(50);
    if (!all_call && !mesh.takes_part()) continue;
    const auto x = from_function<InGrid<model, data>>(mesh, {p * n, n}, Sines{0.3});
    const auto w = from_function<InGrid<_, data>>(mesh, {n, n}, Sines{1.1});
    // The loss, and the last values of both kinds.
    const auto in_manual = [&](const InGrid<model, data>& a, const InGrid<_, data>& b) {
      return manual<model>([&](const VaryingBlock<_, data>& v, const EqualBlock<_, data>& e) {
        ManualPool<InManual::E, InManual::V> pool{{e}, {v}};
        for (const ManualStep& s : program.steps) InManual::step(s, pool);
        return std::tuple(InManual::loss(pool), along<0, model>(pool.varying.back()),
                          pool.equal.back());
      })(a, b);
    };
    const auto in_automatic = [&](const InGrid<model, data>& a, const InGrid<_, data>& b) {
      ManualPool<InAutomatic::E, InAutomatic::V> pool{
          {b}, {InAutomatic::home(reshape(DynamicTensor(a), {p, n, n}))}};
      for (const ManualStep& s : program.steps) InAutomatic::step(s, pool);
      return std::tuple(InAutomatic::loss(pool), pool.varying.back(), pool.equal.back());
    };
    const auto loss_of = [](const auto& form) {
      return [&form](const InGrid<model, data>& a, const InGrid<_, data>& b) {
        return std::get<0>(form(a, b));
      };
    };
    const auto [mine, by_mine] = value_and_grad<0, 1>(loss_of(in_manual))(x, w);
    const auto ends_mine = in_manual(x, w);
    if (!mesh.takes_part()) continue;
    const auto [other, by_other] = value_and_grad<0, 1>(loss_of(in_automatic))(x, w);
    const auto ends_other = in_automatic(x, w);
    const double a = value(mine), b = value(other);
    if (!(std::fabs(a - b) <= 1e-12 * std::max(1.0, std::fabs(b))))
      return program.text + " value " + std::to_string(a) + ", not " + std::to_string(b);
    const auto varying = to_host(std::get<0>(by_mine)),
               varying_other = to_host(std::get<0>(by_other));
    std::vector<std::string> texts{
        apart(varying, varying_other, "the gradient by what varies"),
        apart(to_host(std::get<1>(by_mine)), to_host(std::get<1>(by_other)),
              "the gradient by what is equal")};
    if (exact) {
      if (most_readers(program.steps) <= 2)
        texts.push_back(other_bits(varying, varying_other, "the gradient by what varies"));
      texts.push_back(other_bits(to_host(std::get<1>(ends_mine)), to_host(std::get<1>(ends_other)),
                                 "the last varying value"));
      texts.push_back(other_bits(to_host(std::get<2>(ends_mine)), to_host(std::get<2>(ends_other)),
                                 "the last equal value"));
    }
    for (const std::string& text : texts)
      if (!text.empty()) return program.text + " " + text;
  }
  return "";
}

}  // namespace support
