// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The measured ways of products (kernel/product/product_timing.hpp): kept by the program and, for
/// later programs, in a file for each element type.
///
///     const ProductTable table = known_products();      // measures what is not known
///     const ProductTable agreed = agree_on_products(control, Products::measured);
///
/// Laws: a file that is damaged, of another processor or library, or cannot be read or written is
/// no error; a reader sees a whole file; of two that write at once one prevails, for both.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/detail/variables.hpp>
#include <tessera/comm/products.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/kernel/product/product_timing.hpp>

namespace tessera::detail {

/// Returns the folder of files that are kept between runs: $TESSERA_CACHE_DIR, else
/// $XDG_CACHE_HOME/tessera, else ~/.cache/tessera; empty without any.
inline std::string cache_folder() {
  const std::string own = text_variable("TESSERA_CACHE_DIR");
  if (!own.empty()) return own;
  const auto absolute = [](const char* name) -> std::string {
    const char* const folder = std::getenv(name);
    return folder != nullptr && *folder == '/' ? folder : "";
  };
  const std::string caches = absolute("XDG_CACHE_HOME"), home = absolute("HOME");
  if (!caches.empty()) return caches + "/tessera";
  return home.empty() ? home : home + "/.cache/tessera";
}

/// Makes a folder and those above it, where they are missing.
inline void make_folders(const std::string& path) {
  for (std::size_t end = path.find('/', 1); end != path.npos; end = path.find('/', end + 1))
    ::mkdir(path.substr(0, end).c_str(), 0777);
  ::mkdir(path.c_str(), 0777);
}

/// Returns a file's text; empty when it cannot be read.
inline std::string text_of_file(const std::string& path) {
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char part[4096];
  for (ssize_t n = 0; (n = ::read(file, part, sizeof part)) > 0;)
    text += std::string_view(part, static_cast<std::size_t>(n));
  ::close(file);
  return text;
}

/// Returns what the first processor of /proc/cpuinfo says that does not change.
inline std::string processor_text() {
  const std::string all = text_of_file("/proc/cpuinfo");
  std::string_view rest = all;
  rest = rest.substr(0, rest.find("\n\n"));
  std::string text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() < rest.size() ? line.size() + 1 : rest.size());
    for (const std::string_view name : {"vendor_id", "cpu family", "model", "stepping",
                                        "cache size", "CPU implementer", "CPU part", "CPU variant"})
      if (line.substr(0, name.size()) == name) {
        text += line;
        text += '\n';
        break;
      }
  }
  return text;
}

/// A file that is made whole, beside its place, and then put there.
class CacheFile {
 public:
  explicit CacheFile(std::string path) : path_(std::move(path)) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    beside_ = path_ + "." + std::to_string(::getpid()) + "." + std::to_string(now);
    file_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  }
  CacheFile(const CacheFile&) = delete;
  CacheFile& operator=(const CacheFile&) = delete;
  ~CacheFile() {
    if (file_ < 0) return;
    ::close(file_);
    ::unlink(beside_.c_str());
  }
  bool made() const { return file_ >= 0; }
  bool write(std::string_view text) {
    return ::write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  /// Puts it in its place unless a file is there; returns whether it did.
  bool put() { return ::link(beside_.c_str(), path_.c_str()) == 0; }
  bool replace() { return ::rename(beside_.c_str(), path_.c_str()) == 0; }

 private:
  std::string path_, beside_;
  int file_;
};

/// Returns the row that `path` keeps for `key`; without one, the row that `measure` returns, which
/// the file keeps from then on. Where the file cannot be written nothing is measured: the next run
/// would do it again.
template <class Measure>
ProductRow kept_products(const std::string& path, const std::string& key, const Measure& measure) {
  ProductRow row{};
  if (read_products(text_of_file(path), key, row)) return row;
  CacheFile file(path);
  if (!file.made()) return row;
  row = measure();
  if (!file.write(product_text(key, row))) return {};
  // Another process may have been first; what is damaged is replaced.
  if (!file.put() && !read_products(text_of_file(path), key, row)) file.replace();
  return row;
}

/// What this program knows, for each number of threads with which it has asked.
class KnownProducts {
 public:
  static KnownProducts& all() {
    static KnownProducts known;
    return known;
  }
  /// Returns the table for this thread's lane; what is not known is read, or measured.
  ProductTable table() {
    const std::lock_guard lock(mutex_);
    const Index threads = host_threads();
    if (const ProductTable* const known = find(threads)) return *known;
    ProductTable table;
    if (const std::string folder = cache_folder(); kernels_on_host && !folder.empty()) {
      make_folders(folder);
      const std::string where =
          processor_text() + product_libraries() + "threads " + std::to_string(threads) + '\n';
      for (int type = 0; type < product_type_count; ++type)
        table.set(type, row(folder, where, product_types[type]));
    }
    known_ = new Known{threads, table, known_};
    return table;
  }
  /// Takes over what other processes know, unless this one knows.
  void adopt(const ProductTable& table) {
    const std::lock_guard lock(mutex_);
    if (find(host_threads()) == nullptr) known_ = new Known{host_threads(), table, known_};
  }

 private:
  struct Known {
    Index threads;
    ProductTable table;
    const Known* next;
  };

  const ProductTable* find(Index threads) const {
    for (const Known* known = known_; known != nullptr; known = known->next)
      if (known->threads == threads) return &known->table;
    return nullptr;
  }
  /// A failure to measure, such as a lack of memory, leaves the fixed rule.
  static ProductRow row(const std::string& folder, const std::string& where, DType type) {
    if (kernel_table<GemmKernels>[static_cast<int>(type)] == nullptr) return {};
    const std::string key = where + "elements " + std::string(name_of(type)) + '\n';
    char name[40];
    std::snprintf(name, sizeof name, "/products-%016llx",
                  static_cast<unsigned long long>(mix(0, key)));
    try {
      return kept_products(folder + name, key, [&] { return measure_products(type); });
    } catch (const std::exception&) {
      return {};
    }
  }

  std::mutex mutex_;
  const Known* known_ = nullptr;  ///< to the program's end
};

/// Returns the ways of products for one process.
inline ProductTable own_products(Products products) {
  if (!kernels_on_host) return {};
  switch (products) {
    case Products::measured:
      return KnownProducts::all().table();
    case Products::blas:
      return ProductTable(ProductWay::blas);
    case Products::onednn:
      return ProductTable(ProductWay::onednn);
    case Products::blis:
      return ProductTable(ProductWay::blis);
    default:
      return {};
  }
}

/// Returns the ways of products for a mesh: measured, those that the control group's first process
/// knows. Communication: an all-reduce of a few integers where they are measured and there are
/// several processes. Collective over: the group.
inline ProductTable agree_on_products(Group& control, Products products) {
  if (!kernels_on_host || products != Products::measured || control.size() == 1)
    return own_products(products);
  ProductWords all;
  for (std::int64_t& word : all.words) word = max_int64;
  if (control.own() == 0) all = words_of(own_products(products));
  // The least, since a sum would need the kernels of int64.
  control.run(control_all_reduce(control, Reduction::min, ProductWords::count), all.words,
              all.words);
  ProductTable table = table_of(all);
  KnownProducts::all().adopt(table);
  return table;
}

}  // namespace tessera::detail
