// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A file of the operating system, read and written at offsets; the destructor closes it.
///
///     File file = File::open(path, O_RDONLY);   file.read(buffer, bytes, offset);
///
/// Laws: a read or write does all of it or throws FileError with the file's name and the reason.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>

namespace tessera::detail {

class File {
 public:
  static File open(const std::string& path, int flags, int mode = 0) {
    // Opens without waiting: else opening a named pipe would wait until somebody writes to it.
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
    if (descriptor < 0) throw FileError(failure("opened", path));
    return File(path, descriptor);
  }
  File(File&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  Index size() const {
    struct stat facts {};
    if (::fstat(descriptor_, &facts) != 0) throw FileError(failure("looked at", path_));
    if (!S_ISREG(facts.st_mode))
      throw FileError("\"" + path_ +
                      "\" is not an ordinary file; name one that can be read at any offset");
    return static_cast<Index>(facts.st_size);
  }
  void resize(Index bytes) {
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0)
      throw FileError(failure("made " + std::to_string(bytes) + " bytes long", path_));
  }
  void read(void* to, Index bytes, Index offset) const {
    for (Index done = 0; done < bytes;) {
      const ssize_t n =
          ::pread(descriptor_, static_cast<char*>(to) + done,
                  static_cast<std::size_t>(bytes - done), static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw FileError(failure("read", path_));
      if (n == 0)
        throw FileError(
            "\"" + path_ + "\" ends before byte " + std::to_string(offset + bytes) +
            "; it became shorter while it was read; read it again when nothing writes it");
      done += n;
    }
  }
  void write(const void* from, Index bytes, Index offset) {
    for (Index done = 0; done < bytes;) {
      const ssize_t n =
          ::pwrite(descriptor_, static_cast<const char*>(from) + done,
                   static_cast<std::size_t>(bytes - done), static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) throw FileError(failure("written", path_));
      done += n;
    }
  }
  /// Locks the file for this process until it is closed, or the process ends; returns whether
  /// nobody else has it locked. Where the file system has no locks, nobody can tell.
  bool lock() { return ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0; }
  /// Gives the file the owner and the permissions of the one at `path`, where there is one and as
  /// far as this process may.
  void take_permissions(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return;
    // Others than root may not give files away: then the permissions hold for the new owner.
    [[maybe_unused]] const int given = ::fchown(descriptor_, facts.st_uid, facts.st_gid);
    if (::fchmod(descriptor_, facts.st_mode & 07777) != 0)
      throw FileError(failure("given the permissions of the file that it replaces", path_));
  }
  /// Returns when the contents are on the disk.
  void sync() {
    if (::fsync(descriptor_) != 0) throw FileError(failure("flushed", path_));
  }
  void close() {
    if (::close(std::exchange(descriptor_, -1)) != 0) throw FileError(failure("closed", path_));
  }

  static std::string failure(const std::string& what, const std::string& path) {
    return "\"" + path + "\" could not be " + what + ": " + std::system_category().message(errno);
  }

 private:
  File(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;
};

/// Returns the name of the file that a write to `path` replaces or makes: `path` itself, or the
/// target of a symbolic link. Throws FileError when the path names anything but an ordinary file:
/// replacing that would destroy it.
inline std::string replaced_by_write(const std::string& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT) return path;
    throw FileError(File::failure("looked at", path));
  }
  std::string target = path;
  if (S_ISLNK(facts.st_mode)) {
    char* const real = ::realpath(path.c_str(), nullptr);
    if (real == nullptr)
      throw FileError("\"" + path + "\" is a symbolic link that leads to no file (" +
                      std::system_category().message(errno) +
                      "), and is not replaced; name the file that it is to lead to, or remove it");
    target = real;
    std::free(real);
    if (::stat(target.c_str(), &facts) != 0) throw FileError(File::failure("looked at", target));
  }
  if (S_ISREG(facts.st_mode)) return target;
  const char* kind = S_ISDIR(facts.st_mode)    ? "a directory"
                     : S_ISFIFO(facts.st_mode) ? "a named pipe"
                     : S_ISSOCK(facts.st_mode) ? "a socket"
                                               : "a device";
  throw FileError(
      "\"" + path + "\" is " + kind +
      " and not an ordinary file, and is not replaced; name an ordinary file, or a new one");
}

}  // namespace tessera::detail
