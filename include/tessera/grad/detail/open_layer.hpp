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

#include <tessera/run/layers_as_chosen.hpp>
#include <tessera/run/taker.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera::detail {

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
