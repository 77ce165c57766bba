// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Memory that the processes of a node share. MPI has it too (MPI_Win_allocate_shared), but makes
/// it by blocking collectives, which spin: with eight processes on two cores that takes as long as
/// a hundred small messages.
///
///     NodeMemory memory = share_on_node(bytes, true, node, [&](MPI_Request* request, const char* of) { … });
///     memory.part(2);   // where the part of MPI rank 2 of `node` begins, here
///
/// Laws: all processes get the memory or none does; a part begins at a page and is zero at first;
/// nothing is left behind when a process ends, however it ends, but for the moment of the making.
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/comm/mpi/detail/error.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera::detail {

inline constexpr const char* shared_folder = "/dev/shm";

/// Returns how many bytes of the node's shared memory are free; 0 where it has none.
inline Index shared_memory_free() {
  struct statvfs stat {};
  if (statvfs(shared_folder, &stat) != 0) return 0;
  return static_cast<Index>(stat.f_bavail) * static_cast<Index>(stat.f_frsize);
}
/// Returns whether `bytes` for each process of the node are a modest part of that.
inline bool shared_memory_has(Index bytes, int processes) {
  return bytes <= shared_memory_free() / processes / 4;
}

/// A part from each process of a communicator, all mapped here.
struct NodeMemory {
  std::shared_ptr<std::byte> all;  ///< null: there is none
  std::vector<Index> begins;       ///< of the parts, in bytes; and where the last one ends
  int own = 0;                     ///< this process's MPI rank

  static constexpr Index page = 4096;

  std::byte* part(int rank) const { return all.get() + begins[static_cast<std::size_t>(rank)]; }
  /// Returns this process's part.
  SharedMemory memory() const {
    if (all == nullptr) return {};
    const auto i = static_cast<std::size_t>(own);
    return {part(own), begins[i + 1] - begins[i]};
  }
};

/// A file of shared memory, until all have mapped it.
class SharedFile {
 public:
  explicit SharedFile(const std::string& name) : name_(name) {}
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile() {
    if (file_ >= 0) ::close(file_);
    if (made_) ::unlink(name_.c_str());
  }
  bool make() {
    file_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return made_ = file_ >= 0;
  }
  bool open() { return (file_ = ::open(name_.c_str(), O_RDWR | O_CLOEXEC)) >= 0; }
  bool resize(Index bytes) { return ::ftruncate(file_, static_cast<off_t>(bytes)) == 0; }
  /// Returns null where it cannot be mapped.
  std::shared_ptr<std::byte> map(Index bytes) const {
    const auto size = static_cast<std::size_t>(bytes);
    void* const begin = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (begin == MAP_FAILED) return nullptr;
    return {static_cast<std::byte*>(begin), [size](std::byte* memory) { ::munmap(memory, size); }};
  }

 private:
  std::string name_;
  int file_ = -1;
  bool made_ = false;
};

/// Returns `bytes` from each process of `comm`, all on one node; nothing on all where one of them
/// finds no `room` or cannot have it. wait(request, function) waits for a call. Collective over:
/// these. Communication: two small calls.
template <class Wait>
NodeMemory share_on_node(Index bytes, bool room, MPI_Comm comm, const Wait& wait) {
  NodeMemory made;
  int size = 0;
  check(MPI_Comm_rank(comm, &made.own), "MPI_Comm_rank");
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  const auto name_of = [](std::int64_t process, std::int64_t number) {
    return shared_folder + ("/tessera-" + std::to_string(process) + "-") + std::to_string(number);
  };
  // The first process's number and its clock name the file.
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::int64_t facts[3] = {bytes, ::getpid(), static_cast<std::int64_t>(now)};
  SharedFile own(name_of(facts[1], facts[2]));
  const bool leads = made.own == 0;
  if (!room || (leads && !own.make())) facts[0] = -1;
  std::vector<std::int64_t> all(3 * static_cast<std::size_t>(size));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(facts, 3, MPI_INT64_T, all.data(), 3, MPI_INT64_T, comm, &request),
        "MPI_Iallgather");
  wait(&request, "MPI_Iallgather");

  made.begins.push_back(0);
  for (std::size_t i = 0; i < all.size(); i += 3) {
    if (all[i] < 0) return {};
    made.begins.push_back(made.begins.back() + round_up(all[i], NodeMemory::page));
  }
  const Index total = max_of(made.begins.back(), NodeMemory::page);
  SharedFile others(name_of(all[1], all[2]));
  SharedFile& file = leads ? own : others;
  if (leads ? file.resize(total) : file.open()) made.all = file.map(total);
  int there = made.all != nullptr ? 1 : 0;
  check(MPI_Iallreduce(MPI_IN_PLACE, &there, 1, MPI_INT, MPI_MIN, comm, &request),
        "MPI_Iallreduce");
  wait(&request, "MPI_Iallreduce");
  return there != 0 ? made : NodeMemory{};
}

/// Memory that was used and is kept for the next use, since its pages are there: in the same order
/// on all processes of a node.
class SpareMemory {
 public:
  void add(const std::vector<NodeMemory>& memories) {
    kept_.insert(kept_.end(), memories.begin(), memories.end());
  }
  /// Returns memory of these bytes; none where none is kept.
  NodeMemory take(Index bytes) {
    NodeMemory taken;
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const NodeMemory& memory) {
      return memory.memory().bytes == bytes;
    });
    if (found == kept_.end()) return taken;
    taken = *found;
    kept_.erase(found);
    return taken;
  }
  void clear() { kept_.clear(); }

 private:
  std::vector<NodeMemory> kept_;
};

}  // namespace tessera::detail
