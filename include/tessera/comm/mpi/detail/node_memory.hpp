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
/// nothing is left behind when a process ends, however and whenever it ends: the memory has no
/// name, or, where the others cannot reach it so, one that its maker holds a lock on until all have
/// it.
#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
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
  std::vector<Index> begins;  ///< where the parts begin, in bytes; then where the last one ends
  int own = 0;                ///< this process's MPI rank

  static constexpr Index page = 4096;

  std::byte* part(int rank) const { return all.get() + begins[static_cast<std::size_t>(rank)]; }
  /// Returns this process's part.
  SharedMemory memory() const {
    if (all == nullptr) return {};
    const auto i = static_cast<std::size_t>(own);
    return {part(own), begins[i + 1] - begins[i]};
  }
};

/// What the others need to open the first process's file.
struct FileFacts {
  std::int64_t bytes;  ///< of the sender's part; negative: it has no room
  std::int64_t process = 0, number = 0, device = 0, node = 0;
};

/// A file of shared memory, until all have mapped it: without a name, which the others reach
/// through /proc, or, `named`, in the folder of shared memory.
class SharedFile {
 public:
  explicit SharedFile(bool named) : named_(named) {}
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile() {
    if (made_) ::unlink(name_.c_str());
    if (file_ >= 0) ::close(file_);
  }
  /// Makes the file, of which `facts` tells the others; returns false where it cannot.
  bool make(FileFacts& facts) {
    facts.process = ::getpid();
    if (named_) {
      facts.number = std::chrono::steady_clock::now().time_since_epoch().count();
      name_ = name_of(facts);
      file_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      made_ = file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) == 0;
    } else {
      facts.number = file_ = ::memfd_create("tessera", MFD_CLOEXEC);
    }
    struct stat stat {};
    if (file_ < 0 || ::fstat(file_, &stat) != 0) return false;
    facts.device = static_cast<std::int64_t>(stat.st_dev);
    facts.node = static_cast<std::int64_t>(stat.st_ino);
    return true;
  }
  /// Opens the file of another process, if that is the one that it made: in another container a
  /// process may have the same number.
  bool open(const FileFacts& facts) {
    file_ = ::open(name_of(facts).c_str(), O_RDWR | O_CLOEXEC);
    struct stat stat {};
    return file_ >= 0 && ::fstat(file_, &stat) == 0 &&
           facts.device == static_cast<std::int64_t>(stat.st_dev) &&
           facts.node == static_cast<std::int64_t>(stat.st_ino);
  }
  bool resize(Index bytes) { return ::ftruncate(file_, static_cast<off_t>(bytes)) == 0; }
  /// Returns null where it cannot be mapped.
  std::shared_ptr<std::byte> map(Index bytes) const {
    const auto size = static_cast<std::size_t>(bytes);
    void* const begin = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (begin == MAP_FAILED) return nullptr;
    return {static_cast<std::byte*>(begin), [size](std::byte* memory) { ::munmap(memory, size); }};
  }

 private:
  std::string name_of(const FileFacts& facts) const {
    const std::string process = std::to_string(facts.process),
                      number = std::to_string(facts.number);
    return named_ ? shared_folder + ("/tessera-" + process) + "-" + number
                  : "/proc/" + process + "/fd/" + number;
  }

  bool named_;
  std::string name_;
  int file_ = -1;
  bool made_ = false;
};

/// Removes named files whose makers were killed: those that this user owns, whose maker's number no
/// process has, and on which nobody holds a lock.
inline void remove_left_files() {
  DIR* const folder = ::opendir(shared_folder);
  if (folder == nullptr) return;
  while (const dirent* const entry = ::readdir(folder)) {
    long long process = 0, number = 0;
    if (std::sscanf(entry->d_name, "tessera-%lld-%lld", &process, &number) != 2) continue;
    if (process <= 0 || ::kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH) continue;
    const std::string name = std::string(shared_folder) + "/" + entry->d_name;
    const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    struct stat stat {};
    if (::fstat(file, &stat) == 0 && stat.st_uid == ::geteuid() &&
        ::flock(file, LOCK_EX | LOCK_NB) == 0)
      ::unlink(name.c_str());
    ::close(file);
  }
  ::closedir(folder);
}

/// Returns `bytes` from each process of `comm`, all on one node; nothing on all where one of them
/// finds no `room` or cannot have it. wait(request, function) waits for a call. Collective over:
/// these. Communication: two small calls; four where the file needs a name.
template <class Wait>
NodeMemory share_on_node(Index bytes, bool room, MPI_Comm comm, const Wait& wait,
                         bool named = false) {
  NodeMemory made;
  int size = 0;
  check(MPI_Comm_rank(comm, &made.own), "MPI_Comm_rank");
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  FileFacts facts{bytes};
  SharedFile file(named);
  const bool leads = made.own == 0;
  bool there = !leads || file.make(facts);
  if (!room) facts.bytes = -1;
  constexpr int words = sizeof(FileFacts) / sizeof(std::int64_t);
  std::vector<std::int64_t> all(words * static_cast<std::size_t>(size));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&facts, words, MPI_INT64_T, all.data(), words, MPI_INT64_T, comm, &request),
        "MPI_Iallgather");
  wait(&request, "MPI_Iallgather");

  made.begins.push_back(0);
  for (std::size_t i = 0; i < all.size(); i += words) {  // the bytes of each
    if (all[i] < 0) return {};
    made.begins.push_back(made.begins.back() + round_up(all[i], NodeMemory::page));
  }
  const Index total = max_of(made.begins.back(), NodeMemory::page);
  there =
      there && (leads ? file.resize(total) : file.open({all[0], all[1], all[2], all[3], all[4]}));
  if (there) made.all = file.map(total);
  int everywhere = made.all != nullptr ? 1 : 0;
  check(MPI_Iallreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, comm, &request),
        "MPI_Iallreduce");
  wait(&request, "MPI_Iallreduce");
  if (everywhere != 0) return made;
  return named ? NodeMemory{} : share_on_node(bytes, room, comm, wait, true);
}

/// Memory that was used and is kept for the next use, since its pages are there: in the same order
/// on all processes of a node.
class SpareMemory {
 public:
  void add(const std::vector<NodeMemory>& memories) {
    kept_.insert(kept_.end(), memories.begin(), memories.end());
  }
  /// Returns memory of these bytes; none where none is kept. Then only the latest stay: a program
  /// that makes a mesh of another size each time would hold the memory of all of them.
  NodeMemory take(Index bytes) {
    NodeMemory taken;
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const NodeMemory& memory) {
      return memory.memory().bytes == bytes;
    });
    if (found == kept_.end()) {
      if (std::ssize(kept_) > latest) kept_.erase(kept_.begin(), kept_.end() - latest);
      return taken;
    }
    taken = *found;
    kept_.erase(found);
    return taken;
  }
  void clear() { kept_.clear(); }

 private:
  static constexpr std::ptrdiff_t latest = 4;
  std::vector<NodeMemory> kept_;
};

}  // namespace tessera::detail
