// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Single random sorts of keys of any type, with positions and carried tensors, run and compared
/// with std::stable_sort, with the dry plan, the ledger and the arena.
///
///     std::string wrong = support::some_sort_case(mesh, random);      // collective over the mesh
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"
#include "support/rows.hpp"

namespace support {

/// A whole tensor of any element type.
struct AnyWhole {
  DType type = DType::f32;
  Extents extents;
  std::vector<char> bytes;

  AnyWhole(DType t, const Extents& e)
      : type(t), extents(e), bytes(static_cast<std::size_t>(volume(e)) * size_of(t)) {}
  char* at(Index i) { return bytes.data() + static_cast<std::size_t>(i) * size_of(type); }
  const char* at(Index i) const {
    return bytes.data() + static_cast<std::size_t>(i) * size_of(type);
  }
};

/// Element i: few values, so that many are equal; floats have NaN, infinities, 0 and -0.
template <class T> T sort_value(std::uint64_t seed, Index i) {
  const std::int64_t r = element(seed, i, 0) + 4;  // 0 to 8
  const std::int64_t s = element(seed + 99, i, 1) + 4;
  if constexpr (ComplexElement<T>) {
    return T(static_cast<typename T::value_type>(r), static_cast<typename T::value_type>(s));
  } else if constexpr (IntegerElement<T>) {
    if (r == 8 && s == 8) return std::numeric_limits<T>::max();
    return r == 7 && s == 8 ? std::numeric_limits<T>::lowest() : static_cast<T>(3 * r - s);
  } else if constexpr (std::is_same_v<T, bool>) {
    return r > 4;
  } else {
    if (s == 8)
      return r % 2 == 0 ? std::numeric_limits<T>::quiet_NaN() : -std::numeric_limits<T>::infinity();
    if (s == 7 && r > 4) return std::numeric_limits<T>::infinity();
    return static_cast<T>(r == 4 && s % 2 == 0 ? -0.0f : static_cast<float>(r - 4) * 0.5f);
  }
}
inline AnyWhole sort_input(DType type, const Extents& extents, std::uint64_t seed) {
  AnyWhole x(type, extents);
  detail::with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < volume(extents); ++i) {
      const T value = sort_value<T>(seed, i);
      std::memcpy(x.at(i), &value, sizeof(T));
    }
  });
  return x;
}
/// Returns the first `limit` positions of each line in order.
inline Whole<std::int64_t> order_any(int along, bool descending, Index limit, const AnyWhole& x,
                                     bool alone) {
  return detail::with_type(x.type, [&](auto zero) -> Whole<std::int64_t> {
    using T = decltype(zero);
    if constexpr (ComplexElement<T>) {
      return {};
    } else {
      using Plain = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
      Whole<Plain> whole(x.extents);
      for (Index i = 0; i < whole.size(); ++i) std::memcpy(&whole[i], x.at(i), sizeof(T));
      return order(along, descending, limit, whole, alone);
    }
  });
}
inline AnyWhole arrange_any(int along, const AnyWhole& x, const Whole<std::int64_t>& positions) {
  Whole<std::int64_t> numbers(x.extents);
  for (Index i = 0; i < numbers.size(); ++i) numbers[i] = i;
  const Whole<std::int64_t> from = arrange(along, numbers, positions);
  AnyWhole y(x.type, positions.extents);
  for (Index i = 0; i < from.size(); ++i) std::memcpy(y.at(i), x.at(from[i]), size_of(x.type));
  return y;
}
inline AnyWhole any_of(const Whole<std::int64_t>& positions) {
  AnyWhole y(DType::i64, positions.extents);
  if (positions.size() > 0) std::memcpy(y.bytes.data(), positions.values.data(), y.bytes.size());
  return y;
}

/// Returns x as a tensor under a sharding.
inline DynamicTensor sharded(const std::shared_ptr<MeshCore>& mesh, const AnyWhole& x,
                             const Sharding& s) {
  const TensorCore core = TensorCore::make(mesh, {x.type, x.extents, s});
  const Box box = core.box();
  const Extents strides = detail::row_major_strides(x.extents);
  std::vector<char> block;
  for_each_index(box.extents(), [&](const Extents& index) {
    Index i = 0;
    for (int d = 0; d < index.size(); ++d) i += (box[d].lo + index[d]) * strides[d];
    block.insert(block.end(), x.at(i), x.at(i) + size_of(x.type));
  });
  tessera::detail::copy_from_host(core.data(), block.data(), static_cast<Index>(block.size()));
  return DynamicTensor(core);
}
inline std::vector<char> bytes_of(const DynamicTensor& x) {
  std::vector<char> bytes(static_cast<std::size_t>(x.local_size()) * size_of(x.type()));
  tessera::detail::fence();
  tessera::detail::copy_to_host(bytes.data(), x.core().data(), static_cast<Index>(bytes.size()));
  return bytes;
}
inline std::vector<char> gathered_bytes(const DynamicTensor& x) {
  return bytes_of(reshard(x, Sharding::replicated(x.extents().size())));
}

/// What is asked for, by name.
struct SortCase {
  enum class What { sort, argsort, with_positions, by_key, top_k, bottom_k };
  What what = What::sort;
  int along = 0;
  bool descending = false;
  Index k = 0;
  std::vector<AnyWhole> x;
  std::vector<Sharding> shardings;
  Sharding out;

  bool first() const { return what == What::top_k || what == What::bottom_k; }
  SortTask task() const {
    SortTask t{.descending = first() ? what == What::top_k : descending};
    t.keys = what != What::argsort;
    t.positions = what != What::sort && what != What::by_key;
    if (first()) t.limit = k;
    if (first()) t.kind = OperatorKind::top_k;
    return t;
  }
  std::vector<AnyWhole> expected() const {
    const SortTask t = task();
    const Whole<std::int64_t> positions =
        order_any(along, t.descending, first() ? k : x[0].extents[along], x[0], what == What::sort);
    std::vector<AnyWhole> results;
    for (std::size_t i = t.keys ? 0 : 1; i < x.size(); ++i)
      results.push_back(arrange_any(along, x[i], positions));
    if (t.positions) results.push_back(any_of(positions));
    return results;
  }
  std::vector<DynamicTensor> run(const std::vector<DynamicTensor>& tensors) const {
    const Term letters = detail::default_labels(x[0].extents.size());
    const std::string labels = to_text(letters);
    const char letter = letters[along];
    const SortOptions options{descending};
    const auto both = [](const Sorted<DynamicTensor, DynamicTensor>& sorted) {
      return std::vector<DynamicTensor>{sorted.values, sorted.indices};
    };
    switch (what) {
      case What::sort:
        return {tessera::sort(labels, letter, tensors[0], options, out)};
      case What::argsort:
        return {argsort(labels, letter, tensors[0], options, out)};
      case What::with_positions:
        return both(sort_with_indices(labels, letter, tensors[0], options, out));
      case What::by_key:
        return sort_by_key(labels, letter, tensors, options, out);
      case What::top_k:
        return both(top_k(labels, letter, tensors[0], k, out));
      case What::bottom_k:
        break;
    }
    return both(bottom_k(labels, letter, tensors[0], k, out));
  }
};

/// Runs a case and compares it with everything; returns what is wrong, or nothing.
inline std::string wrong_sort(const std::shared_ptr<MeshCore>& mesh, const SortCase& c) {
  const MeshShape& shape = mesh->shape();
  TensorDescs descs;
  std::vector<DynamicTensor> tensors;
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    tensors.push_back(sharded(mesh, c.x[i], c.shardings[i]));
    descs.push_back(tensors.back().desc());
  }
  const Plan plan = detail::plan_sort(detail::default_labels(descs[0].rank()), c.along, c.task(),
                                      descs, c.out, shape, mesh->process(), plan_options(*mesh));
  const auto told = [&](const std::string& text) {
    return std::string(name_of(c.x[0].type)) + " " + describe(descs[0], shape) + " to " +
           describe(c.out, shape) + " along " + std::to_string(c.along) + ", process " +
           std::to_string(mesh->process()) + ": " + text + "\n" + describe(plan);
  };
  detail::Arena& arena = mesh->arena();
  Ledger& ledger = mesh->ledger();
  const Index held = arena.in_use();
  arena.reset_peak();
  ledger.reset();
  ledger.record_calls(true);
  Recording recording(mesh);
  const std::vector<DynamicTensor> y = c.run(tensors);
  const Program program = recording.take();
  const Index peak = arena.peak() - held, kept = arena.in_use() - held;
  const Traffic traffic = ledger.total();
  const std::vector<Call> calls = ledger.calls();
  ledger.record_calls(false);
  const std::vector<DynamicTensor> again = c.run(tensors);
  const std::vector<AnyWhole> expected = c.expected();
  std::vector<std::vector<char>> mine, all, second;
  for (std::size_t i = 0; i < y.size(); ++i) {
    mine.push_back(bytes_of(y[i]));
    all.push_back(gathered_bytes(y[i]));
    second.push_back(bytes_of(again[i]));
  }

  if (program.entries().size() != 1 || !(*program.entries()[0].plan == plan))
    return told("it ran another plan than the dry one");
  if (peak != plan.peak_bytes)
    return told("the arena's peak is " + std::to_string(peak) + " bytes, not " +
                std::to_string(plan.peak_bytes));
  Index results = detail::arena_charge(plan.slots[plan.result].bytes);
  for (int slot : plan.also) results += detail::arena_charge(plan.slots[slot].bytes);
  if (kept != results) return told("it keeps " + std::to_string(kept) + " bytes");
  if (traffic.payload_bytes != plan.own_payload_bytes() ||
      traffic.network_bytes != plan.network_bytes())
    return told("the ledger has " + std::to_string(traffic.payload_bytes) + " bytes");
  if (!(calls == instructions_of(plan).calls)) return told("it made other calls than planned");
  if (y.size() != expected.size()) return told("it has " + std::to_string(y.size()) + " results");
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::string which = "result " + std::to_string(i + 1);
    if (!(y[i].desc() == TensorDesc{expected[i].type, expected[i].extents, c.out}))
      return told(which + " is " + describe(y[i].desc(), shape));
    if (mine[i] != second[i]) return told("a second run gave other bits in " + which);
    if (all[i] != expected[i].bytes) return told(which + " is not what plain loops make");
  }
  return "";
}

inline SortCase some_sort_case_of(const MeshShape& mesh, Random& random) {
  SortCase c;
  const int rank = random.of<int>({1, 1, 2, 2, 3, 4});
  c.what = static_cast<SortCase::What>(random.below(6));
  c.along = random.below(rank);
  c.descending = random.chance(50);
  const bool one_row = rank == 1 && random.chance(50);
  Extents extents;
  for (int d = 0; d < rank; ++d)
    extents.push_back(
        one_row ? random.of<Index>({97, 1000, 4096})
                : random.of<Index>({1, 2, 3, 4, 5, 7, 8, 9, 13, random.chance(20) ? 0 : 6}));
  c.k = random.below(static_cast<int>(extents[c.along]) + 1);
  DType key = static_cast<DType>(random.below(dtypes));
  if (is_complex(key)) key = DType::f32;
  const int carried = c.what == SortCase::What::by_key ? 1 + random.below(6) : 0;
  for (int i = 0; i <= carried; ++i) {
    c.x.push_back(sort_input(i == 0 ? key : static_cast<DType>(random.below(dtypes)), extents,
                             5 + static_cast<std::uint64_t>(i)));
    c.shardings.push_back(i > 0 && random.chance(60) ? c.shardings[0]
                                                     : some_sharding(random, rank, mesh.rank()));
  }
  c.out = random.chance(60) ? c.shardings[0] : some_sharding(random, rank, mesh.rank());
  return c;
}

/// Runs one case, all of it chosen by `random`. Collective over the mesh.
inline std::string some_sort_case(const std::shared_ptr<MeshCore>& mesh, Random& random) {
  use_all_elements();
  const SortCase c = some_sort_case_of(mesh->shape(), random);
  try {
    return wrong_sort(mesh, c);
  } catch (const std::exception& error) {
    return std::string(name_of(c.x[0].type)) + " on " + describe(mesh->shape()) + ": " +
           error.what();
  }
}

}  // namespace support
