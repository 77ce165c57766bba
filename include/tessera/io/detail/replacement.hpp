// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A file that several processes write, which takes its name when all have written.
///
///     write_together(mesh, path, {header, bytes}, site, [&](const std::string& name) {
///       …                                            // each process writes its part of the file
///     });
///
/// Laws: until all have written, the file of that name is what it was; what a writer left that was
/// killed is removed by the next one.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/digest.hpp>
#include <tessera/base/error.hpp>
#include <tessera/comm/complaint.hpp>
#include <tessera/comm/mesh_core.hpp>
#include <tessera/io/detail/file.hpp>
#include <tessera/run/call_site.hpp>

namespace tessera::detail {

/// A file under construction beside the one it replaces; it is removed again unless committed.
class Replacement {
 public:
  Replacement() = default;
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement() {
    if (made_) ::unlink(name().c_str());
  }
  /// Sets the name: of an ordinary file, which will be replaced, or a new one. Throws FileError.
  void take_name(const std::string& path) { path_ = replaced_by_write(path); }
  /// Creates the file on one process, which gives the others its number.
  void make(const std::string& header, Index bytes) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    Digest digest;
    digest.add(static_cast<std::uint64_t>(now));
    digest.add(static_cast<std::uint64_t>(::getpid()));
    number_ = static_cast<std::int64_t>(digest.value() >> 16);
    remove_abandoned();
    file_.emplace(File::open(name(), O_WRONLY | O_CREAT | O_EXCL, 0666));
    made_ = true;
    file_->lock();
    file_->resize(static_cast<Index>(header.size()) + bytes);
    file_->write(header.data(), static_cast<Index>(header.size()), 0);
    file_->sync();
  }
  std::int64_t number() const { return number_; }
  void set_number(std::int64_t number) { number_ = number; }
  std::string name() const {
    char text[24];
    std::snprintf(text, sizeof text, "%012llx", static_cast<unsigned long long>(number_));
    return path_ + mark + text;
  }
  /// Replaces the file of the name by the new one, which gets its permissions.
  void commit() {
    file_->take_permissions(path_);
    if (::rename(name().c_str(), path_.c_str()) != 0)
      throw FileError(File::failure("replaced", path_));
    made_ = false;
    // The name must reach the disk too.
    const int descriptor = ::open(folder().c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
  }

 private:
  static constexpr const char* mark = ".part";
  std::string folder() const {
    const auto slash = path_.rfind('/');
    return slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  }
  /// Removes files that were begun beside this one and whose writers have ended: nobody has them
  /// locked.
  void remove_abandoned() const {
    const auto slash = path_.rfind('/');
    const std::string begin = path_.substr(slash == std::string::npos ? 0 : slash + 1) + mark;
    DIR* const entries = ::opendir(folder().c_str());
    if (entries == nullptr) return;
    std::vector<std::string> found;
    while (const dirent* entry = ::readdir(entries)) {
      const std::string_view name = entry->d_name;
      if (name.size() == begin.size() + 12 && name.starts_with(begin) &&
          name.find_first_not_of("0123456789abcdef", begin.size()) == name.npos)
        found.push_back(entry->d_name);
    }
    ::closedir(entries);
    for (const std::string& name : found) {
      const std::string path = (slash == std::string::npos ? "" : folder()) + name;
      try {
        if (File::open(path, O_WRONLY).lock()) ::unlink(path.c_str());
      } catch (const FileError&) {  // it is another's, or gone
      }
    }
  }

  std::string path_;
  std::int64_t number_ = 0;
  bool made_ = false;
  std::optional<File> file_;  ///< of the process that made it, locked while it is written
};

/// What a new file begins with, and how many bytes come after that.
struct NewFile {
  std::string header;
  Index bytes = 0;
};

/// A new file of which each process of a mesh writes a part. Where a process fails, all throw its
/// FileError, and the old file is unchanged.
class FileOfAll {
 public:
  /// Makes the file and opens it for writing on each process; it holds the header. Communication: a
  /// few integers, in no ledger, as in the functions below. Collective over the mesh.
  FileOfAll(MeshCore& mesh, const std::string& path, const NewFile& made, CallSite site)
      : mesh_(mesh) {
    if (mesh.alone())
      throw UsageError(std::string(site.label) +
                           ": a file is to be written, and on a fake mesh, "
                           "where this process is alone, its parts of other processes would be "
                           "missing; write from a mesh of processes",
                       site.where);
    const bool first = mesh.process() == 0;
    all(site, [&] {
      part_.take_name(path);
      if (first) part_.make(made.header, made.bytes);
    });
    part_.set_number(mesh.gather_facts({part_.number()}, site.where).front());
    all(site, [&] { mine_.emplace(File::open(part_.name(), O_WRONLY)); });
  }
  File& file() { return *mine_; }
  /// Runs a part of the writing on each process. Collective over the mesh.
  template <class Part> void all(CallSite site, const Part& part) {
    const std::string complaint = complaint_of(part);
    fail_together<FileError>(
        mesh_, complaint.empty() ? complaint : std::string(site.label) + ": " + complaint,
        site.where);
  }
  /// Returns when this process's part is on the disk. Communication: none.
  void close() {
    mine_->sync();
    mine_->close();
  }
  /// Gives the file its name, when all processes have closed their parts. Collective over the mesh.
  void commit(CallSite site) {
    all(site, [&] {
      if (mesh_.process() == 0) part_.commit();
    });
  }

 private:
  MeshCore& mesh_;
  Replacement part_;
  std::optional<File> mine_;
};

/// Writes a file of which each process writes a part: write(file) gets the new file, which is open
/// for writing and holds the header; where it calls collective operators it throws after them.
/// Communication: a few integers, in no ledger. Collective over
/// the mesh. Throws FileError, the same on every process; then the old file is unchanged.
template <class Write>
void write_together(MeshCore& mesh, const std::string& path, const NewFile& made, CallSite site,
                    const Write& write) {
  FileOfAll file(mesh, path, made, site);
  file.all(site, [&] {
    write(file.file());
    file.close();
  });
  file.commit(site);
}

}  // namespace tessera::detail
