// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The tensors of a model that a choice's function has for an argument, and how they are chosen.
///
///     detail::for_each_chosen(choice, "0", model, {"born_as", where}, visit)
///
/// Laws: tensors are visited in the order of the model's tree.
#include <cstddef>
#include <string>
#include <string_view>

#include <tessera/base/error.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/run/call_site.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera::detail {

/// Calls visit(number, field, x, sharding) for each tensor x, counted from 0 within the model, that
/// argument `path` of the choice's function has and reads; it returns whether the tensor is known.
/// Throws UsageError where none is.
template <class Model, class Visit>
void for_each_chosen(const Choice& choice, std::string_view path, const Model& model,
                     const CallSite& site, const Visit& visit) {
  const std::string own(path);
  std::size_t next = 0;
  bool any = false;
  for_each_named_tensor(
      [&](const std::string& field, const auto& x) {
        const std::size_t number = next++;
        const std::string name = field.empty() ? own : own + "." + field;
        for (const ProgramArgument& argument : choice.given().arguments())
          if (argument.path == name) any |= visit(number, field, x, choice.argument(name));
      },
      model);
  if (!any)
    throw UsageError(std::string(site.label) + ": the choice has no argument " + own +
                         " of this model's fields; name the model's place among the arguments "
                         "of the function that was chosen, as in \"0\"",
                     site.where);
}

}  // namespace tessera::detail
