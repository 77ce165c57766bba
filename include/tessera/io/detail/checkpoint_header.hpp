// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The header of a checkpoint: the places of its tensors, its facts, and sums that stand for its
/// bytes. io/detail/checkpoint.hpp reads and writes the tensors.
///
/// Laws: a header whose bytes have changed is not sealed any more.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/digest.hpp>
#include <tessera/base/text/utf8.hpp>
#include <tessera/comm/mesh_core.hpp>
#include <tessera/io/detail/pieces.hpp>
#include <tessera/io/safetensors_header.hpp>
#include <tessera/tensor/part_core.hpp>

namespace tessera {

/// What a checkpoint says beside its tensors, such as the step of a training run: what process 0
/// says.
using CheckpointFacts = std::map<std::string, std::string>;

namespace detail {
inline constexpr std::string_view own_facts = "tessera.";  ///< what the metadata say for Tessera
inline constexpr const char* header_sum = "tessera.header";
inline constexpr const char* piece_fact = "tessera.piece_bytes";

inline std::string hexadecimal(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}
inline std::string sums_key(const std::string& name) { return "tessera.sums:" + name; }

/// A tensor by its name in a tree.
struct NamedTensor {
  std::string name;
  TensorCore tensor;
};

/// Returns the entry of a tensor, with its place still to come: complex numbers are pairs.
inline SafetensorsEntry entry_of(const NamedTensor& named) {
  SafetensorsEntry entry;
  const DType type = named.tensor.type();
  entry.name = named.name;
  entry.type = part_type(type);
  entry.shape.assign(named.tensor.extents().begin(), named.tensor.extents().end());
  if (is_complex(type)) entry.shape.push_back(2);
  return entry;
}
inline std::string type_text(const SafetensorsEntry& entry) {
  return entry.other_type.empty() ? std::string(name_of(entry.type)) : printable(entry.other_type);
}
inline std::string describe_entry(const SafetensorsEntry& entry) {
  std::string text = "\"" + printable(entry.name) + "\", " + type_text(entry) + " ";
  for (std::size_t d = 0; d < entry.shape.size(); ++d) {
    if (d > 0) text += "x";
    text += std::to_string(entry.shape[d]);
  }
  return text;
}

/// Returns where the header's own sum stands in its bytes, or npos: after a name that begins a
/// member, and is not the end of another.
inline std::size_t place_of_seal(const std::string& text) {
  const std::string mark = json_text(header_sum) + ":\"";
  for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at + 1))
    if (at > 0 && (text[at - 1] == '{' || text[at - 1] == ',')) return at + mark.size();
  return text.npos;
}
/// Returns the header's bytes with a sum of their own, in the place of the zeros.
inline std::string sealed(std::string text) {
  std::uint64_t sum = 0x1234'5678'9ABC'DEF1u;  // as in files of earlier versions
  for (const char c : text) sum = stirred(sum, static_cast<unsigned char>(c));
  const std::size_t at = place_of_seal(text);
  if (at != text.npos) text.replace(at, 16, hexadecimal(sum));
  return text;
}
/// Returns whether the bytes of a header are those that were sealed; other programs seal none.
inline bool is_sealed(const std::string& text, const SafetensorsHeader& header) {
  const std::size_t at = place_of_seal(text);
  if (at == text.npos)
    return std::none_of(header.metadata.begin(), header.metadata.end(),
                        [](const auto& fact) { return fact.first.starts_with(own_facts); });
  std::string open = text;
  open.replace(at, 16, 16, '0');
  return sealed(open) == text;
}

/// Returns what is wrong with tensors that are to be one checkpoint, or nothing.
inline std::string unfit(const MeshCore& mesh, const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& named : tensors) {
    if (!named.tensor.defined())
      return "the tensor \"" + named.name +
             "\" has not been made; a checkpoint has tensors of known extents, make it first";
    const std::shared_ptr<MeshCore>& on = named.tensor.mesh();
    if (on.get() != &mesh && whole_of(on).get() != &mesh)
      return "the tensor \"" + named.name + "\" is on the mesh " +
             named.tensor.mesh()->to_string() + " and the checkpoint on " + mesh.to_string() +
             "; a checkpoint is of one mesh and its parts, write one for each mesh";
  }
  return "";
}

/// Returns what is wrong with the names of tensors that are to be written, or nothing.
inline std::string unfit_names(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string_view> names;
  for (const NamedTensor& named : tensors) {
    if (!is_utf8(named.name) || named.name == "__metadata__")
      return "a tensor has the name \"" + printable(named.name) +
             "\", and names are UTF-8 and not \"__metadata__\", which the format has for facts; "
             "give it another";
    names.push_back(named.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return "";
  return "two tensors have the name \"" + printable(*twice) +
         "\", and a file has one of each name; name them apart";
}

/// Returns a header with places for tensors and their sums: tensors of wide elements first, so that
/// each begins at a multiple of its element's size.
inline SafetensorsHeader checkpoint_header(const std::vector<NamedTensor>& tensors,
                                           const CheckpointFacts& facts) {
  SafetensorsHeader header;
  header.metadata = facts;
  header.metadata.emplace(piece_fact, std::to_string(file_piece_bytes));
  header.metadata.emplace(header_sum, std::string(16, '0'));
  for (const NamedTensor& named : tensors) header.tensors.push_back(entry_of(named));
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return size_of(a.type) > size_of(b.type);
                   });
  Index end = 0;
  for (SafetensorsEntry& entry : header.tensors) {
    const Index bytes = safetensors_bytes(entry.type, entry.shape);
    entry.begin = end;
    entry.end = end = saturating_add(end, bytes);
    header.metadata.emplace(
        sums_key(entry.name),
        std::string(16 * PieceSums(entry.type, bytes, file_piece_bytes).values().size(), '0'));
  }
  return header;
}

}  // namespace detail
}  // namespace tessera
