// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Files of arrays written and read by plain loops, and round trips of tensors through files that
/// are compared with them.
///
///     std::string wrong = support::npy_case(mesh, random, folder);      // collective over the mesh
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"
#include "support/reference.hpp"

namespace support {

/// A folder of this test's own, removed when it goes.
class Folder {
 public:
  explicit Folder(const std::string& name) : Folder(name, std::to_string(::getpid())) {}
  Folder(const std::string& name, const std::string& suffix)
      : path_(std::filesystem::temp_directory_path() / (name + suffix)) {
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  long files() const {
    return std::distance(std::filesystem::directory_iterator(path_),
                         std::filesystem::directory_iterator{});
  }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Returns a file of `extents` elements of `type`; byte k of element i (row-major) is `byte(i, k)`,
/// lowest first.
template <class Byte>
std::string npy_file(DType type, const Extents& extents, bool big_endian, bool fortran_order,
                     const Byte& byte) {
  const auto unit = static_cast<Index>(size_of(type));
  const Index part = is_complex(type) ? unit / 2 : unit;
  std::string text = std::string("{'descr': '") +
                     (unit == 1 || type == DType::bf16 ? '|'
                      : big_endian                     ? '>'
                                                       : '<') +
                     std::string(detail::npy_code(type)) +
                     "', 'fortran_order': " + (fortran_order ? "True" : "False") + ", 'shape': (";
  for (Index extent : extents) text += std::to_string(extent) + ",";
  text += ")}\n";
  std::string bytes("\x93NUMPY\x02\x00", 8);
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  bytes += text;
  const Extents strides = detail::row_major_strides(extents);
  Extents stored = extents;  // in the order in which elements lie in the file
  if (fortran_order) std::reverse(stored.begin(), stored.end());
  for_each_index(stored, [&](const Extents& at) {
    Index i = 0;
    for (int d = 0; d < at.size(); ++d) i += at[fortran_order ? at.size() - 1 - d : d] * strides[d];
    for (Index k = 0; k < unit; ++k)
      bytes += static_cast<char>(
          byte(i, big_endian && type != DType::bf16 ? k / part * part + (part - 1 - k % part) : k));
  });
  return bytes;
}

/// The element types that go through files in tests: all.
inline const std::vector<DType> npy_types = [] {
  std::vector<DType> types;
  for (int type = 0; type < dtypes; ++type) types.push_back(static_cast<DType>(type));
  return types;
}();

/// The bytes of element i of the tests' arrays; those of truth values are 0 and 1.
inline unsigned char npy_byte(DType type, Index i, Index k) {
  const auto byte = static_cast<unsigned char>(element(9, 16 * i + k, 1) + 4);
  return is_boolean(type) ? byte % 2 : byte;
}
inline std::vector<char> block_bytes(const TensorCore& x) {
  std::vector<char> bytes(static_cast<std::size_t>(x.local_size()) * size_of(x.type()));
  tessera::detail::fence();
  detail::copy_to_host(bytes.data(), x.data(), static_cast<Index>(bytes.size()));
  return bytes;
}

/// Reads a file made by plain loops, writes it under another spec, and compares both. `type`: of
/// the elements.
inline std::string npy_case(const std::shared_ptr<MeshCore>& mesh, Random& random,
                            const Folder& folder, DType type) {
  const int rank = random.below(4);
  Extents extents;
  for (int d = 0; d < rank; ++d)
    extents.push_back(random.of<Index>({1, 2, 3, 5, 8, 13, random.chance(10) ? 0 : 6}));
  const Sharding s = some_sharding(random, rank, mesh->shape().rank());
  const Sharding t = some_sharding(random, rank, mesh->shape().rank());
  const bool big = random.chance(30), fortran = random.chance(40);
  const auto byte = [&](Index i, Index k) { return npy_byte(type, i, k); };
  const std::string path = folder.file("x.npy");
  const std::string label = std::string(name_of(type)) + " " + to_string(extents) + " " +
                            describe(s, mesh->shape()) + " to " + describe(t, mesh->shape()) +
                            " on " + describe(mesh->shape()) + (big ? ", big" : "") +
                            (fortran ? ", fortran" : "") + ": ";
  mesh->barrier();
  if (mesh->process() == 0) write_bytes(path, npy_file(type, extents, big, fortran, byte));
  mesh->barrier();
  const DynamicTensor x = read_npy(mesh, s, path);
  if (!(x.desc() == TensorDesc{type, extents, s}))
    return label + "read as " + describe(x.desc(), mesh->shape());
  std::vector<char> wanted;
  const Extents strides = detail::row_major_strides(extents);
  const Box box = x.box();
  for_each_index(box.extents(), [&](const Extents& at) {
    Index i = 0;
    for (int d = 0; d < rank; ++d) i += (box[d].lo + at[d]) * strides[d];
    for (Index k = 0; k < static_cast<Index>(size_of(type)); ++k)
      wanted.push_back(static_cast<char>(byte(i, k)));
  });
  if (block_bytes(x.core()) != wanted) return label + "other elements are read";
  const std::string other = folder.file("y.npy");
  write_npy(reshard(x, t), other);
  mesh->barrier();
  const std::string written = bytes_of(other);
  mesh->barrier();
  const std::string plain = npy_file(type, extents, false, false, byte);
  const auto elements = static_cast<std::size_t>(volume(extents)) * size_of(type);
  if (written.size() % 64 != elements % 64 || written.size() < elements ||
      written.substr(written.size() - elements) != plain.substr(plain.size() - elements))
    return label + "other elements are written";
  if (folder.files() != 2) return label + "files are left behind";
  return "";
}

}  // namespace support
