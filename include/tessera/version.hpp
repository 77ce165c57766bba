// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The version of the library, as numbers. The build checks that CMake's project version says the
/// same.
///
///     static_assert(tessera::version.major == 0);

namespace tessera {

/// A version after semver: while `major` is 0, a change of `minor` may break source compatibility.
struct Version {
  int major, minor, patch;
  friend constexpr bool operator==(const Version&, const Version&) = default;
};

inline constexpr Version version{0, 1, 0};

}  // namespace tessera
