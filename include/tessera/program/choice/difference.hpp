// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A choice as a table, beside another one, and as C++.
///
///     std::string changes = difference(choice, table_of(before));
///     std::string specs = specs_of(choice);          // using block_tanh = P<data,model>;  // ...
///
/// Laws: a choice differs in no row from its own table.
#include <string>

#include <tessera/base/compiled.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/program/choice/table.hpp>

namespace tessera {

/// Returns what a choice says.
TESSERA_FUNCTION ChoiceTable table_of(const Choice& choice);
/// Returns the open layers that do otherwise than in the table `before`, and the tensors that are
/// split otherwise, those that are new, and those that are gone, with what it would cost the whole
/// Program to split each as it was.
TESSERA_FUNCTION std::string difference(const Choice& choice, const ChoiceTable& before);
inline std::string difference(const Choice& choice, const Choice& before) {
  return difference(choice, table_of(before));
}
/// Returns the specs of a choice as C++, one `using` for each tensor that was chosen.
TESSERA_FUNCTION std::string specs_of(const Choice& choice);

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/choice/detail/difference.hpp>
#endif
