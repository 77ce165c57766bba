// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Operators on tensors that are stored with their halos: sampled on every mesh as those on others.
#include <doctest/doctest.h>

#include <mutex>

#include "op/cases.hpp"
#include "support/every_mesh.hpp"
#include "support/few_meshes.hpp"

using namespace tessera;
using namespace support;

TEST_CASE("operators take what lies within a halo where it lies, as their plans say") {
  on_every_mesh_so_often(
      "operators within halos", 23, 3,
      [](const MeshShape& shape) { return (shape.processes() > 4 ? 150 : 250) / share; },
      [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
        return some_case(mesh, random, true);
      });
}

namespace {
/// Runs `body`, one operator; returns its plan, or what is wrong with the arena's peak.
template <class Body>
std::pair<std::shared_ptr<const Plan>, std::string> watched(const std::shared_ptr<MeshCore>& mesh,
                                                            const Body& body) {
  const Index held = mesh->arena().in_use();
  mesh->arena().reset_peak();
  Recording recording(mesh);
  body();
  const Index peak = mesh->arena().peak() - held;
  const Program program = recording.take();
  if (program.entries().size() != 1) return {nullptr, "not one operator"};
  const auto plan = program.entries()[0].plan;
  if (peak != plan->peak_bytes)
    return {plan, "the arena's peak is " + std::to_string(peak) + "\n" + describe(*plan)};
  return {plan, ""};
}
int count(const Plan& plan, StepKind kind) {
  int n = 0;
  for (const Step& step : plan.steps) n += step.kind == kind;
  return n;
}

/// Writes into tensors that lie within halos, and into others, and compares.
template <class T> class Destinations {
 public:
  Destinations(std::shared_ptr<MeshCore> mesh, Random& random)
      : mesh_(std::move(mesh)), random_(random) {}
  std::string run() {
    const int rank = 1 + random_.below(3);
    for (int d = 0; d < rank; ++d)
      extents_.push_back(random_.of<Index>({1, 2, 3, 4, 5, 7, 8, random_.chance(30) ? 0 : 6}));
    // The destination is an operand too, or the operands are others.
    for (const bool own : {true, false}) {
      const DynamicTensor x = input(extents_, sharding(rank), 3), y = input(extents_, split_, 4);
      const std::string wrong = both(
          y,
          [&](const DynamicTensor& to, const DynamicTensor& from) {
            if (own)
              map_into<T>(letters("a,a->a"), to, Weighted{}, to, from);
            else
              map_into<T>(letters("a,a->a"), to, Weighted{}, x, from);
          },
          x, true);
      if (!wrong.empty()) return "map_into: " + wrong;
    }
    const DynamicTensor x = input(extents_, sharding(rank), 5);
    const DynamicTensor y = input(extents_, sharding(rank), 6);
    std::string wrong = both(
        y, [&](const DynamicTensor& to, const DynamicTensor& from) { reshard_into(to, from); }, x,
        false);
    if (!wrong.empty()) return "reshard_into: " + wrong;
    const bool subtracts = random_.chance(50);
    wrong = both(
        y,
        [&](DynamicTensor to, const DynamicTensor& from) {
          if (subtracts)
            to -= from;
          else
            axpy(3, from, to);
        },
        x, true);
    if (!wrong.empty()) return "in place: " + wrong;
    if (rank < 2) return "";
    Extents turned = extents_;
    std::swap(turned[0], turned[rank - 1]);
    const DynamicTensor z = input(turned, sharding(rank), 7);
    wrong = both(
        y,
        [&](const DynamicTensor& to, const DynamicTensor& from) {
          transpose_into(rank == 2 ? "ab->ba" : "abc->cba", to, from);
        },
        z, false);
    if (!wrong.empty()) return "transpose_into: " + wrong;
    wrong = both(
        input({extents_[0]}, sharding(1), 8),
        [&](const DynamicTensor& to, const DynamicTensor& from) {
          reduce_into<As<Sum, T>>(rank == 2 ? "ab->a" : "abc->a", to, from);
        },
        x, false);
    if (!wrong.empty()) return "reduce_into: " + wrong;
    if (rank != 2) return "";
    const DynamicTensor w = input({extents_[1], 5}, sharding(2), 10);
    wrong = both(
        input({extents_[0], 5}, sharding(2), 9),
        [&](const DynamicTensor& to, const DynamicTensor& from) {
          einsum_into("ik,kj->ij", to, from, w);
        },
        x, false);
    if (!wrong.empty()) return "einsum_into: " + wrong;
    wrong = both(
        input({extents_[0], 5}, sharding(2), 9),
        [&](const DynamicTensor& to, const DynamicTensor& from) {
          einsum_into("ik,kj->ij", to, from, w, T(2), T(3));
        },
        x, false);
    return wrong.empty() ? "" : "einsum_into with factors: " + wrong;
  }

 private:
  std::string letters(std::string text) const {
    std::string all;
    for (const char c : text)
      all += c == 'a' ? std::string("abc").substr(0, static_cast<std::size_t>(extents_.size()))
                      : std::string(1, c);
    return all;
  }
  Sharding sharding(int rank) {
    split_ = some_sharding(random_, rank, mesh_->shape().rank());
    return split_;
  }
  DynamicTensor input(const Extents& extents, const Sharding& s, std::uint64_t seed) const {
    return make_input<T>(mesh_, {dtype_of<T>, extents, s}, seed);
  }
  /// into(to, from) with destination and operand by themselves, and within halos.
  template <class Into>
  std::string both(const DynamicTensor& to, const Into& into, const DynamicTensor& from,
                   bool no_copy) {
    const DynamicTensor plain = reshard_copy(to);
    into(plain, from);
    WithinHalos within(random_);
    const DynamicTensor operand = within.put(from);
    const DynamicTensor destination = within.put_destination(to);
    const auto [plan, wrong] = watched(mesh_, [&] { into(destination, operand); });
    if (!wrong.empty()) return wrong + within.text();
    if (no_copy && count(*plan, StepKind::copy) > 0 && plan->communications() == 0)
      return "a copy\n" + describe(*plan) + within.text();
    if (const std::string text = within.around(); !text.empty())
      return text + "\n" + describe(*plan) + within.text();
    const std::string text = difference(to_host<T>(destination).values, to_host<T>(plain).values,
                                        std::is_floating_point_v<T> ? 1e-3 : 0);
    return text.empty() ? "" : text + "\n" + describe(*plan) + within.text();
  }
  DynamicTensor reshard_copy(const DynamicTensor& x) const {
    const DynamicTensor y(TensorCore::make(mesh_, x.desc()));
    reshard_into(y, x);
    return y;
  }

  std::shared_ptr<MeshCore> mesh_;
  Random& random_;
  Extents extents_;
  Sharding split_;
};
}  // namespace

TEST_CASE("operators write into what lies within a halo, and nothing around it") {
  on_every_mesh_so_often(
      "destinations within halos", 24, 3,
      [](const MeshShape& shape) { return (shape.processes() > 4 ? 20 : 40) / share; },
      [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
        const DType type = random.of<DType>({DType::f32, DType::f64, DType::i32, DType::i64});
        return with_sampled_type(type, [&](auto element) {
          return Destinations<decltype(element)>(mesh, random).run();
        });
      });
}

namespace {
struct Ramp {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return static_cast<double>(i.linear() + 1);
  }
};
}  // namespace

TEST_CASE("a product reads what lies within a halo beside a dimension of extent 1") {
  struct Product {
    const char* equation;
    Extents x, w;
  };
  const Product products[] = {{"ab,b->a", {2, 1}, {1}},
                              {"abu,bc->acu", {3, 2, 1}, {2, 4}},
                              {"abu,bcu->ac", {3, 2, 1}, {2, 4, 1}},
                              {"abu,cbu->cau", {3, 2, 1}, {4, 2, 1}},
                              {"uab,bc->uac", {1, 3, 2}, {2, 4}}};
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 1));
    for (const Product& p : products)
      for (const bool split : {false, true}) {
        Sharding s = Sharding::replicated(p.x.size());
        if (split) s[p.x.size() - 2] = AxisList{0};
        const auto x = from_function<double>(mesh, p.x, s, Ramp{});
        const auto w = from_function<double>(mesh, p.w, Sharding::replicated(p.w.size()), Ramp{});
        Halo rim(p.x.size(), HaloDim{1, 1, Boundary::periodic});
        const DynamicTensor within = halo_exchange(x, rim);
        const auto expected = to_host<double>(einsum(p.equation, x, w)).values;
        const auto got = to_host<double>(einsum(p.equation, within, w)).values;
        CHECK_MESSAGE(got == expected, p.equation);
      }
  });
}
