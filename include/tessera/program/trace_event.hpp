// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A stretch of time in which a process did one thing, and who is told of it.
///
///     sink.add({begin, end, TraceKind::call, process, lane, entry, step, call, bytes});
#include <cstdint>

#include <tessera/base/math.hpp>

namespace tessera {

enum class TraceKind : std::uint8_t {
  part,     ///< an operator, or the part of it that was carried out at once
  call,     ///< a call of the transport, with the wait for the other processes in it
  start,    ///< the start of one that is waited for later
  wait,     ///< the wait for one that was started
  kernel,   ///< local work; on a device its launch
  copy,     ///< packing, unpacking, adding what has arrived, conversions
  fence,    ///< the wait for the device
  nothing,  ///< what takes no time worth a mention
};

struct TraceEvent {
  std::int64_t begin = 0;  ///< nanoseconds since the trace began
  std::int64_t end = 0;
  TraceKind kind = TraceKind::part;
  int process = 0;
  int lane = 0;
  int entry = 0;    ///< the operator, in the trace's Program
  int step = -1;    ///< of its plan; -1: all of them
  int call = -1;    ///< of its calls, counted from 0; -1: none
  Index bytes = 0;  ///< payload of the call, by the law of mesh/call.hpp
  constexpr std::int64_t time() const { return end - begin; }
  constexpr bool communicates() const {
    return kind == TraceKind::call || kind == TraceKind::start || kind == TraceKind::wait;
  }
};

namespace detail {
/// Takes the events of a process while it is traced.
class TraceSink {
 public:
  TraceSink() = default;
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;
  /// Takes an event whose operator has the number that Recorder::begin() returned, and whose times
  /// are those of a clock that all events have.
  virtual void add(const TraceEvent& event) = 0;

 protected:
  ~TraceSink() = default;
};
}  // namespace detail

}  // namespace tessera
