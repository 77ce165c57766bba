// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The calls that a function makes, listed in place of being carried out, and carried out together
/// afterwards.
///
///     Listing calls;
///     { const TakenBy scope(&calls);  y = f(x); }        // listed: y has a description, and no values
///     calls.run(calls.program());                                      // now it has
///
/// Laws: the results are those of the calls made one after the other; memory that nobody else holds
/// ends with the last call that reads it.
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/digest.hpp>
#include <tessera/program/program.hpp>
#include <tessera/run/kept_request.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/run/taker.hpp>

namespace tessera::detail {

/// The layers that are open on a mesh, from the outermost on, so that they can be opened again.
struct LayerPath {
  explicit LayerPath(const OpenLayer& innermost);
  /// Returns whether it is the path of this open layer.
  bool is(const OpenLayer* innermost) const;

  std::vector<std::string> names;
  Where where;  ///< of the innermost
};

/// One call that is listed. Tensors have numbers: one for each memory.
struct ListedCall {
  explicit ListedCall(const Request& r) : kept(r, KeptRequest::Use::listed) {}
  KeptRequest kept;
  std::shared_ptr<const Prepared> prepared;
  Promises promised;  ///< null: the result is an operand, or has a destination
  FixedVector<int, max_operands> operands;
  FixedVector<int, max_operands + 1> results;
  Lane* lane = nullptr;
  int layers = -1;  ///< in the list of paths
};

class Listing final : public Taker {
 public:
  Listing() = default;
  ~Listing() {
    for (const std::shared_ptr<Storage>& storage : hidden_) storage->show();
  }

  /// Lists a call, and returns its result, whose memory is promised. Throws what planning throws,
  /// and UsageError when the call has other memory than tensors of one mesh.
  TESSERA_FUNCTION TensorCore take(const Request& r) override;
  TESSERA_FUNCTION void refuse(CallSite site) const override;
  bool takes_all() const override { return true; }

  /// Returns a digest of what is listed: operators, descriptions, which call reads the result of
  /// which other, and what the caller keeps. Two lists of one structure differ in values alone.
  std::uint64_t structure() const;
  /// Returns the list as a Program: what run() does on this process.
  Program program() const;
  /// Carries out a Program of these calls: program(), or what passes made of it. Collective over
  /// the mesh. Communication: that of the Program.
  void run(const Program& program);

  int size() const { return static_cast<int>(calls_.size()); }
  /// Returns the mesh of the calls; null where none is listed.
  const std::shared_ptr<MeshCore>& mesh() const { return mesh_; }

 private:
  int number_of(const TensorCore& tensor, bool made);
  int layers_now(const MeshCore& mesh);
  std::vector<bool> kept_by_others() const;

  std::shared_ptr<MeshCore> mesh_;
  std::vector<std::unique_ptr<ListedCall>> calls_;
  std::vector<LayerPath> layers_;
  std::unordered_map<const Storage*, int> numbers_;
  std::vector<ProgramTensor> tensors_;            ///< by their numbers
  std::vector<std::shared_ptr<Storage>> hidden_;  ///< that calls write
  Digest digest_;
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/run/detail/listed.hpp>
#endif
