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

#include <tessera/base/error.hpp>
#include <tessera/program/choice/chosen_layer.hpp>
#include <tessera/run/recording.hpp>

namespace tessera::detail {

class LayersAsChosen;
inline constinit thread_local LayersAsChosen* layers_of_thread = nullptr;  ///< null: nobody chooses
/// Whether a layer of this thread runs, that is open or runs again.
inline constinit thread_local bool within_layer = false;

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

/// While it lives, a layer runs, and open layers within it are kept.
class WithinLayer {
 public:
  WithinLayer() : before_(std::exchange(within_layer, true)) {}
  WithinLayer(const WithinLayer&) = delete;
  WithinLayer& operator=(const WithinLayer&) = delete;
  ~WithinLayer() { within_layer = before_; }

 private:
  bool before_;
};

/// Returns the name of an open layer that runs on a mesh.
inline std::string open_layer_name(const MeshCore& mesh) {
  std::string path = path_of(innermost_layer(mesh));
  return path.empty() ? "layer" : path;
}

/// Returns whether the open layer that begins runs again. Throws UsageError where nobody chooses
/// and it runs with data.
inline bool open_layer_runs_again(const MeshCore& mesh, const std::string& name, Where where) {
  if (layers_of_thread != nullptr) return layers_of_thread->next(name);
  if (mesh.dry()) return false;
  throw UsageError("recompute_if(Open{}, f): nothing has chosen whether \"" + name +
                       "\" runs again; choose(f) does, under a limit on memory, and compile(f, "
                       "choice) runs it so; call it there, or state it: recompute_if(true, f) runs "
                       "it again, recompute_if(false, f) keeps it",
                   where);
}

}  // namespace tessera::detail
