// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Plans on paper: of one operator, at compile time if one likes, and of any function, dry.
///
///     constexpr auto p = plan<"ik,kj->ij">(like<X>(8, 512), like<W>(512, 96), sizes<Grid>(2, 4));
///     static_assert(p.count(all_reduce) == 0);
///     Program layer = plan(product)(like<X>(8, 512), like<W>(512, 96), sizes<Grid>(64, 64));
///
/// Laws: the plan of process r on paper equals the plan that process r executes.
#include <tuple>

#include <tessera/op/einsum.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/tensor/create.hpp>

namespace tessera {

/// A tensor's type and extents, without a mesh and without data.
template <TypedTensor Tensor> struct Like {
  using tensor = Tensor;
  Extents extents;
  constexpr TensorDesc desc() const {
    return {dtype_of<typename Tensor::value_type>, extents, Tensor::sharding()};
  }
};

/// Returns the description of a Tensor of extents n...
template <TypedTensor Tensor, std::convertible_to<Index>... N> constexpr Like<Tensor> like(N... n) {
  static_assert(
      sizeof...(N) == Tensor::rank,
      "[tessera] like<Tensor>(...) takes one extent for each dimension of the tensor's spec");
  return {Extents{static_cast<Index>(n)...}};
}

namespace detail {
/// At compile time this is not a constant, so the message stops the build; at run time it is an
/// exception.
inline void shapes_disagree(const Verdict& v, const Terms& terms) {
  throw ShapeError(explain(v, terms, {}));
}
constexpr void require_extents(const Terms& terms, const TensorDescs& descs) {
  const Verdict v = check_extents(terms, descs, false);
  if (!v.ok()) shapes_disagree(v, terms);
}
}  // namespace detail

/// Returns what einsum<E, Out>(a, b) does on process `process` of a mesh of the given sizes.
template <Equation E, class Out = Deduced, class A, class B>
constexpr Plan plan(Like<A> a, Like<B> b, MeshSizes<typename A::mesh_type> mesh, int process = 0,
                    const PlanOptions& options = {}) {
  using Typed = detail::EinsumCall<E, Out, A, B>;
  detail::require_extents(Typed::terms, {a.desc(), b.desc()});
  return plan_einsum(Typed::terms, a.desc(), b.desc(), Typed::value, mesh.shape, process, options);
}
/// Returns what reduce<Kind, E, Out>(x) does.
template <class Kind, Equation E, class Out = Deduced, class A>
constexpr Plan plan(Like<A> x, MeshSizes<typename A::mesh_type> mesh, int process = 0,
                    const PlanOptions& options = {}) {
  using Typed = detail::ReduceCall<Kind, E, Out, A>;
  return plan_reduce(Typed::terms, Kind::reduction, x.desc(), Typed::value, mesh.shape, process,
                     options);
}
/// Returns what reshard<S>(x) does.
template <class S, class A>
constexpr Plan plan(Like<A> x, MeshSizes<typename A::mesh_type> mesh, int process = 0,
                    const PlanOptions& options = {}) {
  using M = typename A::mesh_type;
  static_assert(detail::demand_spec<M, S>());
  return plan_reshard(x.desc(), lower<M, S>(), mesh.shape, process, options);
}

/// Records every operator on `mesh` while it lives; take() ends it and returns the Program.
class Recording {
 public:
  template <class M> explicit Recording(const ProcessMesh<M>& mesh) : Recording(mesh.core()) {}
  explicit Recording(std::shared_ptr<MeshCore> mesh) : mesh_(std::move(mesh)) {
    detail::Recorder& recorder = mesh_->attachment<detail::Recorder>();
    if (recorder.on)
      throw UsageError(
          "a mesh is recorded twice at once; end the first Recording before the second begins");
    recorder = {};
    recorder.on = true;
    recorder.program.mesh = mesh_->shape();
    recorder.program.set_names(mesh_->names());
    recorder.program.process = mesh_->process();
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    if (mesh_ != nullptr) mesh_->attachment<detail::Recorder>().on = false;
  }
  Program take() {
    detail::Recorder& recorder = mesh_->attachment<detail::Recorder>();
    recorder.on = false;
    mesh_.reset();
    return std::move(recorder.program);
  }

 private:
  std::shared_ptr<MeshCore> mesh_;
};

namespace detail {
template <class F> struct PlanOf {
  F f;

  /// Runs f on dry tensors; the arguments are Likes and, last, the sizes of the mesh.
  template <class... L, class M>
  Program run(std::tuple<L...> likes, MeshSizes<M> mesh_sizes, int process) const {
    const ProcessMesh<M> mesh = dry_mesh<M>(mesh_sizes, process);
    return std::apply(
        [&](const auto&... l) {
          auto tensors =
              std::make_tuple(make_tensor<typename std::remove_cvref_t<decltype(l)>::tensor>(
                  mesh, l.extents, {})...);
          Recording recording(mesh);
          std::apply(f, tensors);
          return recording.take();
        },
        likes);
  }
  template <class A, class M> Program operator()(Like<A> a, MeshSizes<M> m, int process = 0) const {
    return run(std::tuple(a), m, process);
  }
  template <class A, class B, class M>
  Program operator()(Like<A> a, Like<B> b, MeshSizes<M> m, int process = 0) const {
    return run(std::tuple(a, b), m, process);
  }
  template <class A, class B, class C, class M>
  Program operator()(Like<A> a, Like<B> b, Like<C> c, MeshSizes<M> m, int process = 0) const {
    return run(std::tuple(a, b, c), m, process);
  }
  template <class A, class B, class C, class D, class M>
  Program operator()(Like<A> a, Like<B> b, Like<C> c, Like<D> d, MeshSizes<M> m,
                     int process = 0) const {
    return run(std::tuple(a, b, c, d), m, process);
  }
};
}  // namespace detail

/// Returns a function from Likes and mesh sizes to the Program of f: plan(f)(like<X>(...), ...,
/// sizes<Grid>(64, 64)). f takes up to four tensors; for more, run it on a dry_mesh under a
/// Recording. Communication: none.
template <class F>
  requires(!std::is_base_of_v<Equation, F>)
detail::PlanOf<std::decay_t<F>> plan(F&& f) { return {std::forward<F>(f)}; }

}  // namespace tessera
