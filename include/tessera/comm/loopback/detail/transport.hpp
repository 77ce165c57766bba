// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The transport between the threads of a loopback run.
///
///     auto transport = std::make_shared<LoopbackTransport>(world, processes, process, context, settings);
///
/// Laws: contexts of duplicates and parts are counted alike by all members, without communication.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/loopback/detail/group.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera::detail {

class LoopbackTransport final : public Transport {
 public:
  /// `processes` are the numbers, in the world, of this transport's processes; `process` is the
  /// index of this one.
  LoopbackTransport(std::shared_ptr<LoopbackWorld> world, std::vector<int> processes, int process,
                    std::uint64_t context, const TransportSettings& settings)
      : world_(std::move(world)),
        processes_(std::move(processes)),
        process_(process),
        context_(context),
        settings_(settings) {}

  std::string name() const override { return "loopback"; }
  int process() const override { return process_; }
  int size() const override { return static_cast<int>(processes_.size()); }
  std::vector<int> processes() const override { return processes_; }
  const TransportSettings& settings() const override { return settings_; }
  int sharers() const override { return world_->size(); }
  Blackboard* blackboard() override { return &world_->board(); }
  int seat() const override { return in_world(process_); }
  int seat_of(int process) const override { return in_world(process); }
  std::uint64_t makings_id() const override { return context_ | std::uint64_t{1} << 63; }

  std::shared_ptr<Group> group(const std::vector<int>& members, std::uint64_t key) override {
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i] == process_)
        return std::make_shared<LoopbackGroup>(world_,
                                               world_->room(context_, key, in_world(members)),
                                               static_cast<int>(i), seat(), settings_);
    throw CommunicationError(
        "process " + std::to_string(process_) +
        " asked for a group that it is not a member of; only members make a group");
  }

  /// All processes duplicate in the same order, so that counting gives them the same context
  /// without communication.
  std::shared_ptr<Transport> duplicate(const TransportSettings& settings) override {
    return std::make_shared<LoopbackTransport>(world_, processes_, process_,
                                               mix(context_, ++duplicates_), settings);
  }

  void barrier() override {
    if (everybody_ == nullptr) everybody_ = group(all_members(size()), ~std::uint64_t{0});
    everybody_->run(control_all_reduce(*everybody_, Reduction::min, 0), nullptr, nullptr);
  }

  [[noreturn]] void abort(const std::string& message, int) override {
    world_->fail({seat(), LoopbackFailure::Kind::exception, message, nullptr});
    throw CommunicationError(message);
  }

 protected:
  /// The members ask in the same order, so that the list and the number of times that it was asked
  /// for give them the same context without communication.
  std::shared_ptr<Transport> subset(const std::vector<int>& members) override {
    std::uint64_t context = mix(context_, std::uint64_t{0x5AB5'E700'0000'0001u});
    int process = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      context = mix(context, static_cast<std::uint64_t>(members[i]));
      if (members[i] == process_) process = static_cast<int>(i);
    }
    context = mix(context, ++subsets_[members]);
    return std::make_shared<LoopbackTransport>(world_, in_world(members), process, context,
                                               settings_);
  }

 private:
  int in_world(int process) const { return processes_[static_cast<std::size_t>(process)]; }
  std::vector<int> in_world(const std::vector<int>& numbers) const {
    std::vector<int> result;
    for (int process : numbers) result.push_back(in_world(process));
    return result;
  }

  std::shared_ptr<LoopbackWorld> world_;
  std::vector<int> processes_;
  int process_;
  std::uint64_t context_;
  std::uint64_t duplicates_ = 0;
  std::map<std::vector<int>, std::uint64_t> subsets_;
  TransportSettings settings_;
  std::shared_ptr<Group> everybody_;
};

}  // namespace tessera::detail
