// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Functions of tensors whose operators run together: a call lists them first, and carries them out
/// when the function has returned.
///
///     auto step = compile([](const auto& x, auto& w) {
///       w += 0.5f * x;
///       return sum(w * x);
///     });
///     auto loss = step(x, w);             // what the function returns, and w changed as it does
///     explain(step);                      // what the passes did, and the Program that ran
///     step.explain_structures();          // how its calls have differed
///
/// The function runs at every call, so that host numbers, branches and state are right; its
/// operators are checked and planned as it runs, and errors name their places. It gives tensors to
/// operators and returns them, and does not look at their elements: value, to_host, files and views
/// are for before and after. What it captures and what it is given is read when the list runs.
///
/// Its operators may be on several meshes of one world: parts of a mesh, the mesh, and meshes over
/// the same processes; it may move tensors between them (op/between.hpp) and call manual functions.
/// Every process lists all of them, and does what it takes part in; the Program names the parts.
///
/// Laws: the results are those of the function alone; each tensor ends with the last operator that
/// reads it; a Program of a structure is made once.
#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/program/choice/difference.hpp>
#include <tessera/program/choice/layers_as_chosen.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/run/list/structures.hpp>
#include <tessera/run/taker.hpp>

namespace tessera {

/// A function that was compiled. One object belongs to one thread.
template <class F> class Compiled {
 public:
  Compiled(F f, const CompileOptions& options, Where where)
      : f_(std::move(f)), options_(options), where_(where) {}

  /// Calls the function. Within another compiled function, async or value_and_grad, its operators
  /// are that one's.
  /// Arguments that are moved here end before the list runs, so that their memory is reused.
  /// Communication: that of the function, less what is shared. Collective over the mesh.
  template <class... A>
    requires std::is_invocable_v<F&, A...> std::invoke_result_t<F&, A...>
  operator()(A&&... arguments) {
    using Result = std::invoke_result_t<F&, A...>;
    if (detail::taker_of_thread != nullptr) return f_(std::forward<A>(arguments)...);
    detail::Listing calls(detail::ListsOn::one_world);
    const auto listed = [&]() -> Result {
      const detail::TakenBy scope(&calls);
      const detail::ChosenOnThread chosen(options_.choose.has_value());
      std::optional<detail::LayersAsChosen> layers;  // without a limit on memory all are kept
      if (options_.choose && options_.choose->stated != nullptr)
        layers.emplace(options_.choose->stated->layers);
      else if (options_.choose && !limits_memory())
        layers.emplace(std::vector<bool>{});
      constexpr bool keeps = (std::is_lvalue_reference_v<A> && ...);
      constexpr bool moves = (std::is_constructible_v<A, A&&> && ...);
      if constexpr (keeps || !moves || std::is_reference_v<Result>) {
        return f_(std::forward<A>(arguments)...);
      } else {
        std::tuple<A...> given(std::forward<A>(arguments)...);
        return std::apply([&](auto&... a) -> Result { return f_(std::forward<A>(a)...); }, given);
      }
    };
    if constexpr (std::is_void_v<Result>) {
      listed();
      structures_.run(calls, options_, where_);
    } else {
      Result result = listed();
      structures_.run(calls, options_, where_);
      return static_cast<Result>(result);
    }
  }
  /// Returns how many structures its calls have had, and how each differs from the one before.
  int structures() const { return structures_.size(); }
  std::string explain_structures() const { return structures_.explain(); }
  /// Return the Program of the last call as it ran, as it was listed, and what the passes did to
  /// it. Throw UsageError before the first call that lists an operator.
  const Program& program() const { return overlap().program; }
  const Program& listed() const { return structures_.last().listed; }
  const Choice& choice() const { return structures_.last().choice; }
  const Sharing& sharing() const { return structures_.last().sharing; }
  const Joining& joining() const { return structures_.last().joining; }
  const Reuse& reuse() const { return structures_.last().reuse; }
  const Overlap& overlap() const { return structures_.last().overlap; }

 private:
  bool limits_memory() const {
    return std::min(options_.memory_limit, options_.choose->memory_limit) != max_int64;
  }

  F f_;
  CompileOptions options_;
  Where where_;
  detail::Structures structures_;
};

/// Returns what each pass did to the last call's Program. Communication: none. Throws UsageError
/// before the first call that lists an operator.
template <class F> std::string explain_passes(const Compiled<F>& compiled) {
  const bool chosen = compiled.choice().question != nullptr;
  return (chosen ? explain(compiled.choice()) : std::string()) + explain(compiled.sharing()) +
         explain(compiled.joining()) + explain(compiled.reuse()) + explain(compiled.overlap());
}
/// Returns what the passes did, and the Program that ran. Communication: none. Errors: as
/// explain_passes.
template <class F> std::string explain(const Compiled<F>& compiled) {
  return explain_passes(compiled) + explain(compiled.program());
}

/// Returns a function of f's arguments, tensors of any shape and anything else, that returns what f
/// returns; its operators run together. Communication: none now; a call's is that of its Program,
/// which program() has, and no more than f's own. Collective over the mesh are its calls. Throws
/// nothing now; a call throws what f's operators throw, and UsageError where f reads a tensor's
/// elements or refreshes a halo tensor, MeshError for meshes over other processes, MismatchError
/// where one process alone has a new structure.
template <class F>
Compiled<std::decay_t<F>> compile(F&& f, const CompileOptions& options = {},
                                  Where where = Where::here()) {
  return {std::forward<F>(f), options, where};
}

/// Returns f, split as a choice says that was made before: of f, or of one like it
/// (program/choice/table.hpp): its open layers run again where the choice has it. Arguments that
/// the choice opened are made by choice.argument(path). Communication, errors: as compile of f; a
/// call with an argument that lies otherwise than the choice has it throws ShardingError.
template <class F, std::same_as<ChoiceTable> Table>  // so that braces are options
Compiled<std::decay_t<F>> compile(F&& f, const Table& choice, CompileOptions options = {},
                                  Where where = Where::here()) {
  if (!options.choose) options.choose = ChooseOptions{.objective = choice.objective};
  options.choose->stated = keep(choice);
  const auto chosen = [](const ChosenTensor& tensor) { return tensor.free; };
  if (std::none_of(choice.tensors.begin(), choice.tensors.end(), chosen))
    options.choose->keep_shardings = true;  // it chose layers alone
  return {std::forward<F>(f), options, where};
}
template <class F, std::same_as<Choice> Chosen>
Compiled<std::decay_t<F>> compile(F&& f, const Chosen& choice, const CompileOptions& options = {},
                                  Where where = Where::here()) {
  return compile(std::forward<F>(f), table_of(choice), options, where);
}

}  // namespace tessera
