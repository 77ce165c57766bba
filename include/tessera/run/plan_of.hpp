// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Dry plans, without processes and data: of one operator, at compile time too, and of any
/// function, on a dry mesh.
///
///     constexpr auto p = plan<"ik,kj->ij">(like<X>(8, 512), like<W>(512, 96), sizes<Grid>(2, 4));
///     static_assert(p.count(all_reduce) == 0);
///     Program layer = plan(project)(like<X>(8, 512), like<W>(512, 96), sizes<Grid>(64, 64));
///
/// Laws: the dry plan of process r equals the plan that process r executes.
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/program/like.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/tensor/process_mesh.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {

namespace detail {
template <class X> inline constexpr bool is_sizes = false;
template <class M> inline constexpr bool is_sizes<MeshSizes<M>> = true;
template <class X> inline constexpr bool is_process_mesh = false;
template <class M> inline constexpr bool is_process_mesh<ProcessMesh<M>> = true;
template <class X>
inline constexpr bool is_mesh_argument =
    is_sizes<std::remove_cvref_t<X>> || is_process_mesh<std::remove_cvref_t<X>>;

/// Returns the mesh of a dry run: of these sizes,
template <class M> ProcessMesh<M> dry_mesh_of(MeshSizes<M> mesh_sizes, int process) {
  return dry_mesh<M>(mesh_sizes, process < 0 ? 0 : process);
}
/// or like this one, which may be a real one.
template <class M> ProcessMesh<M> dry_mesh_of(const ProcessMesh<M>& like, int process) {
  return dry_mesh(like, process);
}

/// Returns the substitute for an argument in a dry run: a dry tensor for a Like, dry tensors for
/// several, a DynamicTensor for a TensorDesc, and the argument itself for anything else.
template <class M, class X> const X& dry_argument(const ProcessMesh<M>&, const X& x) { return x; }
template <class M, class Tensor>
Tensor dry_argument(const ProcessMesh<M>& mesh, const Like<Tensor>& like) {
  static_assert(demand_made<Tensor>());
  return Tensor(TensorCore::make(mesh.core(), like.desc()));
}
template <class M> DynamicTensor dry_argument(const ProcessMesh<M>& mesh, const TensorDesc& desc) {
  return DynamicTensor(TensorCore::make(mesh.core(), desc));
}
template <class M, class Tensor>
std::vector<Tensor> dry_argument(const ProcessMesh<M>& mesh,
                                 const std::vector<Like<Tensor>>& likes) {
  std::vector<Tensor> tensors;
  for (const Like<Tensor>& like : likes) tensors.push_back(dry_argument(mesh, like));
  return tensors;
}

/// Tells the recording that a tensor's type leaves it open.
template <class M, class Tensor>
void tell_open_tensor(const ProcessMesh<M>& mesh, const Tensor& tensor) {
  if constexpr (OpenTensor<Tensor>)
    if (tensor.defined() && tensor.core().mesh() == mesh.core())
      mesh.core()->template attachment<Recorder>().pin(tensor.core(),
                                                       TensorFacts<Tensor>::sharding(), {}, true);
}
/// What a recording is told beside the operators: the open tensors among arguments, and the result.
struct TellOpen {
  template <class M, class... A>
  void begin(const ProcessMesh<M>& mesh, const A&... arguments) const {
    (tell(mesh, arguments), ...);
  }
  template <class M, class R, class... A>
  void end(const ProcessMesh<M>& mesh, const R& result, const A&...) const {
    tell(mesh, result);
  }

 private:
  template <class M, class X> static void tell(const ProcessMesh<M>& mesh, const X& x) {
    tell_open_tensor(mesh, x);
  }
  template <class M, class Tensor>
  static void tell(const ProcessMesh<M>& mesh, const std::vector<Tensor>& tensors) {
    if constexpr (OpenTensor<Tensor>)
      for (const Tensor& tensor : tensors) tell_open_tensor(mesh, tensor);
  }
};

/// The result of a function that returns none.
struct NoResult {};

/// Runs f(arguments...), or f(mesh, arguments...) where f is callable so only, under a Recording,
/// which `told` is called for before and after. The result of f lives until the Recording ends.
template <class M, class Told, class F, class... A>
Program recorded_beside(const ProcessMesh<M>& mesh, const Told& told, const F& f,
                        const A&... arguments) {
  using Plain = std::is_invocable<const F&, const A&...>;  // tried first, and alone where it holds
  using WithMesh = std::is_invocable<const F&, const ProcessMesh<M>&, const A&...>;
  static_assert(
      std::disjunction_v<Plain, WithMesh>,
      "[tessera] plan(f)(...) or choose(f)(...) cannot call f with what it is given; give a "
      "like<Tensor>(...) for "
      "each tensor that f takes, other arguments as they are, then the sizes of the mesh; f may "
      "take the mesh itself first");
  Recording recording(mesh);
  told.begin(mesh, arguments...);
  const auto run = [&]() -> decltype(auto) {
    if constexpr (Plain::value)
      return f(arguments...);
    else
      return f(mesh, arguments...);
  };
  if constexpr (std::is_void_v<decltype(run())>) {
    run();
    told.end(mesh, NoResult{}, arguments...);
    return recording.take();
  } else {
    const auto result = run();
    told.end(mesh, result, arguments...);
    return recording.take();
  }
}
template <class M, class F, class... A>
Program recorded(const ProcessMesh<M>& mesh, const F& f, const A&... arguments) {
  return recorded_beside(mesh, TellOpen{}, f, arguments...);
}

template <class F> struct PlanOf {
  F f;

  /// The arguments of f, then the mesh (sizes or a ProcessMesh), then perhaps a process.
  template <class... A> Program operator()(const A&... a) const {
    constexpr bool meshes[] = {is_mesh_argument<A>...};
    constexpr int last = static_cast<int>(sizeof...(A)) - 1;
    constexpr int at = [&] {
      for (int i = last; i >= 0 && i >= last - 1; --i)
        if (meshes[i]) return i;
      return -1;
    }();
    static_assert(at >= 0,
                  "[tessera] plan(f)(...) is not told on which mesh; give the sizes of the mesh "
                  "after the arguments of f, as in plan(f)(like<X>(8, 512), sizes<Grid>(2, 4))");
    if constexpr (at >= 0)
      return run(std::forward_as_tuple(a...), std::make_index_sequence<at>{});
    else
      return {};
  }

 private:
  template <class Tuple, std::size_t... I>
  Program run(const Tuple& arguments, std::index_sequence<I...>) const {
    constexpr std::size_t at = sizeof...(I);
    int process = -1;
    if constexpr (std::tuple_size_v < Tuple >> at + 1) process = std::get<at + 1>(arguments);
    const auto mesh = dry_mesh_of(std::get<at>(arguments), process);
    return recorded(mesh, f, dry_argument(mesh, std::get<I>(arguments))...);
  }
};
}  // namespace detail

/// Returns a function that runs f dry and returns its Program: plan(f)(like<X>(...), 0.5,
/// sizes<Grid>(64, 64)). Each tensor that f takes is given as a like<Tensor>(...), a vector of them
/// or, for a DynamicTensor, a TensorDesc; other arguments are passed on; f may also take the
/// ProcessMesh first. Last come the mesh (its sizes; or a ProcessMesh, which gives its machine
/// model and limits and is not touched) and, if not 0 or the mesh's own, the process. f may be a
/// function, a lambda or a functor, and return anything. Communication: none.
template <class F>
  requires(!std::is_base_of_v<Equation, F>)
detail::PlanOf<std::decay_t<F>> plan(F&& f) { return {std::forward<F>(f)}; }

/// Runs f(arguments...) on tensors of `mesh`, really or dry, and returns its Program. Collective
/// over the mesh. Communication: that of f.
template <class M, class F, class... A>
Program record(const ProcessMesh<M>& mesh, const F& f, const A&... arguments) {
  return detail::recorded(mesh, f, arguments...);
}

}  // namespace tessera
