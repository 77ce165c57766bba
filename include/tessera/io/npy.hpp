// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Tensors in NumPy's .npy files. All processes read or write at once, each its own piece, on a
/// file system that they share.
///
///     auto x = read_npy<Tensor<data, model>>(mesh, "weights.npy");
///     write_npy(x, "weights.npy");                     // numpy.load("weights.npy") reads it
///     write_npy(x, path, {.progress = [](Index done, Index total) {}});
///
/// Laws: to_host(read_npy(write_npy(x))) == to_host(x), bit by bit, whatever the two specs; each
/// byte is written once; a file is replaced as a whole or not at all; a failure on one process is
/// the same FileError on all. Files to be read are row-major or column-major, of either byte order;
/// written files are row-major and little endian.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/complaint.hpp>
#include <tessera/io/detail/file.hpp>
#include <tessera/io/detail/pieces.hpp>
#include <tessera/io/detail/replacement.hpp>
#include <tessera/io/npy_header.hpp>
#include <tessera/op/shape/transpose.hpp>
#include <tessera/op/to_host.hpp>
#include <tessera/plan/op/move/file_blocks.hpp>

namespace tessera {

struct NpyOptions {
  /// Called on each process after every piece of at most 16 MiB, with the number of its own bytes
  /// that are done. An exception from it ends the reading or writing on all processes.
  std::function<void(Index done, Index total)> progress{};
  /// read_npy: the extents that the file must have.
  std::optional<Extents> extents{};
};

namespace detail {
/// Reads a file's header. Throws FileError, which names the file.
inline NpyHeader read_header(const File& file, const std::string& path) {
  const Index size = file.size();
  std::string bytes(static_cast<std::size_t>(min_of(size, 12)), '\0');
  file.read(bytes.data(), static_cast<Index>(bytes.size()), 0);
  const Index whole = min_of(min_of(npy_header_size(bytes), npy_most_header), size);
  if (whole > static_cast<Index>(bytes.size())) {
    bytes.resize(static_cast<std::size_t>(whole));
    file.read(bytes.data(), whole, 0);
  }
  NpyHeader header;
  if (const std::string fault = parse_npy_header(bytes, size, header); !fault.empty())
    throw FileError("\"" + path + "\" is not read: " + fault);
  return header;
}

/// The requirements of a tensor on a file.
struct NpyRequest {
  std::optional<DType> type;  ///< any, if empty
  Sharding sharding;
};

inline std::string misfit(const NpyHeader& header, const NpyRequest& request,
                          const NpyOptions& options, const std::string& path) {
  const std::string file = "\"" + path + "\" holds " + std::string(name_of(header.type)) + " " +
                           to_string(header.extents);
  if (request.type && *request.type != header.type)
    return file + " and is read as " + std::string(name_of(*request.type)) +
           "; read it as what it holds and cast the tensor, or save it with astype";
  if (request.sharding.rank() != header.extents.size())
    return file + ", of " + std::to_string(header.extents.size()) +
           " dimensions, and is read with a spec of " + std::to_string(request.sharding.rank()) +
           "; give the spec one entry for each dimension of the file";
  if (options.extents && !(*options.extents == header.extents))
    return file + " and is read as " + to_string(*options.extents) +
           "; ask for the file's extents, or for none";
  return "";
}

inline TensorCore read_npy(const std::shared_ptr<MeshCore>& mesh, const NpyRequest& request,
                           const std::string& path, const NpyOptions& options, CallSite site) {
  const auto say = [&](const std::string& text) {
    return text.empty() ? text : std::string(site.label) + ": " + text;
  };
  std::optional<File> file;
  NpyHeader header;
  std::string complaint = complaint_of([&] {
    file.emplace(File::open(path, O_RDONLY));
    header = read_header(*file, path);
    if (const std::string text = misfit(header, request, options, path); !text.empty())
      throw FileError(text);
  });
  fail_together<FileError>(*mesh, say(complaint), site.where);
  std::uint64_t digest = mix(static_cast<std::uint64_t>(header.type), header.fortran_order);
  for (const Index extent : header.extents)
    digest = mix(digest, static_cast<std::uint64_t>(extent));
  require_one_file(*mesh, mix(digest, header.big_endian), path, site);

  TensorDesc desc{header.type, header.extents, request.sharding};
  TensorCore::check_desc(*mesh, desc, site.where);
  if (header.fortran_order)  // as stored, the dimensions are reversed
    for (int d = 0; d < desc.rank(); ++d) {
      desc.extents[d] = header.extents[desc.rank() - 1 - d];
      desc.sharding[d] = request.sharding[desc.rank() - 1 - d];
    }
  TensorDesc stored = desc;
  stored.sharding = file_sharding(desc, mesh->shape());
  const TensorCore block = TensorCore::make(mesh, stored, site.where);
  if (!mesh->dry()) {
    complaint = complaint_of([&] {
      fill_pieces(block, options.progress, [&](Index offset, Index bytes, char* piece) {
        file->read(piece, bytes, header.data_offset + offset);
        adapt_elements(header.type, header.big_endian, piece, bytes);
      });
    });
    fail_together<FileError>(*mesh, say(complaint), site.where);
  }
  if (!header.fortran_order) {
    if (stored.sharding == request.sharding) return block;
    return reshard(block, request.sharding, site);
  }
  Terms terms;
  terms.operands.push_back(default_labels(desc.rank()));
  for (int d = desc.rank() - 1; d >= 0; --d) terms.result.push_back(terms.operands[0][d]);
  return run({ops::Transpose{terms, request.sharding}, {&block}, site});
}

inline void write_npy(const TensorCore& x, const std::string& path, const NpyOptions& options,
                      CallSite site) {
  MeshCore& mesh = *x.mesh();
  const Sharding sharding = file_sharding(x.desc(), mesh.shape());
  const bool there = x.sharding() == sharding && x.halo() == nullptr;
  const TensorCore block = there ? x : reshard(x, sharding, site);
  if (mesh.dry()) return;
  NewFile made{npy_header_text(x.type(), x.extents())};
  made.bytes = saturating_mul(volume(x.extents()), static_cast<Index>(size_of(x.type())));
  const bool writes =
      block.local_size() > 0 && writes_file(sharding, mesh.shape(), mesh.coordinates());
  write_together(mesh, path, made, site, [&](File& file) {
    if (writes)
      save_pieces(block, options.progress, [&](Index offset, Index bytes, const char* piece) {
        file.write(piece, bytes, static_cast<Index>(made.header.size()) + offset);
      });
  });
}
}  // namespace detail

/// Returns the header of a .npy file, read by this process alone. Throws FileError for any other
/// file. Communication: none.
inline NpyHeader read_npy_header(const std::string& path, Where where = Where::here()) {
  NpyHeader header;
  const std::string complaint =
      complaint_of([&] { header = detail::read_header(detail::File::open(path, O_RDONLY), path); });
  if (!complaint.empty()) throw FileError("read_npy_header: " + complaint, where);
  return header;
}

/// Returns the tensor that a .npy file holds; each process reads one piece of it. Communication:
/// the reshard from pieces of long runs (plan/op/move/file_blocks.hpp) to the tensor's spec, which
/// often is none (allowed on a Strict mesh too); a few integers, in no ledger. Collective over the
/// mesh. Throws FileError, the same on every process: the file cannot be read, is damaged, or holds
/// another element type, number of dimensions or extents. On a dry mesh only the header is read.
template <TypedTensor Tensor>
Tensor read_npy(const ProcessMesh<typename Tensor::mesh_type>& mesh, const std::string& path,
                const NpyOptions& options = {}, Where where = Where::here()) {
  static_assert(!Tensor::unfinished,
                "[tessera] the spec of a tensor to read is Unreduced; a tensor is read finished, "
                "and only operators leave values Unreduced; drop "
                "Unreduced from its spec");
  return Tensor(detail::read_npy(
      mesh.core(), {dtype_of<typename Tensor::value_type>, detail::made_sharding<Tensor>()}, path,
      options, {"read_npy", where, Contract{}}));
}
/// This overload takes a sharding that is known only at run time, and the file's own element type.
template <int = dtypes>  // callers have the kernels of all element types compiled
DynamicTensor read_npy(const DynamicMesh& mesh, const Sharding& sharding, const std::string& path,
                       const NpyOptions& options = {}, Where where = Where::here()) {
  detail::use_all_elements();
  if (!sharding.partial.empty())
    throw ShardingError("read_npy: " + to_string(sharding, mesh.names()) +
                            " is unfinished; a tensor is read finished; drop Unreduced",
                        where);
  return DynamicTensor(detail::read_npy(mesh.core(), {std::nullopt, sharding}, path, options,
                                        {"read_npy", where, Contract{}}));
}

/// Writes x to a .npy file, and replaces an existing one: each process writes its piece of a file
/// beside it, which takes the name when all have written and flushed their pieces. Communication:
/// the reshard to pieces of long runs, which often is none (unfinished values are combined; allowed
/// on a Strict mesh too); a few integers, in no ledger. Collective over the mesh. Throws FileError,
/// the same on every process; then the old file is unchanged. A symbolic link stays, and the file
/// to which it leads is replaced; a directory, device, pipe or socket is an error. On a dry mesh
/// nothing is written.
template <TypedTensor A>
void write_npy(const A& x, const std::string& path, const NpyOptions& options = {},
               Where where = Where::here()) {
  detail::write_npy(x.core(), path, options, {"write_npy", where, Contract{}});
}
inline void write_npy(const DynamicTensor& x, const std::string& path,
                      const NpyOptions& options = {}, Where where = Where::here()) {
  detail::write_npy(x.core(), path, options, {"write_npy", where, Contract{}});
}

}  // namespace tessera
