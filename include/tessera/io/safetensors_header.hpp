// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The header of a .safetensors file as a value, parsed from bytes or made. io/checkpoint.hpp reads
/// and writes the tensors.
///
///     SafetensorsHeader header;
///     std::string fault = detail::parse_safetensors(bytes, file_size, header);   // "" when it is sound
///     std::string text = detail::safetensors_text(header);
///
/// A file is the length of the header in eight bytes, little endian; the header, a JSON object of
/// {"dtype", "shape", "data_offsets"} by name, with texts in "__metadata__"; and the elements of
/// all tensors, row-major, little endian, without gaps.
///
/// Laws: any bytes give a header or a fault, nothing else; parsing a header that was made gives its
/// values again. Source: the format's description in the README of the safetensors project.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/dtype.hpp>
#include <tessera/base/math.hpp>
#include <tessera/base/text/json_text.hpp>
#include <tessera/io/detail/json_reader.hpp>

namespace tessera {

struct SafetensorsEntry {
  std::string name;
  DType type =
      DType::f32;  ///< real, integer or bool: complex numbers are pairs, in a last dimension
  std::vector<Index> shape;
  Index begin = 0;  ///< bytes behind the header
  Index end = 0;
  std::string other_type = {};  ///< the format's name of a type that Tessera has not, as F8_E4M3
  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  ///< in the order in which their elements lie in the file
  std::map<std::string, std::string> metadata;
  Index data_offset = 0;  ///< where the elements begin, in bytes

  const SafetensorsEntry* find(std::string_view name) const {
    for (const SafetensorsEntry& entry : tensors)
      if (entry.name == name) return &entry;
    return nullptr;
  }
  bool operator==(const SafetensorsHeader&) const = default;
};

namespace detail {
/// The longest header that is read, as the format's own library has it.
inline constexpr Index safetensors_most_header = 100'000'000;

/// Returns the format's name of an element type; complex types have none.
constexpr std::string_view safetensors_code(DType type) {
  switch (type) {
    case DType::f16:
      return "F16";
    case DType::bf16:
      return "BF16";
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::i8:
      return "I8";
    case DType::i16:
      return "I16";
    case DType::i32:
      return "I32";
    case DType::i64:
      return "I64";
    case DType::u8:
      return "U8";
    case DType::u16:
      return "U16";
    case DType::u32:
      return "U32";
    case DType::u64:
      return "U64";
    case DType::boolean:
      return "BOOL";
    case DType::c64:
    case DType::c128:
      break;
  }
  return "";
}

/// Reads the header's text: the part of JSON that it is made of.
class SafetensorsParser {
 public:
  explicit SafetensorsParser(std::string_view text) : json_(text) {}

  /// Returns the fault, or nothing.
  std::string parse(SafetensorsHeader& header) {
    std::string fault = json_.object([&](const std::string& key) {
      // What is no tensor and no fact is passed by.
      if (!json_.begins('{')) return skipped(key);
      if (key == "__metadata__")
        return json_.object([&](const std::string& name) {
          if (!json_.begins('"')) return skipped(name);
          std::string value;
          if (!json_.quoted(value)) return "metadata \"" + printable(name) + "\" is broken";
          return header.metadata.emplace(name, std::move(value)).second
                     ? std::string()
                     : "metadata \"" + printable(name) + "\" stands twice";
        });
      header.tensors.emplace_back().name = key;
      return tensor(header.tensors.back());
    });
    if (!fault.empty()) return fault;
    return json_.ended() ? "" : "its header goes on after its JSON object";
  }

 private:
  std::string skipped(const std::string& key) {
    return json_.skip_value() ? "" : "its value of \"" + printable(key) + "\" is broken";
  }
  std::string tensor(SafetensorsEntry& entry) {
    const std::string named = "its tensor \"" + printable(entry.name) + "\" ";
    bool dtype = false, shape = false, offsets = false;
    std::string fault = json_.object([&](const std::string& key) -> std::string {
      if (key != "dtype" && key != "shape" && key != "data_offsets")
        return json_.skip_value() ? "" : named + "has a broken value of \"" + printable(key) + "\"";
      if (std::exchange(key == "dtype" ? dtype : key == "shape" ? shape : offsets, true))
        return named + "has the key \"" + key + "\" twice";
      if (key == "shape")
        return json_.numbers(entry.shape) ? "" : named + "has a shape that is not a list of sizes";
      if (key == "data_offsets") {
        std::vector<Index> ends;
        if (!json_.numbers(ends) || ends.size() != 2)
          return named + "has data_offsets that are no pair";
        entry.begin = ends[0];
        entry.end = ends[1];
        return "";
      }
      std::string code;
      if (!json_.quoted(code)) return named + "has a dtype that is not a text";
      for (int i = 0; i < dtypes; ++i)
        if (entry.type = static_cast<DType>(i);
            !code.empty() && safetensors_code(entry.type) == code)
          return "";
      entry.type = DType::u8;
      entry.other_type = code;
      return code.empty() ? named + "has a dtype without a name" : "";
    });
    if (!fault.empty()) return fault;
    return dtype && shape && offsets ? "" : named + "lacks one of dtype, shape and data_offsets";
  }

  JsonReader json_;
};

/// Returns the number of bytes of the header's text, or -1 when `start`, the file's first eight
/// bytes, cannot begin a file of that size.
inline Index safetensors_length(std::string_view start, Index file_size) {
  if (start.size() < 8) return -1;
  Index length = 0;
  for (std::size_t i = 8; i-- > 0;)
    length = saturating_add(saturating_mul(length, 256), static_cast<unsigned char>(start[i]));
  return length <= safetensors_most_header && length <= file_size - 8 ? length : -1;
}

/// Returns the bytes of a tensor of such a shape, saturated.
inline Index safetensors_bytes(DType type, const std::vector<Index>& shape) {
  Index bytes = static_cast<Index>(size_of(type));
  bool empty = false;
  for (const Index extent : shape) {
    empty = empty || extent == 0;
    if (extent > 0) bytes = saturating_mul(bytes, extent);
  }
  return empty ? 0 : bytes;
}

/// Reads a header. `bytes` is the file's beginning, with the whole header if there is one;
/// `file_size` is the size of the whole file. Returns what is wrong, or nothing.
inline std::string parse_safetensors(std::string_view bytes, Index file_size,
                                     SafetensorsHeader& header) {
  header = {};
  const Index length = safetensors_length(bytes.substr(0, 8), file_size);
  if (length < 0 || static_cast<Index>(bytes.size()) < 8 + length)
    return "it does not begin as a .safetensors file does, with the length of its header, or is "
           "cut off";
  std::string fault =
      SafetensorsParser(bytes.substr(8, static_cast<std::size_t>(length))).parse(header);
  if (!fault.empty()) return fault;
  header.data_offset = 8 + length;
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  Index end = 0;
  for (const SafetensorsEntry& entry : header.tensors) {
    const std::string named = "its tensor \"" + printable(entry.name) + "\" ";
    if (entry.begin != end || entry.end < entry.begin)
      return named + "lies at bytes " + std::to_string(entry.begin) + " to " +
             std::to_string(entry.end) + ", and the tensor before it ends at " +
             std::to_string(end) + "; tensors lie one after the other";
    const Index wanted = safetensors_bytes(entry.type, entry.shape);
    if (entry.other_type.empty() && entry.end - entry.begin != wanted)
      return named + "has " + std::to_string(entry.end - entry.begin) +
             " bytes, and its shape and type take " + std::to_string(wanted);
    end = entry.end;
  }
  std::vector<std::string_view> names;
  for (const SafetensorsEntry& entry : header.tensors) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return "its tensor \"" + printable(*twice) + "\" stands twice";
  if (end != file_size - header.data_offset)
    return "its header promises " + std::to_string(end) + " bytes of elements and " +
           std::to_string(file_size - header.data_offset) + " are there";
  return "";
}

/// Returns the beginning of a file: the length, and the header's text, up to `data_offset`, which
/// is a multiple of 64. `metadata` and the tensors, with their places, are the header's.
inline std::string safetensors_text(const SafetensorsHeader& header) {
  std::string text = "{";
  const auto next = [&](std::string_view name) {
    if (text.size() > 1) text += ',';
    text += json_text(name);
    text += ':';
  };
  if (!header.metadata.empty()) {
    next("__metadata__");
    text += '{';
    for (const auto& [key, value] : header.metadata) {
      if (text.back() != '{') text += ',';
      text += json_text(key);
      text += ':';
      text += json_text(value);
    }
    text += '}';
  }
  for (const SafetensorsEntry& entry : header.tensors) {
    next(entry.name);
    text += "{\"dtype\":\"";
    text += safetensors_code(entry.type);
    text += "\",\"shape\":[";
    for (std::size_t d = 0; d < entry.shape.size(); ++d) {
      if (d > 0) text += ',';
      text += std::to_string(entry.shape[d]);
    }
    text += "],\"data_offsets\":[" + std::to_string(entry.begin);
    text += ',';
    text += std::to_string(entry.end) + "]}";
  }
  text += '}';
  while ((8 + text.size()) % 64 != 0) text += ' ';
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return bytes + text;
}
}  // namespace detail
}  // namespace tessera
