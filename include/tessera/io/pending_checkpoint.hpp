// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A checkpoint that is written while the program goes on; io/checkpoint.hpp begins one.
///
///     PendingCheckpoint saving = begin_checkpoint(mesh, "run.safetensors", weights);
///     weights = map_tensors([](const auto& w) { return w + w; }, weights);  // is not waited for
///     saving.wait();                                                        // now it has its name
///
/// Laws: the file of that name is the old one until wait() returns, and the new one from then on; a
/// run that is killed leaves one of them whole.
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <tessera/io/detail/background_write.hpp>

namespace tessera {

class PendingCheckpoint {
 public:
  /// None: it is done.
  PendingCheckpoint() = default;
  explicit PendingCheckpoint(std::shared_ptr<detail::BackgroundWrite> write)
      : write_(std::move(write)) {}
  PendingCheckpoint(PendingCheckpoint&&) = default;
  PendingCheckpoint& operator=(PendingCheckpoint&& other) noexcept {
    if (this == &other) return *this;
    let_go();
    write_ = std::move(other.write_);
    return *this;
  }
  /// Waits, as wait() does. What fails then ends the use of the mesh; an exception that passes
  /// leaves the old file.
  ~PendingCheckpoint() { let_go(); }

  /// Returns whether this process's part is on the disk, or could not be written, so that wait()
  /// has to wait for other processes at most. Communication: none.
  bool written() const { return write_ == nullptr || write_->ended(); }
  /// Return how many bytes this process has written, and how many it writes. Communication: none.
  Index done() const { return write_ == nullptr ? 0 : write_->done(); }
  Index total() const { return write_ == nullptr ? 0 : write_->total(); }
  /// Returns when the file has its name. Communication: a few integers, in no ledger. Collective
  /// over the checkpoint's mesh. Throws FileError, the same on every process; then the old file is
  /// unchanged.
  void wait(Where where = Where::here()) {
    const std::shared_ptr<detail::BackgroundWrite> write = std::exchange(write_, nullptr);
    if (write != nullptr) write->finish({"begin_checkpoint", where});
  }

 private:
  void let_go() noexcept {
    if (write_ == nullptr) return;
    const std::shared_ptr<MeshCore> mesh = write_->mesh();
    if (std::uncaught_exceptions() > 0) return write_.reset();
    try {
      wait();
    } catch (const std::exception& error) {
      mesh->poison(std::string("a checkpoint under way failed: ") + error.what());
    }
  }

  std::shared_ptr<detail::BackgroundWrite> write_;
};

}  // namespace tessera
