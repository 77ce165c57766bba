// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The header of a .npy file (NumPy's format versions 1.0, 2.0 and 3.0) as a value, parsed from
/// bytes or made. io/npy.hpp reads and writes the tensors.
///
///     NpyHeader header;
///     std::string fault = detail::parse_npy_header(bytes, file_size, header);      // "" when it is sound
///     std::string text = detail::npy_header_text(DType::f32, {3, 4});
///
/// Laws: any bytes give a header or a fault, nothing else; parsing a header that was made gives its
/// values again. Source: NumPy's numpy/lib/format.py, "Format Version 1.0" and after.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/base/box.hpp>
#include <tessera/base/dtype.hpp>
#include <tessera/io/detail/json_reader.hpp>

namespace tessera {

struct NpyHeader {
  DType type = DType::f32;
  bool big_endian = false;
  bool fortran_order = false;  ///< the first dimension is the fastest
  Extents extents;
  Index data_offset = 0;  ///< where the elements begin, in bytes
  bool operator==(const NpyHeader&) const = default;
};

namespace detail {
/// The longest header that is read: a longer one has more dimensions, or longer names, than a
/// tensor.
inline constexpr Index npy_most_header = Index{1} << 16;

/// Returns NumPy's name of an element type, without the byte order. bfloat16, which NumPy lacks, is
/// two raw bytes ("V2"), as ml_dtypes and JAX write it: numpy.load(f).view(ml_dtypes.bfloat16).
constexpr std::string_view npy_code(DType type) {
  switch (type) {
    case DType::f16:
      return "f2";
    case DType::bf16:
      return "V2";
    case DType::f32:
      return "f4";
    case DType::f64:
      return "f8";
    case DType::c64:
      return "c8";
    case DType::c128:
      return "c16";
    case DType::i8:
      return "i1";
    case DType::i16:
      return "i2";
    case DType::i32:
      return "i4";
    case DType::i64:
      return "i8";
    case DType::u8:
      return "u1";
    case DType::u16:
      return "u2";
    case DType::u32:
      return "u4";
    case DType::u64:
      return "u8";
    case DType::boolean:
      return "b1";
  }
  return "?";
}

/// Reads the dictionary of a header: a small part of Python's literals.
class NpyDictionary {
 public:
  explicit NpyDictionary(std::string_view text) : text_(text) {}

  /// Returns the fault, or nothing.
  std::string parse(NpyHeader& header) {
    bool descr = false, order = false, shape = false;
    if (!take('{')) return "the header is not a dictionary";
    while (!take('}')) {
      std::string_view key;
      if (!quoted(key) || !take(':')) return "the header is not a dictionary of names and values";
      bool* seen = key == "descr"           ? &descr
                   : key == "fortran_order" ? &order
                   : key == "shape"         ? &shape
                                            : nullptr;
      if (seen == nullptr || *seen)
        return "the header has an unknown or repeated key \"" + printable(key) + "\"";
      *seen = true;
      const std::string fault = key == "descr"           ? type(header)
                                : key == "fortran_order" ? flag(header.fortran_order)
                                                         : tuple(header.extents);
      if (!fault.empty()) return fault;
      if (!take(',') && !at('}')) return "the header's dictionary is broken off";
    }
    if (!descr || !order || !shape) return "the header lacks one of descr, fortran_order and shape";
    skip();
    return next_ == text_.size() ? "" : "the header goes on after its dictionary";
  }

 private:
  void skip() {
    while (next_ < text_.size() &&
           (text_[next_] == ' ' || text_[next_] == '\n' || text_[next_] == '\t'))
      ++next_;
  }
  bool at(char c) {
    skip();
    return next_ < text_.size() && text_[next_] == c;
  }
  bool take(char c) {
    if (!at(c)) return false;
    ++next_;
    return true;
  }
  bool quoted(std::string_view& value) {
    skip();
    if (next_ >= text_.size() || (text_[next_] != '\'' && text_[next_] != '"')) return false;
    const std::size_t end = text_.find(text_[next_], next_ + 1);
    if (end == std::string_view::npos) return false;
    value = text_.substr(next_ + 1, end - next_ - 1);
    next_ = end + 1;
    return true;
  }
  std::string type(NpyHeader& header) {
    std::string_view name;
    if (at('[')) return "its elements are records of several fields; save each field on its own";
    if (!quoted(name)) return "the header's descr is not an element type";
    if (name.find('O') != std::string_view::npos)
      return "its elements are Python objects (" + printable(name) +
             "); convert the array to numbers with astype before saving";
    const char order = name.empty() ? '?' : name.front();
    if (order == '<' || order == '>' || order == '|' || order == '=') name.remove_prefix(1);
    header.big_endian = order == '>';
    for (int i = 0; i < dtypes; ++i) {
      const DType candidate = static_cast<DType>(i);
      if (name != npy_code(candidate)) continue;
      header.type = candidate;
      if (size_of(candidate) == 1) header.big_endian = false;
      if (candidate == DType::bf16 && header.big_endian) break;  // raw bytes have no byte order
      if (order == '|' && size_of(candidate) > 1 && candidate != DType::bf16) break;
      return "";
    }
    return "its elements are " + printable(std::string(1, order)) + printable(name) +
           ", which is not an element type of Tessera; convert the array with astype before saving";
  }
  std::string flag(bool& value) {
    skip();
    for (const bool candidate : {false, true}) {
      const std::string_view word = candidate ? "True" : "False";
      if (text_.substr(next_, word.size()) != word) continue;
      next_ += word.size();
      value = candidate;
      return "";
    }
    return "the header's fortran_order is neither True nor False";
  }
  std::string tuple(Extents& extents) {
    if (!take('(')) return "the header's shape is not a tuple";
    bool comma = true;
    while (!take(')')) {
      skip();
      if (!comma || next_ >= text_.size() || text_[next_] < '0' || text_[next_] > '9')
        return "the header's shape is not a tuple of sizes";
      Index size = 0;
      for (; next_ < text_.size() && text_[next_] >= '0' && text_[next_] <= '9'; ++next_)
        size = saturating_add(saturating_mul(size, 10), text_[next_] - '0');
      if (next_ < text_.size() && text_[next_] == 'L') ++next_;  // Python 2 wrote them so
      if (size == max_int64) return "a size in the header's shape is beyond 64 bits";
      if (extents.size() == max_dims)
        return "the array has more than " + std::to_string(max_dims) + " dimensions";
      extents.push_back(size);
      comma = take(',');
    }
    return "";
  }

  std::string_view text_;
  std::size_t next_ = 0;
};

/// Returns the size in bytes of the header at the start of a file, or 0 when `start` (the file's
/// first 12 bytes, or fewer if it is shorter) does not begin a .npy file.
inline Index npy_header_size(std::string_view start) {
  if (start.size() < 10 || start.substr(0, 6) != "\x93NUMPY") return 0;
  const int major = static_cast<unsigned char>(start[6]);
  const int width = major == 1 ? 2 : 4;
  if (major < 1 || major > 3 || start.size() < static_cast<std::size_t>(8 + width)) return 0;
  Index size = 0;
  for (int i = width - 1; i >= 0; --i)
    size = size << 8 | static_cast<unsigned char>(start[static_cast<std::size_t>(8 + i)]);
  return size + 8 + width;
}

/// Reads a header. `bytes` is the file's beginning, with the whole header if there is one;
/// `file_size` is the size of the whole file. Returns what is wrong, or nothing.
inline std::string parse_npy_header(std::string_view bytes, Index file_size, NpyHeader& header) {
  header = {};
  if (bytes.substr(0, 6) != "\x93NUMPY")
    return "it does not begin as a .npy file does; files of several arrays (.npz) are archives: "
           "save one array with numpy.save";
  const Index size = npy_header_size(bytes.substr(0, 12));
  if (size == 0) return "its format version is none of 1.0, 2.0 and 3.0, or its header is cut off";
  if (size > npy_most_header || size > static_cast<Index>(bytes.size()))
    return "its header of " + std::to_string(size) + " bytes is cut off or too long";
  const Index prefix = bytes[6] == 1 ? 10 : 12;
  std::string fault = detail::NpyDictionary(bytes.substr(static_cast<std::size_t>(prefix),
                                                         static_cast<std::size_t>(size - prefix)))
                          .parse(header);
  if (!fault.empty()) return fault;
  header.data_offset = size;
  bool empty = false;
  Index count = 1;
  for (const Index extent : header.extents) {
    empty = empty || extent == 0;
    count = saturating_mul(count, extent > 0 ? extent : 1);  // strides of empty arrays count too
  }
  const Index wanted = saturating_mul(count, static_cast<Index>(size_of(header.type)));
  if (wanted == max_int64) return "an array of its shape has more than 2^63 bytes";
  if (!empty && wanted > file_size - size)
    return "it is cut off: its header promises " + std::to_string(wanted) +
           " bytes of elements and " + std::to_string(file_size - size) + " are there";
  return "";
}

/// Returns the header of a file of format version 1.0, little endian, row-major; its size is a
/// multiple of 64.
inline std::string npy_header_text(DType type, const Extents& extents) {
  std::string text = "{'descr': '";
  text += size_of(type) == 1 ? "|" : "<";
  text += npy_code(type);
  text += "', 'fortran_order': False, 'shape': (";
  for (int d = 0; d < extents.size(); ++d) {  // two statements, for g++ 12's false -Wrestrict
    if (d > 0) text += ", ";
    text += std::to_string(extents[d]);
  }
  text += extents.size() == 1 ? ",), }" : "), }";
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += static_cast<char>(text.size() >> 8);
  return bytes + text;
}
}  // namespace detail
}  // namespace tessera
