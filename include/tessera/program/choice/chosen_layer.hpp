// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a layer runs again on the way back, as a choice says it (program/choice.hpp), and what
/// that costs.
///
///     const std::vector<ChosenLayer> layers{{"block 0", true}, {"block 1", false}};
///     runs_again(layers) == std::vector<bool>{true, false};
///     again_by_name({"block 1", "block 0"}, layers) == std::vector<bool>{false, true};
///
/// Laws: layers stand in the order in which they run; those of one name are told apart by it.
#include <cstddef>
#include <string>
#include <vector>

#include <tessera/base/math.hpp>
#include <tessera/solve/cost.hpp>

namespace tessera {

struct ChosenLayer {
  std::string name;  ///< the path of the named layer that it lies in; "layer" where it has none
  bool again = false;
  bool operator==(const ChosenLayer&) const = default;
};

/// What one layer's running again costs and saves, beside all others that do, as the Program was
/// recorded.
struct LayerPrice {
  int alike = -1;   ///< layers of one number are alike
  Cost saved = 0;   ///< of what is made least, by keeping it
  Index bytes = 0;  ///< that the process with most holds more at its peak then
};

/// Returns for each layer whether it runs again. Communication: none. Throws nothing.
inline std::vector<bool> runs_again(const std::vector<ChosenLayer>& layers) {
  std::vector<bool> again;
  for (const ChosenLayer& layer : layers) again.push_back(layer.again);
  return again;
}

namespace detail {
/// Finds layers by their names, each once: the second one of a name is the second.
class LayersByName {
 public:
  explicit LayersByName(const std::vector<ChosenLayer>& layers)
      : layers_(&layers), met_(layers.size()) {}
  /// Returns whether the next layer of a name runs again; false where there is none.
  bool next(const std::string& name) {
    for (std::size_t i = 0; i < layers_->size(); ++i)
      if (!met_[i] && (*layers_)[i].name == name) {
        met_[i] = true;
        return (*layers_)[i].again;
      }
    return false;
  }

 private:
  const std::vector<ChosenLayer>* layers_;
  std::vector<bool> met_;
};
}  // namespace detail

/// Returns for layers of these names whether they run again: each does as the one of its name, the
/// second of a name as the second; those of other names are kept. Communication: none.
inline std::vector<bool> again_by_name(const std::vector<std::string>& names,
                                       const std::vector<ChosenLayer>& layers) {
  detail::LayersByName known(layers);
  std::vector<bool> again;
  for (const std::string& name : names) again.push_back(known.next(name));
  return again;
}

}  // namespace tessera
