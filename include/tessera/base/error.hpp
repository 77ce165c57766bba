// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One family of exceptions. A message says what is wrong, the two facts that disagree, the rule
/// and the way out.
///
///     throw ShapeError("einsum \"ik,kj->ij\": k is 4 in the left operand and 5 in the right; ...",
///     where);
#include <stdexcept>
#include <string>
#include <utility>

#include <tessera/base/where.hpp>

namespace tessera {

/// Base of everything Tessera throws on purpose.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, Where where = {})
      : std::runtime_error(where.known() ? "[tessera] " + message + " (at " + to_string(where) + ")"
                                         : "[tessera] " + message),
        where_(where) {}
  Where where() const { return where_; }

 private:
  Where where_;
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
/// A file is missing, damaged, of another content than asked for, or cannot be written.
class FileError : public Error {
 public:
  using Error::Error;
};
/// Memory could not be had.
class MemoryError : public Error {
 public:
  using Error::Error;
};
/// A call that makes no sense in the present state: reading a dry tensor, using a closed
/// environment.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace tessera
