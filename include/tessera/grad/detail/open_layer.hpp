// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A layer of which it is open whether it runs again, as it runs (grad/recompute.hpp).
///
///     const OpenLayerRun run(mesh, where);
///     y = run.again() ? repeated(x) : f(x);
///
/// Laws: it is asked for once, by its first run, and the recording of its mesh knows its operators.
#include <string>
#include <type_traits>
#include <utility>

#include <tessera/base/error.hpp>
#include <tessera/program/choice/layers_as_chosen.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/run/taker.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera::detail {

/// Whether a layer of this thread runs, that is open or runs again.
inline constinit thread_local bool within_layer = false;

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

/// A function that is a layer.
template <class F> struct LayerFunction {
  F f;
  template <class... A>
    requires std::is_invocable_v<const F&, const A&...>
  auto operator()(const A&... arguments) const {
    const WithinLayer within;
    return f(arguments...);
  }
};

/// Returns the mesh of a layer's arguments, if a gradient is taken of it and it lies in no other
/// layer; else null.
template <class... A> MeshCore* mesh_to_choose_on(const A&... arguments) {
  MeshCore* mesh = nullptr;
  if (within_layer || taker_of_thread == nullptr || taker_of_thread->tape() == nullptr) return mesh;
  const auto see = [&](const auto& x) {
    if (mesh == nullptr && x.defined()) mesh = x.core().mesh().get();
  };
  (for_each_tensor(see, arguments), ...);
  return mesh;
}

class OpenLayerRun {
 public:
  OpenLayerRun(MeshCore& mesh, Where where)
      : recorder_(mesh.attachment<Recorder>()),
        name_(open_layer_name(mesh)),
        again_(open_layer_runs_again(mesh, name_, where)),
        begin_(recorder_.size()) {}
  OpenLayerRun(const OpenLayerRun&) = delete;
  OpenLayerRun& operator=(const OpenLayerRun&) = delete;
  ~OpenLayerRun() { recorder_.add_open_layer(std::move(name_), again_, begin_); }

  bool again() const { return again_; }

 private:
  Recorder& recorder_;
  std::string name_;
  bool again_;
  int begin_;
  WithinLayer within_;
};

}  // namespace tessera::detail
