// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The oracle of operators that move elements: whole tensors on one process, in plain loops over
/// the result's indices.
///
///     Whole<double> y = support::slice(x, {0, 2}, {4, 6}, {1, 1});
#include <utility>
#include <vector>

#include "enumerate.hpp"
#include "reference.hpp"

#include <tessera/plan/operation.hpp>

namespace support {

/// Returns what an operator, or the value of any, plans on a process.
template <class Op>
Plan planned(const Op& op, const TensorDescs& x, const MeshShape& mesh, int process = 0,
             const PlanOptions& options = {}) {
  return op.plan(x, {mesh, process, options});
}

/// Returns the tensor of these extents whose element at each index is f(index).
template <class T, class F> Whole<T> whole_of(const Extents& extents, F f) {
  Whole<T> y(extents);
  Index i = 0;
  for_each_index(extents, [&](const Extents& at) { y[i++] = f(at); });
  return y;
}
template <class T> T element_at(const Whole<T>& x, const Extents& at) {
  return x[dot(at, detail::row_major_strides(x.extents))];
}

template <class T>
Whole<T> slice(const Whole<T>& x, const Extents& start, const Extents& limit,
               const Extents& stride) {
  Extents extents;
  for (int d = 0; d < start.size(); ++d) {
    Index n = 0;
    for (Index i = start[d]; i < limit[d]; i += stride[d]) ++n;
    extents.push_back(n);
  }
  return whole_of<T>(extents, [&](Extents at) {
    for (int d = 0; d < at.size(); ++d) at[d] = start[d] + at[d] * stride[d];
    return element_at(x, at);
  });
}
template <class T>
Whole<T> pad(const Whole<T>& x, const Extents& low, const Extents& high, const Extents& interior,
             T value) {
  Extents extents;
  for (int d = 0; d < x.extents.size(); ++d) {
    const Index n = x.extents[d];
    extents.push_back(n + (n > 1 ? (n - 1) * interior[d] : 0) + low[d] + high[d]);
  }
  return whole_of<T>(extents, [&](Extents at) {
    for (int d = 0; d < at.size(); ++d) {
      const Index i = at[d] - low[d], every = interior[d] + 1;
      if (i < 0 || i % every != 0 || i / every >= x.extents[d]) return value;
      at[d] = i / every;
    }
    return element_at(x, at);
  });
}
template <class T> Whole<T> reverse(const Whole<T>& x, const std::vector<int>& dims) {
  return whole_of<T>(x.extents, [&](Extents at) {
    for (int d : dims) at[d] = x.extents[d] - 1 - at[d];
    return element_at(x, at);
  });
}
template <class T> Whole<T> roll(const Whole<T>& x, Index by, int dim) {
  return whole_of<T>(x.extents, [&](Extents at) {
    const Index n = x.extents[dim];
    at[dim] = (((at[dim] - by) % n) + n) % n;
    return element_at(x, at);
  });
}
template <class T> Whole<T> shift(const Whole<T>& x, Index by, int dim, T value) {
  return whole_of<T>(x.extents, [&](Extents at) {
    at[dim] -= by;
    return at[dim] < 0 || at[dim] >= x.extents[dim] ? value : element_at(x, at);
  });
}
template <class T> Whole<T> concatenate(const std::vector<Whole<T>>& x, int dim) {
  Extents extents = x[0].extents;
  extents[dim] = 0;
  for (const Whole<T>& one : x) extents[dim] += one.extents[dim];
  return whole_of<T>(extents, [&](Extents at) {
    std::size_t k = 0;
    while (at[dim] >= x[k].extents[dim]) at[dim] -= x[k++].extents[dim];
    return element_at(x[k], at);
  });
}
template <class T> Whole<T> update(const Whole<T>& x, const Whole<T>& block, const Extents& start) {
  return whole_of<T>(x.extents, [&](const Extents& at) {
    Extents in = at;
    bool inside = true;
    for (int d = 0; d < at.size(); ++d) {
      in[d] -= start[d];
      inside = inside && in[d] >= 0 && in[d] < block.extents[d];
    }
    return inside ? element_at(block, in) : element_at(x, at);
  });
}
template <class T> Whole<T> reshape(const Whole<T>& x, const Extents& extents) {
  Whole<T> y = x;
  y.extents = extents;
  return y;
}

/// Returns extents before and after some reshape: dimensions of a random factorisation merged in
/// two ways, with extents of 1 put in between; now and then nothing at all.
inline std::pair<Extents, Extents> some_reshape(Random& random) {
  std::vector<Index> factors;
  const int count = random.below(6);
  for (int k = 0; k < count; ++k)
    factors.push_back(random.of<Index>({2, 2, 3, 3, 4, 5, 7, random.chance(10) ? 0 : 2}));
  const auto merged = [&] {
    Extents extents;
    if (random.chance(10)) extents.push_back(1);
    for (const Index factor : factors) {
      if (!extents.empty() && extents.back() != 1 && (random.chance(50) || extents.size() > 5))
        extents.back() *= factor;
      else
        extents.push_back(factor);
      if (random.chance(10) && extents.size() < 6) extents.push_back(1);
    }
    if (!factors.empty() && extents.size() < 5 && random.chance(30)) extents = Extents{};
    if (extents.empty() &&
        !factors.empty()) {  // all of them in one dimension, or in two that share no border
      Index all = 1;
      for (const Index factor : factors) all *= factor;
      const Index part = all > 0 ? factors.back() : 2;
      if (random.chance(50))
        extents = {all};
      else
        extents = {part, all / part};
    }
    return extents;
  };
  const Extents from = merged();
  return {from, merged()};
}

}  // namespace support
