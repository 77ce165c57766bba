// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The convolutions that a library has compiled, kept for later ones of the same shape. The
/// compiled class is the library's own: constructed from a type and a LocalConvolve, with
/// is_for(type, work).
///
///     const std::shared_ptr<const DnnlConvolve> made = recent_convolution<DnnlConvolve>(type, work);
///
/// Laws: any number of threads may ask; equal questions have equal answers.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tessera/base/dtype.hpp>
#include <tessera/base/local_window.hpp>

namespace tessera::detail {

inline std::uint64_t hash_of(DType type, const LocalConvolve& work) {
  auto hash = static_cast<std::uint64_t>(type);
  const auto take = [&hash](Index i) {
    hash = (hash ^ static_cast<std::uint64_t>(i)) * 0x9e37'79b9'7f4a'7c15u;
    hash ^= hash >> 32;
  };
  for (const Index i :
       {work.batch, work.groups, work.in_features, work.out_features, work.in.offset,
        work.in.second, work.out.offset, work.out.second, work.kernel.offset})
    take(i);
  for (int d = 0; d < work.windows.size(); ++d)
    for (const Index i : {work.input[d], work.result[d], work.windows[d].size, work.windows[d].low})
      take(i);
  return hash;
}

/// Returns the compiled convolution for this work, from a list of the last 512.
template <class Made>
std::shared_ptr<const Made> recent_convolution(DType type, const LocalConvolve& work) {
  struct Entry {
    std::uint64_t hash;
    std::shared_ptr<const Made> made;
  };
  struct Cache {
    std::mutex mutex;
    std::vector<Entry> entries;  // the last used in front
  };
  static Cache& cache = *new Cache;  // outlives the threads that use it
  const std::uint64_t hash = hash_of(type, work);
  const std::lock_guard lock(cache.mutex);
  const auto found = std::find_if(cache.entries.begin(), cache.entries.end(), [&](const Entry& e) {
    return e.hash == hash && e.made->is_for(type, work);
  });
  if (found != cache.entries.end()) {
    std::rotate(cache.entries.begin(), found, found + 1);
  } else {
    if (cache.entries.size() >= 512) cache.entries.pop_back();
    cache.entries.insert(cache.entries.begin(), {hash, std::make_shared<const Made>(type, work)});
  }
  return cache.entries.front().made;
}

}  // namespace tessera::detail
