// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: within
// Arg-max, running joins and deterministic sums on every mesh of up to 8 processes: values, plan,
// ledger, arena, bits.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <mutex>

#include "op/row_cases.hpp"
#include "support/every_mesh.hpp"

using namespace tessera;
using namespace support;

namespace {

/// Numbers whose sums round: large and small ones that nearly cancel, and in some rows infinities.
template <class T> T hard_element(std::uint64_t seed, Index i) {
  Random random(seed * 0x1'0000'0001u + static_cast<std::uint64_t>(i));
  const double x = static_cast<double>(random.below(2'000'001) - 1'000'000) / 977;
  const int spread = sizeof(T) == 2 ? 3 : sizeof(T) == 8 && !ComplexElement<T> ? 60 : 20;
  const double value = std::ldexp(x, random.below(2 * spread) - spread);
  if constexpr (ComplexElement<T>)
    return T(static_cast<typename T::value_type>(value),
             static_cast<typename T::value_type>(-3 * value));
  else
    return static_cast<T>(value);
}

template <class T>
DynamicTensor hard_tensor(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                          std::uint64_t seed) {
  use_element<T>();
  const TensorCore core = TensorCore::make(mesh, desc);
  const Extents strides = detail::row_major_strides(desc.extents);
  const Box box = core.box();
  std::vector<T> values;
  for_each_index(box.extents(), [&](const Extents& index) {
    Index i = 0;
    for (int d = 0; d < index.size(); ++d) i += (box[d].lo + index[d]) * strides[d];
    values.push_back(hard_element<T>(seed, i));
  });
  tessera::detail::copy_from_host(core.data(), values.data(),
                                  static_cast<Index>(values.size() * sizeof(T)));
  return DynamicTensor(core);
}

/// Sums a few tensors on every mesh, under many specs; the first mesh (of one process) says what
/// the bits are.
template <class T> void same_bits() {
  struct Task {
    const char* equation;
    Extents extents;
  };
  const std::vector<Task> tasks{{"a->", {4099}},
                                {"ab->a", {5, 311}},
                                {"ab->b", {523, 3}},
                                {"abc->ca", {3, 97, 7}},
                                {"ab->", {2, 20001}}};
  std::vector<std::vector<T>> bits(2 * tasks.size());
  std::mutex mutex;
  long compared = 0, wrong = 0;
  std::uint64_t number = 0;
  for (const MeshShape& shape : meshes(8, 2)) {
    ++number;
    run_loopback(shape.processes(), [&](std::shared_ptr<Transport> world) {
      Random random(number);
      const auto mesh = make_mesh_core(world, shape, axis_names(shape.rank()), {});
      for (int round = 0; round < 3; ++round)
        for (std::size_t t = 0; t < tasks.size(); ++t)
          for (const bool mean : {false, true}) {
            const Terms terms = parse(tasks[t].equation);
            const TensorDesc x{dtype_of<T>, tasks[t].extents,
                               some_sharding(random, terms.operands[0].size(), shape.rank())};
            const Sharding out = some_sharding(random, terms.result.size(), shape.rank());
            const DynamicTensor input = hard_tensor<T>(mesh, x, 7 + t);
            const DynamicTensor sum =
                mean ? reduce<Deterministic<Mean>>(tasks[t].equation, input, out)
                     : reduce<Deterministic<Sum>>(tasks[t].equation, input, out);
            const HostTensor<T> all = to_host<T>(sum);
            const std::lock_guard lock(mutex);
            std::vector<T>& known = bits[2 * t + mean];
            if (known.empty()) known = all.values;
            ++compared;
            wrong += known.size() != all.values.size() ||
                     std::memcmp(known.data(), all.values.data(), known.size() * sizeof(T)) != 0;
          }
    });
  }
  CHECK(compared > 1000);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("arg-max, running joins and deterministic sums equal plain loops, and run their plans") {
  on_every_mesh("rows on loopback", 50, 240 / share, 3,
                [](const std::shared_ptr<MeshCore>& mesh, Random& random) {
                  return some_row_case(mesh, random);
                });
}

TEST_CASE("deterministic sums and means have the same bits on every mesh, under every spec") {
  same_bits<float>();
  same_bits<double>();
  same_bits<half>();
  same_bits<bfloat16>();
  same_bits<complex<float>>();
  same_bits<complex<double>>();
}

TEST_CASE("rows that are empty, NaN and infinity, and what is refused") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh_core(world, MeshShape{4}, axis_names(1), {});
    const Sharding split{{}, {0}};
    const auto tensor = [&](const Extents& extents, const auto& f) {
      const TensorCore core = TensorCore::make(mesh, {DType::f64, extents, split});
      std::vector<double> values;
      const Box box = core.box();
      for_each_index(box.extents(), [&](const Extents& i) {
        values.push_back(f(box[0].lo + i[0], box[1].lo + i[1]));
      });
      tessera::detail::copy_from_host(core.data(), values.data(),
                                      static_cast<Index>(values.size() * sizeof(double)));
      return DynamicTensor(core);
    };
    use_element<double>();
    const double infinity = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();
    const DynamicTensor x = tensor({6, 5}, [&](Index i, Index j) {
      if (i == 0) return j == 3 ? nan : j == 4 ? nan : 9.0;
      if (i == 1) return j == 2 ? infinity : 1e308;
      if (i == 2) return j == 2 ? infinity : j == 4 ? -infinity : 1.0;
      if (i == 3) return j == 4 ? -infinity : 1.0;
      if (i == 4) return 0.0;
      return -infinity;
    });
    const auto top = to_host<std::int64_t>(argmax("ab->a", x)).values;
    CHECK(top == std::vector<std::int64_t>{3, 2, 2, 0, 0, 0});
    CHECK(to_host<std::int64_t>(argmin("ab->a", x)).values ==
          std::vector<std::int64_t>{3, 0, 4, 4, 0, 0});
    const auto sums = to_host<double>(reduce<Deterministic<Sum>>("ab->a", x)).values;
    CHECK(std::isnan(sums[0]));
    CHECK(sums[1] == infinity);
    CHECK(std::isnan(sums[2]));
    CHECK(sums[3] == -infinity);
    CHECK(sums[4] == 0);
    CHECK(sums[5] == -infinity);
    const DynamicTensor empty = tensor({3, 0}, [](Index, Index) { return 1.0; });
    CHECK(to_host<double>(reduce<Deterministic<Sum>>("ab->a", empty)).values ==
          std::vector<double>{0, 0, 0});
    CHECK(std::isnan(to_host<double>(reduce<Deterministic<Mean>>("ab->a", empty)).values[0]));
    CHECK(to_host<std::int64_t>(argmax("ab->b", empty)).values.empty());
    CHECK_THROWS_WITH_AS((void)argmax("ab->a", empty),
                         doctest::Contains("rows of a tensor of extents 3x0 have no element"),
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)cumulative<Any>("ab", 'b', x),
                         doctest::Contains("of double: numbers are not true or false"), UsageError);
    CHECK_THROWS_WITH_AS((void)cumulative<Sum>("ab", 'c', x),
                         doctest::Contains("a letter that its operand does not have"),
                         ShardingError);
    CHECK_THROWS_WITH_AS((void)reduce<Deterministic<Sum>>(
                             "ab->a", x, Sharding{{}}.with_partial(AxisSet{0}, Reduction::sum)),
                         doctest::Contains("unfinished"), ShardingError);
    // Max and min are exact as they are.
    CHECK(to_host<double>(reduce<Deterministic<Max>>("ab->a", x)).values[1] == infinity);
  });
}
