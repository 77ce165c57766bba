// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reads and writes the tensors of a checkpoint, which have names; io/checkpoint.hpp has the trees.
///
/// Laws: until all processes have written, the old file is what it was; where a file does not fit,
/// nothing is read.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/complaint.hpp>
#include <tessera/io/detail/file.hpp>
#include <tessera/io/detail/pieces.hpp>
#include <tessera/io/detail/replacement.hpp>
#include <tessera/io/safetensors_header.hpp>
#include <tessera/op/reshard.hpp>

namespace tessera {

/// What a checkpoint says beside its tensors, such as the step of a training run.
using CheckpointFacts = std::map<std::string, std::string>;

struct CheckpointOptions {
  /// Called on each process after every piece of at most 16 MiB, with the number of its own bytes
  /// that are done. An exception from it ends the reading or writing on all processes.
  std::function<void(Index done, Index total)> progress{};
};

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
inline std::string describe_entry(const SafetensorsEntry& entry) {
  std::string text = "\"" + printable(entry.name) + "\", " + std::string(name_of(entry.type)) + " ";
  for (std::size_t d = 0; d < entry.shape.size(); ++d) {
    if (d > 0) text += "x";
    text += std::to_string(entry.shape[d]);
  }
  return text;
}

/// Returns the header's bytes with a sum of their own, in the place of the zeros.
inline std::string sealed(std::string text) {
  std::uint64_t sum = 0x1234'5678'9ABC'DEF1u;  // as in files of earlier versions
  for (const char c : text) sum = stirred(sum, static_cast<unsigned char>(c));
  const std::string mark = json_text(header_sum) + ":\"";
  const auto at = text.find(mark);
  if (at != text.npos) text.replace(at + mark.size(), 16, hexadecimal(sum));
  return text;
}
/// Returns whether the bytes of a header are those that were sealed; other programs seal none.
inline bool is_sealed(const std::string& text, const SafetensorsHeader& header) {
  const std::string mark = json_text(header_sum) + ":\"";
  const auto at = text.find(mark);
  if (at == text.npos)
    return std::none_of(header.metadata.begin(), header.metadata.end(),
                        [](const auto& fact) { return fact.first.starts_with(own_facts); });
  std::string open = text;
  open.replace(at + mark.size(), 16, 16, '0');
  return sealed(open) == text;
}

/// Returns what is wrong with tensors that are to be one checkpoint, or nothing.
inline std::string unfit(const MeshCore& mesh, const std::vector<NamedTensor>& tensors) {
  for (const NamedTensor& named : tensors) {
    if (!named.tensor.defined())
      return "the tensor \"" + named.name +
             "\" has not been made; a checkpoint has tensors of known extents, make it first";
    if (named.tensor.mesh().get() != &mesh)
      return "the tensor \"" + named.name + "\" is on the mesh " +
             named.tensor.mesh()->to_string() + " and the checkpoint on " + mesh.to_string() +
             "; a checkpoint is of one mesh, write one for each";
  }
  return "";
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

/// Progress over several tensors, of those of one.
class ProgressOfAll {
 public:
  ProgressOfAll(const FileProgress& progress, Index total) : progress_(progress), total_(total) {
    if (progress_) progress_(0, total_);
  }
  FileProgress of_one() {
    if (!progress_) return {};
    return [this](Index done, Index total) {
      if (done > 0) progress_(before_ + done, total_);
      if (done == total) before_ += total;
    };
  }

 private:
  const FileProgress& progress_;
  Index total_;
  Index before_ = 0;
};

/// Returns the bytes that this process reads or writes of all tensors.
inline Index own_file_bytes(const MeshCore& mesh, const std::vector<NamedTensor>& tensors) {
  Index bytes = 0;
  for (const NamedTensor& named : tensors) {
    TensorDesc desc = named.tensor.desc();
    desc.sharding = file_sharding(desc, mesh.shape());
    bytes = saturating_add(bytes, TensorCore::local_bytes(mesh, desc));
  }
  return bytes;
}

inline void write_checkpoint(MeshCore& mesh, const std::string& path,
                             const std::vector<NamedTensor>& tensors, const CheckpointFacts& facts,
                             const CheckpointOptions& options, CallSite site) {
  if (const std::string fault = unfit(mesh, tensors); !fault.empty())
    throw UsageError("write_checkpoint: " + fault, site.where);
  for (const auto& [key, value] : facts)
    if (key.starts_with(own_facts))
      throw UsageError("write_checkpoint: the fact \"" + key +
                           "\" has a name that begins with \"tessera.\", as the checkpoint's own "
                           "facts do; give it another name",
                       site.where);
  SafetensorsHeader header = checkpoint_header(tensors, facts);
  NewFile made{safetensors_text(header)};
  if (static_cast<Index>(made.header.size()) > safetensors_most_header)
    throw UsageError(
        "write_checkpoint: the header would have " + std::to_string(made.header.size()) +
            " bytes, and files of this format have at most " +
            std::to_string(safetensors_most_header) + "; give it fewer or shorter facts",
        site.where);
  made.bytes = header.tensors.empty() ? 0 : header.tensors.back().end;
  const auto data = static_cast<Index>(made.header.size());
  ProgressOfAll progress(options.progress, own_file_bytes(mesh, tensors));
  const auto write_all = [&](File* file) {
    std::string complaint;  // thrown when nobody waits for this process any more
    for (const NamedTensor& named : tensors) {
      const TensorCore& x = named.tensor;
      const Sharding sharding = file_sharding(x.desc(), mesh.shape());
      const bool there = x.sharding() == sharding && x.halo() == nullptr;
      const TensorCore block = there ? x : reshard(x, sharding, site);
      if (file == nullptr) continue;
      const Index begin = header.find(named.name)->begin;
      PieceSums sums(x.type(), header.find(named.name)->end - begin, file_piece_bytes);
      if (complaint.empty() && writes_file(sharding, mesh.shape(), mesh.coordinates()))
        complaint = complaint_of([&] {
          save_pieces(block, progress.of_one(), [&](Index offset, Index bytes, const char* piece) {
            sums.add(offset, bytes, piece);
            file->write(piece, bytes, data + begin + offset);
          });
        });
      mesh.sum_facts(sums.values(), site.where);
      std::string& text = header.metadata[sums_key(named.name)];
      text.clear();
      for (const std::uint64_t sum : sums.values()) text += hexadecimal(sum);
    }
    if (!complaint.empty()) throw FileError(complaint);
    if (file != nullptr && mesh.process() == 0) {
      const std::string text = sealed(safetensors_text(header));
      file->write(text.data(), static_cast<Index>(text.size()), 0);
    }
  };
  if (mesh.dry()) return write_all(nullptr);
  write_together(mesh, path, made, site, [&](File& file) { write_all(&file); });
}

/// A checkpoint's header, and the digest of its bytes.
struct CheckpointStart {
  SafetensorsHeader header;
  std::uint64_t digest = 0;
};
/// Reads a file's header. Throws FileError, which names the file.
inline CheckpointStart read_start(const File& file, const std::string& path) {
  const Index size = file.size();
  std::string bytes(static_cast<std::size_t>(min_of(size, 8)), '\0');
  file.read(bytes.data(), static_cast<Index>(bytes.size()), 0);
  if (const Index length = safetensors_length(bytes, size); length > 0) {
    bytes.resize(static_cast<std::size_t>(8 + length));
    file.read(bytes.data() + 8, length, 8);
  }
  CheckpointStart start;
  std::string fault = parse_safetensors(bytes, size, start.header);
  if (fault.empty() && !is_sealed(bytes, start.header))
    fault = "its header has changed since it was written; the file is damaged, read an older one";
  if (!fault.empty()) throw FileError("\"" + path + "\" is not read: " + fault);
  Digest digest;
  for (const char c : bytes) digest.add(static_cast<unsigned char>(c));
  start.digest = digest.value();
  return start;
}

/// Returns the first difference between the tensors of a file and those of a tree, or nothing.
inline std::string other_model(const SafetensorsHeader& header,
                               const std::vector<NamedTensor>& tensors, const std::string& path) {
  const std::string file = "\"" + path + "\" is a checkpoint of other tensors: ";
  const std::string counts = " (the file has " + std::to_string(header.tensors.size()) +
                             " tensors, the program " + std::to_string(tensors.size()) + ")";
  for (const NamedTensor& named : tensors) {
    const SafetensorsEntry wanted = entry_of(named);
    const SafetensorsEntry* entry = header.find(named.name);
    if (entry == nullptr)
      return file + "it lacks " + describe_entry(wanted) + ", which the program has" + counts +
             "; read it into the tensors that were written";
    if (entry->type != wanted.type || entry->shape != wanted.shape)
      return file + "it has " + describe_entry(*entry) + ", and the program's is " +
             std::string(name_of(wanted.type)) +
             describe_entry(wanted).substr(describe_entry(wanted).rfind(' ')) + counts +
             "; give the program the sizes and element types of the run that wrote it";
  }
  for (const SafetensorsEntry& entry : header.tensors)
    if (std::none_of(tensors.begin(), tensors.end(),
                     [&](const NamedTensor& named) { return named.name == entry.name; }))
      return file + "it has " + describe_entry(entry) + ", which the program lacks" + counts +
             "; read it into the tensors that were written";
  return "";
}

/// Returns the bytes of a piece that has a sum: a multiple of all elements' sizes.
inline Index piece_bytes(const SafetensorsHeader& header) {
  Index bytes = 0;
  const auto said = header.metadata.find(piece_fact);
  if (said != header.metadata.end())
    std::from_chars(said->second.data(), said->second.data() + said->second.size(), bytes);
  return bytes >= 4096 && bytes % 16 == 0 ? bytes : file_piece_bytes;
}

/// Returns which bytes of a tensor have other sums than the file says, or nothing. Files of other
/// writers have no sums.
inline std::string damage(const SafetensorsHeader& header, const SafetensorsEntry& entry,
                          PieceSums& sums, const std::string& path) {
  const Index piece = piece_bytes(header);
  const auto said = header.metadata.find(sums_key(entry.name));
  if (said == header.metadata.end()) return "";
  const bool counted = said->second.size() == 16 * sums.values().size();
  for (std::size_t i = 0; i < sums.values().size(); ++i) {
    if (counted && said->second.compare(16 * i, 16, hexadecimal(sums.values()[i])) == 0) continue;
    const Index first = entry.begin + static_cast<Index>(i) * piece;
    return "\"" + path + "\" is damaged: bytes " + std::to_string(header.data_offset + first) +
           " to " + std::to_string(header.data_offset + min_of(first + piece, entry.end)) +
           ", of the tensor \"" + printable(entry.name) +
           "\", are not those that were written; read an older checkpoint";
  }
  return "";
}

/// Reads the tensors of those names, types, extents and shardings, and gives each to take(i,
/// tensor). Returns the facts.
template <class Take>
CheckpointFacts read_checkpoint(const std::shared_ptr<MeshCore>& mesh, const std::string& path,
                                std::vector<NamedTensor> tensors, const CheckpointOptions& options,
                                CallSite site, const Take& take) {
  if (const std::string fault = unfit(*mesh, tensors); !fault.empty())
    throw UsageError("read_checkpoint: " + fault, site.where);
  for (const NamedTensor& named : tensors)
    if (!named.tensor.sharding().partial.empty())
      throw UsageError("read_checkpoint: the tensor \"" + named.name +
                           "\" is Unreduced, and only operators leave values so; read into a "
                           "finished one",
                       site.where);
  const auto all = [&](const std::string& complaint) {
    fail_together<FileError>(*mesh, complaint.empty() ? complaint : "read_checkpoint: " + complaint,
                             site.where);
  };
  std::optional<File> file;
  CheckpointStart start;
  all(complaint_of([&] {
    file.emplace(File::open(path, O_RDONLY));
    start = read_start(*file, path);
    if (const std::string text = other_model(start.header, tensors, path); !text.empty())
      throw FileError(text);
  }));
  require_one_file(*mesh, start.digest, path, site);
  const Index sum_bytes = piece_bytes(start.header);
  ProgressOfAll progress(options.progress, own_file_bytes(*mesh, tensors));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorDesc desc = tensors[i].tensor.desc();
    tensors[i].tensor = {};
    const SafetensorsEntry& entry = *start.header.find(tensors[i].name);
    TensorDesc stored = desc;
    stored.sharding = file_sharding(desc, mesh->shape());
    const TensorCore block = TensorCore::make(mesh, stored, site.where);
    if (!mesh->dry()) {
      PieceSums sums(desc.type, entry.end - entry.begin, sum_bytes);
      const bool counts = writes_file(stored.sharding, mesh->shape(), mesh->coordinates());
      const std::string complaint = complaint_of([&] {
        fill_pieces(block, progress.of_one(), [&](Index offset, Index bytes, char* piece) {
          file->read(piece, bytes, start.header.data_offset + entry.begin + offset);
          if (counts) sums.add(offset, bytes, piece);
          adapt_elements(desc.type, false, piece, bytes);
        });
      });
      all(complaint);
      mesh->sum_facts(sums.values(), site.where);
      all(damage(start.header, entry, sums, path));
    }
    take(i, stored.sharding == desc.sharding ? block : reshard(block, desc.sharding, site));
  }
  CheckpointFacts facts = std::move(start.header.metadata);
  std::erase_if(facts, [](const auto& fact) { return fact.first.starts_with(own_facts); });
  return facts;
}

}  // namespace detail
}  // namespace tessera
