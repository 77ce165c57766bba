// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The order between lanes that use the same memory: who is about to use it waits for the kernels
/// of other lanes that are in the way.
///
///     detail::LaneUse use;
///     use.write();        // this lane's kernels are about to write the memory
///     const detail::OnLane there(detail::lane_of(KernelSpace()));
///     use.read();  // waits, unless that was this detail::lane
///
/// Laws: a lane that reads waits for other lanes that write, a lane that writes for all others that
/// use the memory; a lane never waits for itself. On a host backend nothing is noted, since nobody
/// would have to wait.
#include <cstdint>

#include <tessera/kernel/lane.hpp>

namespace tessera::detail {

/// Lanes by number, a bit each.
using LaneSet = std::uint64_t;
static_assert(max_lanes <= 64);

/// Returns the lane of this thread; on a host backend none.
inline LaneSet this_lane() {
  if constexpr (kernels_on_host)
    return 0;
  else
    return LaneSet{1} << lane().number();
}
/// Returns when the kernels launched on these lanes so far are done.
inline void wait_for(LaneSet lanes) {
  if constexpr (!kernels_on_host)
    for (int i = 0; i < AllLanes::all().count(); ++i)
      if (lanes >> i & 1) AllLanes::all()[i].wait();
}

/// The lanes that may still use some memory.
class LaneUse {
 public:
  /// Called before kernels of this thread's lane read the memory.
  void read() {
    const LaneSet mine = this_lane();
    done(written_ & ~mine);
    used_ |= mine;
  }
  /// Called before kernels of this thread's lane write the memory.
  void write() {
    const LaneSet mine = this_lane();
    done(used_ & ~mine);
    used_ = written_ = mine;
  }
  /// Returns when no kernel uses the memory.
  void wait() { done(used_); }
  LaneSet lanes() const { return used_; }

 private:
  void done(LaneSet lanes) {
    if (lanes == 0) return;
    wait_for(lanes);
    used_ &= ~lanes;
    written_ &= ~lanes;
  }
  LaneSet written_ = 0, used_ = 0;
};

}  // namespace tessera::detail
