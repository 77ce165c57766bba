// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Writes copies of a process's parts of a file in a thread of its own, while the program goes on.
///
///     BackgroundWrite write(mesh, path, {header, bytes}, memory, site);
///     write.put(data, bytes, offset);      // as often as there are parts
///     write.seal();
///     write.finish(site);                  // all processes: the file has its name
///
/// Laws: the copies that wait to be written take at most `memory` bytes, or are one part; the old
/// file is what it was until finish() returns; the thread calls neither MPI nor Kokkos.
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/io/detail/replacement.hpp>

namespace tessera::detail {

class BackgroundWrite {
 public:
  /// Begins the file. Collective over the mesh; throws FileError, the same on every process.
  BackgroundWrite(std::shared_ptr<MeshCore> mesh, const std::string& path, const NewFile& made,
                  Index memory, CallSite site)
      : mesh_(std::move(mesh)), memory_(memory), file_(*mesh_, path, made, site) {
    try {
      file_.all(site, [this] { thread_ = std::thread([this] { write_parts(); }); });
    } catch (...) {
      end();
      throw;
    }
  }
  BackgroundWrite(const BackgroundWrite&) = delete;
  BackgroundWrite& operator=(const BackgroundWrite&) = delete;
  /// Where nobody finished it the new file goes.
  ~BackgroundWrite() { end(); }

  /// Copies a part that is to lie at `offset`; waits while the copies would take too much memory.
  void put(const char* data, Index bytes, Index offset) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_ == 0 || held_ + bytes <= memory_ || failed(); });
    if (failed()) return;
    lock.unlock();
    Part part{offset, std::vector<char>(static_cast<std::size_t>(bytes))};
    std::memcpy(part.bytes.data(), data, part.bytes.size());
    lock.lock();
    held_ += bytes;
    total_ += bytes;
    parts_.push_back(std::move(part));
    changed_.notify_all();
  }
  /// Says that there are no further parts.
  void seal() {
    const std::lock_guard lock(mutex_);
    sealed_ = true;
    changed_.notify_all();
  }
  /// Returns whether this process's parts are on the disk, or could not be written.
  bool ended() const { return ended_; }
  /// Return how many bytes of this process's are to be written and have been.
  Index total() const { return total_; }
  Index done() const { return done_; }
  /// Waits until ended(). Communication: none.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_.load(); });
  }
  const std::shared_ptr<MeshCore>& mesh() const { return mesh_; }

  /// Waits for the parts of all processes and gives the file its name. A second call returns, or
  /// throws, as the first. Collective over the mesh. Throws FileError, the same on every process.
  void finish(CallSite site) {
    if (!outcome_.has_value()) {
      wait();
      try {
        file_.all(site, [&] {
          if (failed()) throw FileError(complaint_);
        });
        file_.commit(site);
        outcome_.emplace();
      } catch (const FileError& error) {
        outcome_ = complaint_of([&] { throw error; });
      }
    }
    if (!outcome_->empty()) throw FileError(*outcome_, site.where);
  }

 private:
  struct Part {
    Index offset = 0;
    std::vector<char> bytes;
  };

  void end() {
    seal();
    if (thread_.joinable()) thread_.join();
  }
  bool failed() const { return !complaint_.empty(); }
  void write_parts() {
    const std::string complaint = complaint_of([&] {
      for (;;) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return sealed_ || !parts_.empty(); });
        if (parts_.empty()) break;
        const Part part = std::move(parts_.front());
        parts_.pop_front();
        lock.unlock();
        const auto bytes = static_cast<Index>(part.bytes.size());
        file_.file().write(part.bytes.data(), bytes, part.offset);
        lock.lock();
        held_ -= bytes;
        done_ += bytes;
        changed_.notify_all();
      }
      file_.close();
    });
    const std::lock_guard lock(mutex_);
    complaint_ = complaint;
    parts_.clear();
    ended_ = true;
    changed_.notify_all();
  }

  std::shared_ptr<MeshCore> mesh_;
  Index memory_;
  FileOfAll file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Part> parts_;
  Index held_ = 0;  ///< bytes of copies
  std::atomic<Index> total_ = 0, done_ = 0;
  bool sealed_ = false;
  std::atomic<bool> ended_ = false;
  std::string complaint_;               ///< of the thread
  std::optional<std::string> outcome_;  ///< of finish(): the error, or nothing
  std::thread thread_;                  ///< ends before the other members do
};

/// The writes that this process has begun and not forgotten, oldest first. Those of a mesh are the
/// same on all its processes.
inline std::vector<std::weak_ptr<BackgroundWrite>>& begun_writes() {
  thread_local std::vector<std::weak_ptr<BackgroundWrite>> begun;
  return begun;
}
/// Ends the writes that are under way, so that there are never two: those of this mesh get their
/// names, of others this process's parts are waited for. Collective over the mesh.
inline void end_writes(const MeshCore& mesh, CallSite site) {
  for (const std::weak_ptr<BackgroundWrite>& one : std::exchange(begun_writes(), {})) {
    const std::shared_ptr<BackgroundWrite> write = one.lock();
    if (write == nullptr) continue;
    if (write->mesh().get() == &mesh) {
      (void)complaint_of([&] { write->finish(site); });  // whoever waits for it is told
      continue;
    }
    write->wait();
    begun_writes().push_back(write);
  }
}

}  // namespace tessera::detail
