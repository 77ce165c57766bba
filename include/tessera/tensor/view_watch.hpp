// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who is told when the memory of a tensor is viewed, by data(), local_view and their siblings, or
/// adopted: a function that is differentiated, since no gradient sees what a kernel of the user's
/// does there (grad/value_and_grad.hpp).
///
///     { const WatchedBy scope(&watch);  f(); }      // watch.viewed(x, …) for each view that f takes
///
/// Laws: one watch at a time; the one before takes over again when the scope ends. Copies to the
/// host (to_host, value, printing, files) are no views.
#include <utility>

#include <tessera/base/where.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

class ViewWatch {
 public:
  ViewWatch() = default;
  ViewWatch(const ViewWatch&) = delete;
  ViewWatch& operator=(const ViewWatch&) = delete;
  /// `writes`: the view may be written through.
  virtual void viewed(const TensorCore& x, bool writes, Where where) = 0;

 protected:
  ~ViewWatch() = default;
};
inline constinit thread_local ViewWatch* watch_of_thread = nullptr;  ///< null: nobody

inline void tell_view(const TensorCore& x, bool writes, Where where) {
  if (watch_of_thread != nullptr && x.defined()) watch_of_thread->viewed(x, writes, where);
}

/// While it lives, `watch` is told of the views of this thread; null: nobody is.
class WatchedBy {
 public:
  explicit WatchedBy(ViewWatch* watch) : before_(std::exchange(watch_of_thread, watch)) {}
  WatchedBy(const WatchedBy&) = delete;
  WatchedBy& operator=(const WatchedBy&) = delete;
  ~WatchedBy() { watch_of_thread = before_; }

 private:
  ViewWatch* before_;
};

}  // namespace tessera::detail
