// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The verb that makes a block of no other tensor, by the call's function.
///
///     step.is<step::Create>()
#include <tessera/plan/step/verb.hpp>

namespace tessera::step {

struct Create : Verb {
  static constexpr std::string_view name = "create";
};

}  // namespace tessera::step
