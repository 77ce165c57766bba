// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Small meshes, shardings and extents: all of them, or a sample with a seed that is printed.
///
///     for (const MeshShape& mesh : support::meshes(8, 3))
///       for (const Sharding& s : support::shardings(2, mesh.rank())) ...
///
/// TESSERA_TEST_SEED in the environment replaces the seed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/plan.hpp>

namespace support {

using namespace tessera;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int share = 8;  // sanitized programs run an eighth of the cases
#else
inline constexpr int share = 1;
#endif

/// Numbers that look random (splitmix64), the same for the same seed everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E37'79B9'7F4A'7C15u);
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9u;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBu;
    return z ^ (z >> 31);
  }
  /// Returns 0 <= i < n.
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T> const T& of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }

 private:
  std::uint64_t state_;
};

/// Returns one of the numbers that divide n.
inline int some_divisor(Random& random, int n) {
  std::vector<int> all;
  for (int q = 1; q <= n; ++q)
    if (n % q == 0) all.push_back(q);
  return random.of(all);
}

/// Returns the seed of a sample: `otherwise`, or what TESSERA_TEST_SEED says.
inline std::uint64_t seed_for(const char* test, std::uint64_t otherwise, bool print = true) {
  const char* text = std::getenv("TESSERA_TEST_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
  if (print) std::printf("%s: seed %llu\n", test, static_cast<unsigned long long>(seed));
  return seed;
}

/// Returns whether TESSERA_TEST_CASES says `all`, as the shares of the longer presets do.
inline bool all_cases() {
  const char* text = std::getenv("TESSERA_TEST_CASES");
  return text != nullptr && std::string_view(text) == "all";
}
/// Returns how many cases of `count` are run: a sixth, but 16 at least, or all of them.
inline int cases_of(int count) {
  if (all_cases()) return count;
  return count <= 16 ? count : count / 6 < 16 ? 16 : count / 6;
}
/// Returns how many cases of `all` are run: `some`, or all of them if all are asked for; one at
/// least.
inline int cases_of(int some, int all) {
  const int count = (all_cases() ? all : some) / share;
  return count < 1 ? 1 : count;
}

/// Returns every mesh of exactly `processes` processes with `axes` axes; sizes of 1 are among them.
inline std::vector<MeshShape> meshes_of(int processes, int axes) {
  if (axes == 1) return {MeshShape{processes}};
  std::vector<MeshShape> all;
  for (int first = 1; first <= processes; ++first) {
    if (processes % first != 0) continue;
    for (const MeshShape& rest : meshes_of(processes / first, axes - 1)) {
      MeshShape mesh{first};
      for (int a = 0; a < rest.rank(); ++a) mesh.push_back(rest[a]);
      all.push_back(mesh);
    }
  }
  return all;
}
/// Returns every mesh of 1 to `processes` processes with 1 to `axes` axes.
inline std::vector<MeshShape> meshes(int processes, int axes) {
  std::vector<MeshShape> all;
  for (int a = 1; a <= axes; ++a)
    for (int p = 1; p <= processes; ++p)
      for (const MeshShape& mesh : meshes_of(p, a)) all.push_back(mesh);
  return all;
}

/// Returns s with `axis` put into dimension d before position i.
inline Sharding with_axis(const Sharding& s, int d, int i, int axis) {
  Sharding result = s;
  result[d] = s[d].first(i);
  result[d].push_back(axis);
  for (int k = i; k < s[d].size(); ++k) result[d].push_back(s[d][k]);
  return result;
}

/// Returns every sharding of a tensor of `rank` dimensions over a mesh of `axes` axes, all orders
/// on a dimension; when `kind` is a reduction, also those that are partial.
inline std::vector<Sharding> shardings(int rank, int axes, Reduction kind = Reduction::none) {
  std::vector<Sharding> all{Sharding::replicated(rank)};
  for (int axis = 0; axis < axes; ++axis) {
    const std::vector<Sharding> before = all;
    for (const Sharding& s : before) {
      for (int d = 0; d < rank; ++d)
        for (int i = 0; i <= s[d].size(); ++i) all.push_back(with_axis(s, d, i, axis));
      if (kind != Reduction::none) all.push_back(s.with_partial(s.partial | AxisSet{axis}, kind));
    }
  }
  return all;
}

/// Returns some sharding; `partial` percent of the unused axes are open.
inline Sharding some_sharding(Random& random, int rank, int axes, int partial = 0,
                              Reduction kind = Reduction::sum) {
  Sharding s = Sharding::replicated(rank);
  for (int k = 0, first = random.below(axes); k < axes; ++k) {
    const int axis = (first + k) % axes;
    if (random.chance(partial)) {
      s = s.with_partial(s.partial | AxisSet{axis}, kind);
    } else if (rank > 0 && random.chance(70)) {
      const int d = random.below(rank);
      s = with_axis(s, d, random.below(s[d].size() + 1), axis);
    }
  }
  return s;
}

/// Returns some machine model: each makes other plans the cheapest. For a mesh of `axes` axes,
/// these lie in some order.
inline Machine some_machine(Random& random, int axes = 0) {
  Machine m;
  for (AxisSet left = MeshShape().axes(); axes > 0 && m.order.axes.size() < axes;) {
    const int axis = random.below(axes);
    if (left.contains(axis)) continue;
    left.insert(axis);
    m.order.axes.push_back(axis);
  }
  if (random.chance(40)) return m;
  m.message_ps = random.of<std::int64_t>({0, 1'000, 1'000'000});
  m.payload_ps_per_kib = random.of<std::int64_t>({0, 200'000, 1'000'000'000});
  m.copy_ps_per_kib = random.of<std::int64_t>({0, 100'000, 1'000'000'000});
  m.kiloflop_ps_f32 = random.of<std::int64_t>({0, 10'000, 1'000'000'000});
  m.kiloflop_ps_f64 = random.of<std::int64_t>({0, 20'000, 1'000'000'000});
  m.processes_per_node = random.of<std::int64_t>({0, 2, 2, 3, 4, 6});
  m.network_message_ps = random.of<std::int64_t>({0, 2'000'000, 1'000'000'000});
  m.network_payload_ps_per_kib = random.of<std::int64_t>({0, 800'000, 10'000'000'000});
  // Not drawn, which would make other cases of all that is drawn after it.
  m.all_to_all_percent = m.copy_ps_per_kib == 0 ? 1600 : m.message_ps == 0 ? 250 : 100;
  return m;
}

inline AxisNames axis_names(int axes) {
  static constexpr std::string_view names[] = {"a", "b", "c", "d", "e", "f"};
  AxisNames result;
  for (int i = 0; i < axes; ++i) result.push_back(names[i]);
  return result;
}
inline std::string describe(const MeshShape& mesh) {
  return to_string(mesh, axis_names(mesh.rank()));
}
inline std::string describe(const TensorDesc& desc, const MeshShape& mesh) {
  return to_string(desc, axis_names(mesh.rank()));
}
inline std::string describe(const Sharding& s, const MeshShape& mesh) {
  return to_string(s, axis_names(mesh.rank()));
}

/// Steps of a plan in short, for messages.
inline std::string describe(const Plan& plan) {
  return explain(plan, axis_names(plan.mesh.rank()));
}

}  // namespace support
