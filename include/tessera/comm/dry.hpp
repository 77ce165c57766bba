// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The transport of a dry run: any number of processes, of which this program plays one; nothing
/// is sent.
///
///     auto transport = dry_transport(4096, 17);      // process 17 of 4096
///
/// Laws: no call waits, fails or touches its buffers.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera {
namespace detail {

class DryGroup final : public Group {
 public:
  DryGroup(int own, int size) : own_(own), size_(size) {}
  int own() const override { return own_; }
  int size() const override { return size_; }
  void run(const Call&, const void*, void*) override {}

 private:
  int own_;
  int size_;
};

class DryTransport : public Transport {
 public:
  /// `absent`: the processes are others than this program's, which plays one of them.
  DryTransport(std::vector<int> processes, int process, const TransportSettings& settings,
               bool absent = false)
      : processes_(std::move(processes)), process_(process), settings_(settings), absent_(absent) {}
  std::string name() const override { return "dry"; }
  int process() const override { return process_; }
  int size() const override { return static_cast<int>(processes_.size()); }
  std::vector<int> processes() const override { return processes_; }
  bool dry() const override { return true; }
  bool absent() const override { return absent_; }
  const TransportSettings& settings() const override { return settings_; }
  std::shared_ptr<Group> group(const std::vector<int>& members, std::uint64_t) override {
    return std::make_shared<DryGroup>(own_among(members), static_cast<int>(members.size()));
  }
  std::shared_ptr<Transport> duplicate(const TransportSettings& settings) override {
    return among_these(processes_, process_, settings);
  }
  void barrier() override {}
  [[noreturn]] void abort(const std::string& message, int) override {
    throw CommunicationError(message);
  }

 protected:
  /// Returns a transport of this kind.
  virtual std::shared_ptr<Transport> among_these(std::vector<int> processes, int process,
                                                 const TransportSettings& settings) {
    return std::make_shared<DryTransport>(std::move(processes), process, settings, absent_);
  }
  /// Returns this process's number among the members; 0 where it is none of them.
  int own_among(const std::vector<int>& members) const {
    const auto found = std::find(members.begin(), members.end(), process_);
    return found == members.end() ? 0 : static_cast<int>(found - members.begin());
  }
  std::shared_ptr<Transport> subset(const std::vector<int>& members) override {
    std::vector<int> processes;
    for (const int member : members)
      processes.push_back(processes_[static_cast<std::size_t>(member)]);
    return among_these(std::move(processes), own_among(members), settings_);
  }

 private:
  std::vector<int> processes_;
  int process_;
  TransportSettings settings_;
  bool absent_;
};

inline void require_process(const char* kind, int size, int process, Where where) {
  if (size < 1 || process < 0 || process >= size)
    throw UsageError(
        "a " + std::string(kind) + " transport was asked for process " + std::to_string(process) +
            " of " + std::to_string(size) +
            "; give a number from 0 to one less than the processes, of which there is at "
            "least one",
        where);
}
}  // namespace detail

/// Returns the transport of process `process` of `size`, without communication. Throws UsageError
/// when there is no such process.
inline std::shared_ptr<Transport> dry_transport(int size, int process = 0,
                                                Where where = Where::here()) {
  detail::require_process("dry", size, process, where);
  return std::make_shared<detail::DryTransport>(detail::all_members(size), process,
                                                TransportSettings{});
}

}  // namespace tessera
