// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What is asked of a choice of shardings (program/choice.hpp).
///
///     ChooseOptions options{.objective = Objective::payload, .flops_limit = program.flops()};
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/base/math.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// What a choice makes least: modelled time, in picoseconds; or the payload of the process with
/// most, in bytes, and of equal payloads the shorter time.
enum class Objective : std::uint8_t { time, payload };

struct ChoiceTable;
namespace detail {
class Prices;
/// Records a Program whose open layers run again where `again` says so; those beyond it are kept.
using RecordLayers = std::function<Program(const std::vector<bool>& again)>;
}  // namespace detail

struct ChooseOptions {
  Objective objective = Objective::time;
  /// The tensors of the Program, among those that no operator makes, whose sharding is open too.
  std::vector<int> open = {};
  /// Arguments that are open, by their paths, where choose is given a function: "1.weight", or "1"
  /// for all tensors of the second one.
  std::vector<std::string> open_paths = {};
  bool open_arguments = false;  ///< all tensors that no operator makes are open
  bool open_results = false;    ///< the tensors that outlive the Program are open
  /// What tensors of the Program shall be split like, beside what constrain states in the function.
  std::vector<TensorPin> pins = {};
  /// An earlier choice (program/choice/table.hpp): a tensor that it has is split otherwise only
  /// where keeping it, too, would cost more.
  std::shared_ptr<const ChoiceTable> previous = {};
  /// A choice to repeat: the tensors that it chose are split as it says, whatever that costs.
  std::shared_ptr<const ChoiceTable> stated = {};
  Index flops_limit = max_int64;  ///< of process 0, in all operators
  /// Bytes of tensors and workspace that a process may hold. Tensors that the Program does not name
  /// are counted as this process holds them: all processes choose alike where these take as much on
  /// all of them.
  Index memory_limit = max_int64;
  /// Tensors stay split as they are recorded: of open layers alone (grad/recompute.hpp) it is
  /// chosen whether they run again.
  bool keep_shardings = false;
  /// How many steps the search may take where the network is too large to be solved exactly: more
  /// narrow the gap.
  std::uint64_t steps = 4000;
  /// Prices that questions of one mesh, objective and kind of limits find once for all of them;
  /// null: each finds its own.
  std::shared_ptr<detail::Prices> prices = {};
};

}  // namespace tessera
