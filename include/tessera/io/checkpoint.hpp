// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Checkpoints: the tensors of a tree, by name, and facts beside them, in one .safetensors file
/// that any mesh reads under any specs; a tree's tensors may lie on parts of the mesh, such as the
/// stages of a pipeline, and be read on others. All processes read or write at once, each its own
/// pieces, on a file system that they share.
///
///     write_checkpoint(mesh, "run.safetensors", weights, {{"step", "1200"}});
///     CheckpointFacts facts = read_checkpoint(mesh, "run.safetensors", weights);   // on another mesh, too
///     PendingCheckpoint saving = begin_checkpoint(mesh, "run.safetensors", weights);  // beside the next steps
///     // Python: safetensors.numpy.load_file("run.safetensors")["layers.0.weight"]
///
/// Names may differ: a model whose file calls them otherwise is read with
///
///     read_checkpoint(mesh, "run.safetensors", weights, {.name = [](std::string path) { return "model." + path; }});
///
/// Laws: what is read is what was written, bit by bit, whatever the two meshes and specs; a file is
/// replaced as a whole or not at all; a byte that has changed is an error. A failure on one process
/// is the same FileError on all.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/io/detail/checkpoint.hpp>
#include <tessera/tensor/dynamic_mesh.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

namespace detail {
template <class Tree>
std::vector<NamedTensor> named_tensors(const Tree& tree, const CheckpointOptions& options) {
  std::vector<NamedTensor> tensors;
  for_each_named_tensor(
      [&](const std::string& path, const auto& tensor) {
        tensors.push_back({options.name ? options.name(path) : path, tensor.core()});
      },
      tree);
  return tensors;
}
}  // namespace detail

/// Returns a file's tensors and facts, read by this process alone. Throws FileError for any other
/// file. Communication: none.
inline SafetensorsHeader read_checkpoint_header(const std::string& path,
                                                Where where = Where::here()) {
  SafetensorsHeader header;
  const std::string complaint = complaint_of(
      [&] { header = detail::read_start(detail::File::open(path, O_RDONLY), path).header; });
  if (!complaint.empty()) throw FileError("read_checkpoint_header: " + complaint, where);
  return header;
}

/// Writes the tensors of a tree (tensor/tree.hpp), and process 0's facts, to a file, and replaces
/// an existing one: each process writes its pieces of a file beside it, which takes the name when
/// all have written and flushed theirs. A run that is killed meanwhile leaves the old file, and the
/// next one that writes removes what it had begun. Unfinished values are combined; complex numbers
/// are pairs of reals, in a last dimension. Communication: for each tensor the reshard to pieces of
/// long runs, which often is none (allowed on a Strict mesh too), one tensor after the other; sums
/// of eight bytes for each 16 MiB, and whether all processes have the same tree, in no ledger.
/// Collective over the mesh. Throws FileError, the same on every process; then the old file is
/// unchanged; UsageError for tensors that are not on the mesh or a part of it, trees that are not
/// the same on all processes, and names or facts that are no UTF-8. The new file has the
/// permissions of the old one. On a dry mesh nothing is written.
template <class Tree>
void write_checkpoint(const DynamicMesh& mesh, const std::string& path, const Tree& tree,
                      const CheckpointFacts& facts = {}, const CheckpointOptions& options = {},
                      Where where = Where::here()) {
  detail::write_checkpoint(*mesh.core(), path, detail::named_tensors(tree, options), facts, options,
                           {"write_checkpoint", where, Contract{}});
}

/// Begins to write a checkpoint, and returns when this process's pieces have been copied, so that
/// the tensors may change: a thread writes the copies beside the steps that follow. The file takes
/// its name in the wait() of what is returned, or in its destructor. One checkpoint is written at a
/// time: a second one, and write_checkpoint, first waits for the one before. Communication: as
/// write_checkpoint. Collective over the mesh. Throws as write_checkpoint; what the thread finds is
/// thrown by wait().
template <class Tree>
PendingCheckpoint begin_checkpoint(const DynamicMesh& mesh, const std::string& path,
                                   const Tree& tree, const CheckpointFacts& facts = {},
                                   const CheckpointOptions& options = {},
                                   Where where = Where::here()) {
  return detail::begin_checkpoint(mesh.core(), path, detail::named_tensors(tree, options), facts,
                                  options, {"begin_checkpoint", where, Contract{}});
}

/// Reads a file into a tree whose tensors have the names, element types and extents of those that
/// were written, each under its own spec, and returns the facts. A file may have more tensors than
/// the tree. The tensors are new ones: copies of the old ones keep their values. Files of other
/// programs (without sums) are read, too.
/// Communication: for each tensor the reshard from pieces of long runs to its spec; a few integers
/// and the sums, in no ledger. Collective over the mesh. Throws FileError, the same on every
/// process: the file cannot be read, or is of other tensors (then the tree is unchanged), or its
/// bytes have changed since they were written (then the tensors before the damage have been read).
/// On a dry mesh the header alone is read.
template <class Tree>
CheckpointFacts read_checkpoint(const DynamicMesh& mesh, const std::string& path, Tree& tree,
                                const CheckpointOptions& options = {},
                                Where where = Where::here()) {
  std::vector<std::function<void(TensorCore)>> replace;
  for_each_tensor(
      [&]<class T>(T& tensor) { replace.push_back([&](TensorCore read) { tensor = T(read); }); },
      tree);
  return detail::read_checkpoint(
      mesh.core(), path, detail::named_tensors(tree, options), options,
      {"read_checkpoint", where, Contract{}},
      [&](std::size_t i, TensorCore read) { replace[i](std::move(read)); });
}

}  // namespace tessera
