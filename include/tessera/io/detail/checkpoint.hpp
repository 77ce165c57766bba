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
#include <tessera/io/detail/checkpoint_header.hpp>
#include <tessera/io/detail/file.hpp>
#include <tessera/io/detail/pieces.hpp>
#include <tessera/io/detail/replacement.hpp>
#include <tessera/io/pending_checkpoint.hpp>
#include <tessera/op/reshard.hpp>

namespace tessera {

struct CheckpointOptions {
  /// The name in the file of the tensor at a path of the tree; none: the path.
  std::function<std::string(const std::string& path)> name{};
  /// begin_checkpoint: the most bytes of copies that a process holds; it waits for the disk where
  /// its blocks are larger.
  Index memory = max_int64;
  /// Called on each process after every piece of at most 16 MiB, with the number of its own bytes
  /// that are done. An exception from it ends the reading or writing on all processes.
  std::function<void(Index done, Index total)> progress{};
};

namespace detail {
/// Progress over several tensors, of those of one.
class ProgressOfAll {
 public:
  ProgressOfAll(const FileProgress& progress, Index total) : progress_(progress), total_(total) {}
  void begin() {
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

/// Returns the bytes that this process reads, or writes, of all tensors.
inline Index own_file_bytes(const std::vector<NamedTensor>& tensors, bool writes) {
  Index bytes = 0;
  for (const NamedTensor& named : tensors) {
    const MeshCore& mesh = *named.tensor.mesh();
    if (mesh.absent()) continue;
    TensorDesc desc = named.tensor.desc();
    desc.sharding = file_sharding(desc, mesh.shape());
    if (writes && !writes_file(desc.sharding, mesh.shape(), mesh.coordinates())) continue;
    bytes = saturating_add(bytes, TensorCore::local_bytes(mesh, desc));
  }
  return bytes;
}

/// A checkpoint that is to be written: its header, whose sums are still zeros, and the file.
struct NewCheckpoint {
  SafetensorsHeader header;
  NewFile file;
  Index data = 0;  ///< where the tensors begin: behind the header of process 0, which is the file's
};
/// Returns what is wrong with tensors and facts that are to be a checkpoint, or nothing.
inline std::string unfit_to_write(const MeshCore& mesh, const std::vector<NamedTensor>& tensors,
                                  const CheckpointFacts& facts) {
  if (std::string fault = unfit(mesh, tensors); !fault.empty()) return fault;
  if (std::string fault = unfit_names(tensors); !fault.empty()) return fault;
  for (const auto& [key, value] : facts) {
    if (key.starts_with(own_facts))
      return "the fact \"" + printable(key) +
             "\" has a name that begins with \"tessera.\", as the checkpoint's own facts do; give "
             "it another name";
    if (!is_utf8(key) || !is_utf8(value))
      return "the fact \"" + printable(key) + "\" is \"" + printable(value) +
             "\", which is no UTF-8, and other programs could not open the file; encode it, for "
             "example in base64";
  }
  return "";
}
/// Returns the checkpoint of tensors and process 0's facts. Communication: a few integers, in no
/// ledger. Collective over the mesh. Throws UsageError, the same on every process, where they do
/// not fit, or the tensors are others on some processes.
inline NewCheckpoint new_checkpoint(MeshCore& mesh, const std::vector<NamedTensor>& tensors,
                                    const CheckpointFacts& facts, CallSite site) {
  NewCheckpoint made;
  std::string fault = unfit_to_write(mesh, tensors, facts);
  Digest digest;
  if (fault.empty()) {
    made.header = checkpoint_header(tensors, facts);
    made.file.header = safetensors_text(made.header);
    if (static_cast<Index>(made.file.header.size()) > safetensors_most_header)
      fault = "the header would have " + std::to_string(made.file.header.size()) +
              " bytes, and files of this format have at most " +
              std::to_string(safetensors_most_header) + "; give it fewer or shorter facts";
    made.file.bytes = made.header.tensors.empty() ? 0 : made.header.tensors.back().end;
    for (const SafetensorsEntry& entry : made.header.tensors) add_to(digest, describe_entry(entry));
  }
  fail_together<UsageError>(mesh, fault.empty() ? fault : std::string(site.label) + ": " + fault,
                            site.where);
  const std::vector<std::int64_t> all =
      mesh.gather_facts({static_cast<std::int64_t>(digest.value()),
                         static_cast<std::int64_t>(made.file.header.size())},
                        site.where);
  for (std::size_t p = 1; 2 * p < all.size(); ++p)
    if (all[2 * p] != all[0])
      throw UsageError(std::string(site.label) + ": process " + std::to_string(p) +
                           " gives tensors of other names, types or extents than process 0, and a "
                           "file has one header; give the same tree on every process",
                       site.where);
  made.data = all[1];
  return made;
}

/// Brings the tensors, one after the other, to pieces of long runs and gives this process's to
/// put(data, bytes, offset in the file); at last, on the first process, the header with its sums.
/// Throws when nobody waits for this process any more. Collective over the mesh.
template <class Put>
void save_tensors(MeshCore& mesh, const std::vector<NamedTensor>& tensors, NewCheckpoint& made,
                  const FileProgress& told, CallSite site, const Put& put) {
  SafetensorsHeader& header = made.header;
  ProgressOfAll progress(told, own_file_bytes(tensors, true));
  std::string complaint = complaint_of([&] { progress.begin(); });
  for (const NamedTensor& named : tensors) {
    const TensorCore& x = named.tensor;
    const MeshCore& on = *x.mesh();  // the mesh, or a part of it
    const Sharding sharding = file_sharding(x.desc(), on.shape());
    const bool there = x.sharding() == sharding && x.halo() == nullptr;
    const TensorCore block = there ? x : reshard(x, sharding, site);
    if (mesh.dry()) continue;
    const Index begin = header.find(named.name)->begin;
    PieceSums sums(x.type(), header.find(named.name)->end - begin, file_piece_bytes);
    if (complaint.empty() && !on.absent() && writes_file(sharding, on.shape(), on.coordinates()))
      complaint = complaint_of([&] {
        save_pieces(block, progress.of_one(), [&](Index offset, Index bytes, const char* piece) {
          sums.add(offset, bytes, piece);
          put(piece, bytes, made.data + begin + offset);
        });
      });
    mesh.sum_facts(sums.values(), site.where);
    std::string& text = header.metadata[sums_key(named.name)];
    text.clear();
    for (const std::uint64_t sum : sums.values()) text += hexadecimal(sum);
  }
  if (!complaint.empty()) throw FileError(complaint);
  if (mesh.dry() || mesh.process() != 0) return;
  const std::string text = sealed(safetensors_text(header));
  put(text.data(), static_cast<Index>(text.size()), Index{0});
}

inline void write_checkpoint(MeshCore& mesh, const std::string& path,
                             const std::vector<NamedTensor>& tensors, const CheckpointFacts& facts,
                             const CheckpointOptions& options, CallSite site) {
  NewCheckpoint made = new_checkpoint(mesh, tensors, facts, site);
  const auto save = [&](const auto& put) {
    save_tensors(mesh, tensors, made, options.progress, site, put);
  };
  if (mesh.dry()) return save([](const char*, Index, Index) {});
  end_writes(mesh, site);
  write_together(mesh, path, made.file, site, [&](File& file) {
    save([&](const char* bytes, Index size, Index offset) { file.write(bytes, size, offset); });
  });
}

/// Copies the tensors, and writes the copies beside what comes next.
inline PendingCheckpoint begin_checkpoint(const std::shared_ptr<MeshCore>& mesh,
                                          const std::string& path,
                                          const std::vector<NamedTensor>& tensors,
                                          const CheckpointFacts& facts,
                                          const CheckpointOptions& options, CallSite site) {
  NewCheckpoint made = new_checkpoint(*mesh, tensors, facts, site);
  const auto save = [&](const auto& put) {
    save_tensors(*mesh, tensors, made, options.progress, site, put);
  };
  if (mesh->dry()) {
    save([](const char*, Index, Index) {});
    return {};
  }
  end_writes(*mesh, site);
  const auto write = std::make_shared<BackgroundWrite>(mesh, path, made.file, options.memory, site);
  const std::string complaint = complaint_of([&] {
    save([&](const char* bytes, Index size, Index offset) { write->put(bytes, size, offset); });
  });
  fail_together<FileError>(
      *mesh, complaint.empty() ? complaint : std::string(site.label) + ": " + complaint,
      site.where);
  write->seal();
  begun_writes().push_back(write);
  return PendingCheckpoint(write);
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
    fault =
        "its header has changed since it was written: the file is damaged, or another program has "
        "saved it again with the facts that begin with \"tessera.\"; read an older one, or save it "
        "without these facts";
  if (!fault.empty()) throw FileError("\"" + path + "\" is not read: " + fault);
  Digest digest;
  add_to(digest, bytes);
  start.digest = digest.value();
  return start;
}

/// Returns the first tensor of a tree that a file has not, or otherwise, or nothing. A file may
/// have others.
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
    if (!entry->other_type.empty())
      return "\"" + path + "\" has " + describe_entry(*entry) +
             ", whose elements Tessera has not; leave it out of the tree, or convert the file";
    if (entry->type != wanted.type || entry->shape != wanted.shape)
      return file + "it has " + describe_entry(*entry) + ", and the program's is " +
             std::string(name_of(wanted.type)) +
             describe_entry(wanted).substr(describe_entry(wanted).rfind(' ')) + counts +
             "; give the program the sizes and element types of the run that wrote it";
  }
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
  ProgressOfAll progress(options.progress, own_file_bytes(tensors, false));
  all(complaint_of([&] {
    file.emplace(File::open(path, O_RDONLY));
    start = read_start(*file, path);
    if (const std::string text = other_model(start.header, tensors, path); !text.empty())
      throw FileError(text);
    progress.begin();
  }));
  require_one_file(*mesh, start.digest, path, site);
  const Index sum_bytes = piece_bytes(start.header);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorDesc desc = tensors[i].tensor.desc();
    const std::shared_ptr<MeshCore> on = tensors[i].tensor.mesh();
    tensors[i].tensor = {};
    const SafetensorsEntry& entry = *start.header.find(tensors[i].name);
    TensorDesc stored = desc;
    stored.sharding = file_sharding(desc, on->shape());
    const TensorCore block = TensorCore::make(on, stored, site.where);
    if (!mesh->dry()) {
      PieceSums sums(desc.type, entry.end - entry.begin, sum_bytes);
      const bool counts = writes_file(stored.sharding, on->shape(), on->coordinates());
      const std::string complaint = complaint_of([&] {
        if (on->absent()) return;
        fill_pieces(block, progress.of_one(), [&](Index offset, Index bytes, char* piece) {
          file->read(piece, bytes, start.header.data_offset + entry.begin + offset);
          if (counts) sums.add(offset, bytes, piece);
          adapt_elements(desc.type, false, piece, bytes);
        });
      });
      all(complaint);
      mesh->sum_facts(sums.values(), site.where);
      if (!mesh->alone()) all(damage(start.header, entry, sums, path));
    }
    take(i, stored.sharding == desc.sharding ? block : reshard(block, desc.sharding, site));
  }
  CheckpointFacts facts = std::move(start.header.metadata);
  std::erase_if(facts, [](const auto& fact) { return fact.first.starts_with(own_facts); });
  return facts;
}

}  // namespace detail
}  // namespace tessera
