// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What is pinned of a Program's tensors, and the places that this leaves them.
///
///     PinnedTensors pins(program, options.pins);
///     pins.allow(tensor, sharding);   pins.placements(tensor)
///
/// Laws: a tensor without a pin may have every placement; one with several has those that all
/// allow.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/program/program.hpp>
#include <tessera/program/ways.hpp>
#include <tessera/spec/verdict.hpp>

namespace tessera::detail {

class PinnedTensors {
 public:
  PinnedTensors(const Program& program, const std::vector<TensorPin>& further)
      : program_(program), of_(program.tensors().size()) {
    for (const TensorPin& pin : program.pins()) add(pin);
    for (const TensorPin& pin : further) add(pin);
  }
  bool pinned(int t) const { return !pins(t).empty(); }
  /// Returns whether the type of a tensor leaves it open.
  bool open(int t) const {
    return std::any_of(pins(t).begin(), pins(t).end(),
                       [](const TensorPin& pin) { return pin.opens; });
  }
  bool allow(int t, const Sharding& s) const {
    return std::all_of(pins(t).begin(), pins(t).end(),
                       [&](const TensorPin& pin) { return pin.to.allows(s, program_.mesh); });
  }
  /// Returns the placements of a tensor that its pins allow. What a pin states is among them where
  /// the rest may be whole, though it split a dimension of one element, or nest axes otherwise.
  std::vector<Sharding> placements(int t) const {
    std::vector<Sharding> all;
    for (const TensorPin& pin : pins(t))
      for (const Sharding& rest :
           tessera::detail::placements(program_.tensor(t).desc.extents, program_.mesh)) {
        const Sharding s = pin.to.filled(rest);
        const bool legal = check(s, program_.mesh.rank()).ok() && allow(t, s);
        if (legal && std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
      }
    return all;
  }
  /// Throws ShardingError where the pins of a tensor leave it no place.
  void require(int t, bool free) const {
    const ProgramTensor& tensor = program_.tensor(t);
    const AxisNames names = program_.names();
    if (free ? !placements(t).empty() : allow(t, tensor.desc.sharding)) return;
    const auto what = [&] {
      if (tensor.made < 0) return std::string("an argument");
      return "the result of " + program_.entry(tensor.made).label;
    };
    std::string text = what() + " of " + to_string(tensor.desc.extents) + " is pinned to ";
    for (std::size_t i = 0; i < pins(t).size(); ++i)
      text += (i > 0 ? " and to " : "") + to_string(pins(t)[i].to, names);
    if (free)
      text +=
          ", which no sharding keeps; the pins of one tensor agree; state one of them, or "
          "reshard to the other";
    else
      text += ", and lies " + to_string(tensor.desc.sharding, names) + ", since " +
              std::string(tensor.made < 0 ? "it is an argument, whose sharding the caller states; "
                                            "open it (ChooseOptions::open), or"
                          : tensor.last >= program_.size()
                              ? "the function returns or keeps it; open the results "
                                "(ChooseOptions::open_results), or"
                              : "an operator makes or reads it as it is;") +
              " reshard it, and pin what reshard makes of it";
    throw ShardingError(text, pins(t).front().where);
  }

 private:
  const std::vector<TensorPin>& pins(int t) const { return of_[static_cast<std::size_t>(t)]; }
  void add(const TensorPin& pin) {
    if (pin.tensor < 0 || pin.tensor >= static_cast<int>(of_.size()))
      throw UsageError("choose: tensor " + std::to_string(pin.tensor) +
                       " is pinned, and the Program has " + std::to_string(of_.size()) +
                       " tensors; count them from 0, as explain(choice) does");
    of_[static_cast<std::size_t>(pin.tensor)].push_back(pin);
  }

  const Program& program_;
  std::vector<std::vector<TensorPin>> of_;  ///< the pins of each tensor
};

}  // namespace tessera::detail
