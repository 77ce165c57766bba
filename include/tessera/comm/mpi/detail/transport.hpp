// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The transport between the processes of an MPI communicator.
///
///     auto transport = std::make_shared<MpiTransport>(context, settings);
///
/// Laws: those of comm/mpi/transport.hpp.
#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/memory.hpp>
#include <tessera/comm/detail/solo_group.hpp>
#include <tessera/comm/mpi/detail/context.hpp>
#include <tessera/comm/mpi/detail/group.hpp>
#include <tessera/comm/mpi/detail/shared_context.hpp>
#include <tessera/comm/mpi/transport.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera {
namespace detail {

/// What a transport and its groups hold together; the last of them releases it.
struct MpiShare {
  std::shared_ptr<MpiContext> context;
  std::uint64_t id = 0;
  MpiHandles handles;
  MpiShare(std::shared_ptr<MpiContext> of, std::uint64_t number)
      : context(std::move(of)), id(number) {}
  MpiShare(const MpiShare&) = delete;
  MpiShare& operator=(const MpiShare&) = delete;
  ~MpiShare() { context->put_down(id, std::move(handles)); }
};

class MpiTransport final : public Transport {
 public:
  /// Collective over: all processes.
  MpiTransport(std::shared_ptr<MpiContext> context, const TransportSettings& settings)
      : context_(std::move(context)),
        settings_(settings),
        share_(std::make_shared<MpiShare>(context_, context_->open(settings.time_limit))) {
    if (settings_.wait == Wait::automatic || simulated_processes)
      settings_.wait = context_->automatic_wait();
    if (simulated_processes || settings_.device_memory ||
        !may_share(settings_.shared, context_->core_for_each_process()))
      settings_.shared = Shared::off;
    comm_ = context_->comm();
    if (size() == 1) return;  // it needs no calls
    const MpiContext::Watched watched(*context_, settings_.time_limit);
    comm_ = copy(context_->comm());
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    share_->handles.add(0, comm_);
  }

  std::string name() const override { return "MPI"; }
  int process() const override { return context_->process(); }
  int size() const override { return context_->size(); }
  const TransportSettings& settings() const override { return settings_; }
  std::vector<int> processes() const override { return context_->processes(); }
  int sharers() const override { return context_->node_size(); }
  std::vector<int> nodes() const override { return context_->nodes(); }
  Blackboard* blackboard() override { return context_->blackboard(); }

  std::shared_ptr<Group> group(const std::vector<int>& members, std::uint64_t key) override {
    context_->require_open();
    if (members == std::vector{process()}) return std::make_shared<SoloGroup>();
    const MpiContext::Watched watched(*context_, settings_.time_limit);
    MPI_Comm comm = members == all_members(size()) ? copy(comm_) : communicator(members, key);
    if (comm == MPI_COMM_NULL)
      throw CommunicationError(
          "process " + std::to_string(process()) +
          " asked for a group that it is not a member of; only members make a group");
    check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    share_->handles.add(key, comm);
    return std::make_shared<MpiGroup>(std::shared_ptr<MpiHandles>(share_, &share_->handles),
                                      context_, comm, members, settings_);
  }

  std::shared_ptr<Transport> duplicate(const TransportSettings& settings) override {
    return std::make_shared<MpiTransport>(context_, settings);
  }

  SharedMemory reserve_shared(Index bytes) override {
    context_->require_open();
    if (size() == 1 || simulated_processes) return {};
    const MpiContext::Watched watched(*context_, settings_.time_limit);
    std::int64_t agreed = fitting(bytes);
    join_numbers(&agreed, 1, MPI_INT64_T, comm_, [&](MPI_Request& request) {
      context_->wait(&request, 1, settings_.wait, "MPI_Iallreduce");
    });
    if (agreed <= 0) return {};
    return context_->take_memory(agreed, share_->handles);
  }

  void barrier() override {
    context_->require_open();
    const MpiContext::Watched watched(*context_, settings_.time_limit);
    if (simulated_processes) return check(MPI_Barrier(comm_), "MPI_Barrier");
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
    context_->wait(&request, 1, settings_.wait, "MPI_Ibarrier");
  }

  [[noreturn]] void abort(const std::string& message, int exit_code) override {
    context_->abort(message, exit_code);
  }

  /// Returns the context that all transports of this communicator share.
  MpiContext& context() { return *context_; }

 protected:
  std::shared_ptr<Transport> subset(const std::vector<int>& members) override {
    context_->require_open();
    const auto& context = context_->among(members, [&] {
      const MpiContext::Watched watched(*context_, settings_.time_limit);
      return communicator(members, members_key);
    });
    return std::make_shared<MpiTransport>(context, settings_);
  }

 private:
  static constexpr std::uint64_t members_key = 32'748;  // a tag that no group of a mesh uses
  /// A duplicate of a communicator can be awaited by napping; making a communicator of some of the
  /// processes blocks, and is slow with more processes than cores.
  MPI_Comm copy(MPI_Comm of) const {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    return context_->make_communicator([&] {
      if (simulated_processes) {  // SMPI has no MPI_Comm_idup
        check(MPI_Comm_dup(of, &comm), "MPI_Comm_dup");
        return comm;
      }
      check(MPI_Comm_idup(of, &comm, &request), "MPI_Comm_idup");
      context_->wait(&request, 1, settings_.wait, "MPI_Comm_idup");
      return comm;
    });
  }
  MPI_Comm communicator(const std::vector<int>& members, std::uint64_t key) const {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    check(MPI_Comm_group(comm_, &all), "MPI_Comm_group");
    check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some),
          "MPI_Group_incl");
    context_->make_communicator([&] {
      check(MPI_Comm_create_group(
                comm_, some, static_cast<int>(key == members_key ? key : key % members_key), &comm),
            "MPI_Comm_create_group");
      return comm;
    });
    check(MPI_Group_free(&some), "MPI_Group_free");
    check(MPI_Group_free(&all), "MPI_Group_free");
    return comm;
  }

  /// Returns how many bytes this process may have; 0 when the node's shared memory is too small.
  /// Making it succeeds even so, and the first touch beyond the limit is a SIGBUS.
  Index fitting(Index bytes) const {
    const Index share = shared_memory_free() / context_->node_size();
    constexpr Index page = NodeMemory::page;
    if (bytes < 0) return min_of(Index{256} << 20, share / 4) / page * page;
    return bytes <= share / 8 * 7 ? round_up(bytes, page) : 0;
  }

  std::shared_ptr<MpiContext> context_;
  TransportSettings settings_;
  std::shared_ptr<MpiShare> share_;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace detail

TESSERA_FUNCTION std::shared_ptr<Transport> mpi_transport(MPI_Comm comm,
                                                          const TransportSettings& settings,
                                                          Where where) {
  if (comm == MPI_COMM_NULL)
    throw MeshError(
        "a transport is made from MPI_COMM_NULL, as MPI_Comm_split and MPI_Comm_create return on "
        "processes that are in no part; make it, and its meshes, on the other processes only",
        where);
  return std::make_shared<detail::MpiTransport>(
      detail::shared_context(comm, settings.time_limit, where), settings);
}

}  // namespace tessera
