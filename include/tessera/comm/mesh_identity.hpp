// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a mesh is at run time, apart from its actions: its axes, its options, and the place of this
/// process in it.
///
///     mesh.to_string();           // "data=2 x model=4"
///     mesh.process_text();        // "process 5: data=1, model=1"
#include <string>
#include <string_view>
#include <vector>

#include <tessera/comm/detail/mesh_text.hpp>
#include <tessera/comm/mesh_options.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera::detail {

class MeshIdentity {
 public:
  MeshIdentity(const MeshIdentity&) = delete;
  MeshIdentity& operator=(const MeshIdentity&) = delete;

  const MeshShape& shape() const { return shape_; }
  const AxisNames& names() const { return names_; }
  /// Returns this process's number in the mesh, row-major.
  int process() const { return process_; }
  const Coordinates& coordinates() const { return coordinates_; }
  /// Returns the mesh's processes by their numbers in the whole job, in the mesh's order.
  const std::vector<int>& processes() const { return processes_; }
  const MeshOptions& options() const { return options_; }
  const Machine& machine() const { return options_.machine; }
  Index workspace_limit() const { return options_.workspace_limit; }
  bool strict() const { return options_.strict; }
  Check check() const { return options_.check; }
  bool dry() const { return dry_; }
  /// Returns whether this process computes alone: its transport is a fake (comm/fake.hpp).
  bool alone() const { return alone_; }
  /// Returns whether this process is none of the mesh's: it is dry here, and its ledger is empty.
  bool absent() const { return absent_; }

  /// Returns "data=2 x model=4".
  std::string to_string() const { return tessera::to_string(shape_, names_); }
  /// Returns the names of the axes in `group`, e.g. "data,model".
  std::string axes_text(AxisSet group) const {
    return tessera::to_string(group & shape_.axes(), names_);
  }
  /// Names a group that may hold an axis in part: "data,model in runs of 4", "model in steps of 4".
  std::string group_text(const AxisGroup& group) const { return detail::group_text(group, names_); }
  /// Returns "process 5: data=1, model=1".
  std::string process_text() const { return detail::process_text(process_, coordinates_, names_); }

 protected:
  MeshIdentity(const MeshShape& shape, const AxisNames& names, const MeshOptions& options)
      : shape_(shape), options_(options) {
    for (const std::string_view name : names) name_storage_.emplace_back(name);
    for (const std::string& name : name_storage_) names_.push_back(name);
  }
  ~MeshIdentity() = default;

  MeshShape shape_;
  std::vector<std::string> name_storage_;
  AxisNames names_;
  MeshOptions options_;
  bool dry_ = false;
  bool alone_ = false;
  bool absent_ = false;
  int process_ = 0;
  std::vector<int> processes_;
  Coordinates coordinates_;
};
}  // namespace tessera::detail
