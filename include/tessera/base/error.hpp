// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One family of exceptions. A message says what is wrong, the two facts that disagree, the rule
/// and the way out.
///
///     throw ShapeError("einsum \"ik,kj->ij\": k is 4 in the left operand and 5 in the right; ...",
///     where);
///
/// Laws: the place of the user's call, the layer and the process stand last; each is added once,
/// where it is first known.
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/base/where.hpp>

namespace tessera {

/// Base of everything Tessera throws on purpose.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Where where = {})
      : std::runtime_error(message), where_(where) {
    compose();
  }
  const char* what() const noexcept override { return text_->c_str(); }
  Where where() const { return where_; }
  /// Returns whether the text says on which process it was thrown.
  bool names_process() const { return process_ != nullptr; }

  /// Adds what the thrower did not know: the operator, the place of the user's call, the process
  /// with its coordinates, and the layer. An empty text or an unknown place adds nothing.
  void complete(std::string_view label, Where where, std::string_view process,
                std::string_view layer = {}) {
    if (label_ == nullptr && !label.empty()) label_ = std::make_shared<const std::string>(label);
    if (!where_.known()) where_ = where;
    if (process_ == nullptr && !process.empty())
      process_ = std::make_shared<const std::string>(process);
    if (layer_ == nullptr && !layer.empty()) layer_ = std::make_shared<const std::string>(layer);
    compose();
  }

 private:
  using Text = std::shared_ptr<const std::string>;  // copies of an exception do not throw

  void compose() {
    std::string text = "[tessera] ";
    if (label_ != nullptr) text += *label_ + ": ";
    text += std::runtime_error::what();
    std::string last;
    const auto add = [&last](const char* word, const std::string& what) {
      last += last.empty() ? " (" : ", ";
      last += word;
      last += what;
    };
    if (where_.known()) add("at ", to_string(where_));
    if (layer_ != nullptr) add("in ", *layer_);
    if (process_ != nullptr) add("on ", *process_);
    if (!last.empty()) text += last + ")";
    text_ = std::make_shared<const std::string>(std::move(text));
  }

  Where where_;
  Text label_;
  Text process_;
  Text layer_;
  Text text_;
};

/// Extents disagree, or do not fit the operator.
class ShapeError : public Error {
 public:
  using Error::Error;
};
/// A sharding is not legal on its mesh, or not legal for the operator.
class ShardingError : public Error {
 public:
  using Error::Error;
};
/// A mesh does not fit its processes, or two operands live on different meshes.
class MeshError : public Error {
 public:
  using Error::Error;
};
/// An operator, or a whole Program, does not keep its contract.
class ContractError : public Error {
 public:
  using Error::Error;
};
/// Processes call different operators, or the same one with different shapes.
class MismatchError : public Error {
 public:
  using Error::Error;
};
/// The transport failed, or a process did not come within the limit.
class CommunicationError : public Error {
 public:
  using Error::Error;
};
/// A file is missing or damaged, has other contents than the call asked for, or cannot be written.
class FileError : public Error {
 public:
  using Error::Error;
};
/// An operator made a NaN or an infinity, on a mesh that looks for them (MeshOptions::find).
class ValueError : public Error {
 public:
  using Error::Error;
};
/// Memory could not be allocated.
class MemoryError : public Error {
 public:
  using Error::Error;
};
/// A call makes no sense in the present state: reading a dry tensor, using a closed environment.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace tessera
