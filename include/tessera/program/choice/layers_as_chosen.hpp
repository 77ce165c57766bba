// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which open layers of a thread's function run again on the way back: who chooses says so, and who
/// repeats a choice.
///
///     { const LayersAsChosen scope({true, false});  program = record(); }   // the first one does
///
/// Laws: layers are counted as the function runs them; one within another is not counted, and is
/// kept; one scope at a time, and the one before holds again when it ends.
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/program/choice/chosen_layer.hpp>

namespace tessera::detail {

class LayersAsChosen;
inline constinit thread_local LayersAsChosen* layers_of_thread = nullptr;  ///< null: nobody chooses

class LayersAsChosen {
 public:
  /// The first layers run again as is said; those beyond are kept.
  explicit LayersAsChosen(std::vector<bool> again)
      : again_(std::move(again)), before_(std::exchange(layers_of_thread, this)) {}
  /// A layer does as the one of its name: the second one of a name as the second. Those that have
  /// none are kept.
  explicit LayersAsChosen(const std::vector<ChosenLayer>& layers)
      : named_(layers), before_(std::exchange(layers_of_thread, this)) {}
  LayersAsChosen(const LayersAsChosen&) = delete;
  LayersAsChosen& operator=(const LayersAsChosen&) = delete;
  ~LayersAsChosen() { layers_of_thread = before_; }

  /// Returns whether the next layer runs again.
  bool next(const std::string& name) {
    if (named_) return named_->next(name);
    return number_ < again_.size() && again_[number_++];
  }

 private:
  std::vector<bool> again_;
  std::size_t number_ = 0;
  std::optional<LayersByName> named_;
  LayersAsChosen* before_;
};

}  // namespace tessera::detail
