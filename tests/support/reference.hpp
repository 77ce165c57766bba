// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The oracle: whole tensors on one process, and the operators in plain loops over global indices.
///
///     Whole<double> c = support::einsum(parse("ik,kj->ij"), a, b);
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <tessera/plan.hpp>

namespace support {

using namespace tessera;

/// The types that cases templated on their element are compiled for. (Every type goes through
/// tests/op/elements.hpp.)
template <class F> decltype(auto) with_sampled_type(DType type, F&& f) {
  switch (type) {
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    default:
      return f(float{});
  }
}

/// A whole tensor, row-major.
template <class T> struct Whole {
  Extents extents;
  std::vector<T> values;

  Whole() = default;
  explicit Whole(const Extents& e, T fill = T{})
      : extents(e), values(static_cast<std::size_t>(volume(e)), fill) {}
  Index size() const { return static_cast<Index>(values.size()); }
  T& operator[](Index i) { return values[static_cast<std::size_t>(i)]; }
  const T& operator[](Index i) const { return values[static_cast<std::size_t>(i)]; }
};

/// Calls f(index) for every index of a box of `extents`, in row-major order.
template <class F> void for_each_index(const Extents& extents, F f) {
  if (volume(extents) == 0) return;
  Extents at(extents.size(), 0);
  while (true) {
    f(static_cast<const Extents&>(at));
    int d = extents.size() - 1;
    for (; d >= 0; --d) {
      if (++at[d] < extents[d]) break;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}
inline Index dot(const Extents& x, const Extents& y) {
  Index sum = 0;
  for (int d = 0; d < x.size(); ++d) sum += x[d] * y[d];
  return sum;
}

/// The letters of an equation with their extents, and each tensor's strides in the order of those
/// letters.
struct Letters {
  Term labels;
  Extents extents;
  std::vector<Extents>
      strides;  ///< of the operands, then of the result; 0 where a letter is absent or stretched
  Extents result;

  Letters(const Terms& terms, const std::vector<Extents>& operands) {
    const auto add = [&](char label) {
      if (labels.contains(label)) return;
      labels.push_back(label);
      Index extent = 1;
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (const int d = terms.operands[static_cast<int>(i)].find(label);
            d >= 0 && operands[i][d] != 1)
          extent = operands[i][d];
      extents.push_back(extent);
    };
    for (char label : terms.result) add(label);
    for (const Term& term : terms.operands)
      for (char label : term) add(label);
    for (char label : terms.result) result.push_back(extents[labels.find(label)]);
    for (std::size_t i = 0; i < operands.size(); ++i)
      add_strides(terms.operands[static_cast<int>(i)], operands[i]);
    add_strides(terms.result, result);
  }

 private:
  void add_strides(const Term& term, const Extents& e) {
    const Extents own = detail::row_major_strides(e);
    Extents s(labels.size(), 0);
    for (int d = 0; d < term.size(); ++d)
      s[labels.find(term[d])] += e[d] == 1 ? 0 : own[d];  // a letter may repeat
    strides.push_back(s);
  }
};

template <class T> Whole<T> einsum(const Terms& terms, const Whole<T>& a, const Whole<T>& b) {
  const Letters letters(terms, {a.extents, b.extents});
  Whole<T> c(letters.result);
  for_each_index(letters.extents, [&](const Extents& at) {
    c[dot(at, letters.strides[2])] +=
        a[dot(at, letters.strides[0])] * b[dot(at, letters.strides[1])];
  });
  return c;
}

/// Computes an einsum of any number of operands.
template <class T> Whole<T> einsum(const Terms& terms, const std::vector<Whole<T>>& x) {
  std::vector<Extents> extents;
  for (const Whole<T>& one : x) extents.push_back(one.extents);
  const Letters letters(terms, extents);
  Whole<T> y(letters.result);
  for_each_index(letters.extents, [&](const Extents& at) {
    T product{1};
    for (std::size_t i = 0; i < x.size(); ++i) product *= x[i][dot(at, letters.strides[i])];
    y[dot(at, letters.strides.back())] += product;
  });
  return y;
}

/// Maps x -> a x + b modulo a prime, each an integer of which 0 is the identity: "first f, then g"
/// is associative and does not commute.
struct Compose {
  static constexpr std::int64_t prime = 10007;
  static constexpr std::int64_t rest(std::int64_t v) { return (v % prime + prime) % prime; }
  static constexpr std::int64_t factor(std::int64_t v) { return rest(1 + (v - rest(v)) / prime); }
  constexpr std::int64_t operator()(std::int64_t f, std::int64_t g) const {
    return rest(factor(f) * factor(g) - 1) * prime + rest(factor(g) * rest(f) + rest(g));
  }
};

/// What a reduction of nothing gives.
template <class T> T identity_of(Reduction kind) {
  using Limits = std::numeric_limits<T>;
  if (kind == Reduction::max) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  if (kind == Reduction::min) return Limits::has_infinity ? Limits::infinity() : Limits::max();
  return T{};
}
template <class T> T combine(Reduction kind, T x, T y) {
  if (kind == Reduction::max) return x < y ? y : x;
  if (kind == Reduction::min) return y < x ? y : x;
  return x + y;
}

template <class T> Whole<T> reduce(const Terms& terms, Reduction kind, const Whole<T>& x) {
  const Letters letters(terms, {x.extents});
  Whole<T> y(letters.result, identity_of<T>(kind));
  for_each_index(letters.extents, [&](const Extents& at) {
    T& out = y[dot(at, letters.strides[1])];
    out = combine(kind, out, x[dot(at, letters.strides[0])]);
  });
  return y;
}

/// f takes a std::vector<T> with one element of each operand.
template <class T, class F> Whole<T> map(const Terms& terms, const std::vector<Whole<T>>& x, F f) {
  std::vector<Extents> extents;
  for (const Whole<T>& one : x) extents.push_back(one.extents);
  const Letters letters(terms, extents);
  Whole<T> y(letters.result);
  std::vector<T> values(x.size());
  for_each_index(letters.extents, [&](const Extents& at) {
    for (std::size_t i = 0; i < x.size(); ++i) values[i] = x[i][dot(at, letters.strides[i])];
    y[dot(at, letters.strides.back())] = f(values);
  });
  return y;
}

template <class T> Whole<T> transpose(const Terms& terms, const Whole<T>& x) {
  return map<T>(terms, {x}, [](const std::vector<T>& v) { return v[0]; });
}

// ---- the inputs of a test: element i of part q of a tensor, the same whoever asks
// -----------------------------------

inline std::int64_t element(std::uint64_t seed, Index i, int part) {
  std::uint64_t z = seed + 0x9E37'79B9'7F4A'7C15u * static_cast<std::uint64_t>(i + 1) +
                    0xD1B5'4A32'D192'ED03u * static_cast<std::uint64_t>(part);
  z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9u;
  z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBu;
  return static_cast<std::int64_t>((z >> 33) % 9) - 4;
}

/// Integers as they are; floating point no sums of which are exact.
template <class T> T input(std::uint64_t seed, Index i, int part) {
  const std::int64_t value = element(seed, i, part);
  return static_cast<T>(std::is_floating_point_v<T> ? static_cast<T>(value) * static_cast<T>(0.37)
                                                    : static_cast<T>(value));
}

/// Returns the whole tensor that the parts of a (perhaps partial) tensor add up to, or have as
/// their largest or least.
template <class T>
Whole<T> whole_input(const TensorDesc& desc, const MeshShape& mesh, std::uint64_t seed) {
  Whole<T> x(desc.extents);
  const int parts = mesh.group_size(desc.sharding.partial);
  for (Index i = 0; i < x.size(); ++i) {
    T value = input<T>(seed, i, 0);
    for (int q = 1; q < parts; ++q)
      value = combine(desc.sharding.reduction, value, input<T>(seed, i, q));
    x[i] = value;
  }
  return x;
}
/// Returns the block of it that the process at `at` has.
template <class T>
std::vector<T> block_input(const TensorDesc& desc, const MeshShape& mesh, const Coordinates& at,
                           std::uint64_t seed) {
  const Box box = block(desc.extents, desc.sharding, mesh, at);
  const int part = mesh.place_in_group(desc.sharding.partial, at);
  const Extents strides = detail::row_major_strides(desc.extents);
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(box.size()));
  for_each_index(box.extents(), [&](const Extents& index) {
    Index i = 0;
    for (int d = 0; d < index.size(); ++d) i += (box[d].lo + index[d]) * strides[d];
    values.push_back(input<T>(seed, i, part));
  });
  return values;
}
/// Returns the block of a whole tensor.
template <class T> std::vector<T> block_of(const Whole<T>& x, const Box& box) {
  const Extents strides = detail::row_major_strides(x.extents);
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(box.size()));
  for_each_index(box.extents(), [&](const Extents& index) {
    Index i = 0;
    for (int d = 0; d < index.size(); ++d) i += (box[d].lo + index[d]) * strides[d];
    values.push_back(x[i]);
  });
  return values;
}

}  // namespace support
