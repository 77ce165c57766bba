// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Choosing the shardings of a function from its arguments, real or dry, in one call.
///
///     const ChooseOptions options{.open_paths = {"1"}};
///     const Choice choice = choose(project, options)(like<X>(8, 512), like<W>(512, 96), sizes<Grid>(2, 4));
///     choice.argument("1")                            // how the second argument is to be made
///
/// Arguments are those of plan(f) (run/plan_of.hpp), and tensors and trees of them on any mesh,
/// whose shapes are taken: nothing is computed. The tensors of the arguments have paths,
/// "1.weight", by which explain names them and ChooseOptions::open_paths opens them.
///
/// Where f has open layers and memory is limited, f is recorded once for each choice of layers that
/// is compared.
///
/// Laws: choose(f)(a...) is the choice of the Program that plan(f)(a...) records, if no layer of it
/// runs again.
#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/program/choice.hpp>
#include <tessera/program/choice/layers_as_chosen.hpp>
#include <tessera/run/plan_cache.hpp>
#include <tessera/run/plan_of.hpp>
#include <tessera/run/taker.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {
namespace detail {
/// An object that is no tree, and has tensors that are chosen: an optimizer's state.
template <class T>
concept HasOpenState = requires(const T& x) {
  x.for_each_open([](const std::string&, const TensorCore&) {});
};
template <class T> struct HoldsTensors;
template <class T> struct ElementsHoldTensors : std::false_type {};
template <class... T>
struct ElementsHoldTensors<std::tuple<T...>> : std::conjunction<HoldsTensors<T>...> {};
template <class A, class B>
struct ElementsHoldTensors<std::pair<A, B>> : std::conjunction<HoldsTensors<A>, HoldsTensors<B>> {};
template <class T, std::size_t N> struct ElementsHoldTensors<std::array<T, N>> : HoldsTensors<T> {};
template <class T, class Allocator>
struct ElementsHoldTensors<std::vector<T, Allocator>> : HoldsTensors<T> {};
/// Whether an argument is a tree of tensors, and not something that the function is given as it is.
template <class T>
struct HoldsTensors : std::bool_constant<is_tensor<T> || HasFields<T> || HasOpenState<T> ||
                                         ElementsHoldTensors<T>::value> {};

/// Calls see(tree) for the trees of tensors of an argument or a result: itself, or those in a tuple
/// or in a struct of a value and a gradient, beside anything else.
template <class X, class See> void for_each_tree(const X& x, const See& see) {
  if constexpr (HoldsTensors<X>::value && !TupleLike<X>) {
    see(x);
  } else if constexpr (TupleLike<X>) {
    std::apply([&](const auto&... one) { (for_each_tree(one, see), ...); }, x);
  } else if constexpr (requires { x.value, x.gradient; }) {
    for_each_tree(x.value, see);
    for_each_tree(x.gradient, see);
  }
}
/// Returns the tensors of open types of a tree, or the open ones of a state.
template <class Tree> std::vector<TensorCore> open_tensors(const Tree& tree) {
  std::vector<TensorCore> open;
  if constexpr (HasOpenState<Tree>) {
    tree.for_each_open([&](const std::string&, const TensorCore& x) { open.push_back(x); });
    return open;
  } else {
    for_each_tensor(
        [&](const auto& x) {
          if constexpr (OpenTensor<std::remove_cvref_t<decltype(x)>>)
            if (x.defined()) open.push_back(x.core());
        },
        tree);
    return open;
  }
}
/// Tells the recording which tensors of an argument or a result have open types.
template <class M, class X> void tell_open(const ProcessMesh<M>& mesh, const X& x) {
  for_each_tree(x, [&](const auto& tree) {
    if constexpr (HasOpenState<std::remove_cvref_t<decltype(tree)>>)
      for (const TensorCore& core : open_tensors(tree))
        mesh.core()->template attachment<Recorder>().pin(core, OpenSharding::any(core.rank()), {},
                                                         true);
    else
      for_each_tensor([&](const auto& tensor) { tell_open_tensor(mesh, tensor); }, tree);
  });
}
/// Ties the trees of tensors that a function returns to the argument of their type, whose next
/// value they are taken for: weights that are returned lie as those that were given. Single tensors
/// are not tied.
template <class M, class X, class R>
void tie_to(const ProcessMesh<M>& mesh, const X& argument, const R& result) {
  for_each_tree(result, [&](const auto& tree) {
    using Tree = std::remove_cvref_t<decltype(tree)>;
    if constexpr (is_tensor<Tree>) {
    } else if constexpr (std::is_same_v<Tree, X>) {
      const std::vector<TensorCore> given = open_tensors(argument), next = open_tensors(tree);
      for (std::size_t i = 0; i < given.size() && given.size() == next.size(); ++i)
        if (given[i].extents() == next[i].extents())
          mesh.core()->template attachment<Recorder>().tie(given[i], next[i]);
    } else if constexpr (HasFields<Tree>) {
      using All = std::remove_cvref_t<decltype(Tree::fields)>;
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (tie_to(mesh, argument, tree.*All::template member<I>), ...);
      }
      (std::make_index_sequence<All::size>{});
    }
  });
}

/// Returns the substitute of an argument on a dry mesh: dry tensors of the same shapes.
template <class M, class X> decltype(auto) dry_substitute(const ProcessMesh<M>& mesh, const X& x) {
  if constexpr (HasOpenState<X>)
    return x.with_state(
        [&](const TensorCore& core) { return TensorCore::make(mesh.core(), core.desc()); });
  else if constexpr (HoldsTensors<X>::value)
    return map_tensors(
        [&](const auto& tensor) {
          using Tensor = std::remove_cvref_t<decltype(tensor)>;
          return Tensor(TensorCore::make(mesh.core(), tensor.core().desc()));
        },
        x);
  else
    return dry_argument(mesh, x);
}

template <class F> struct ChooseOf {
  F f;
  ChooseOptions options;

  /// The arguments of f, then the mesh: its sizes, or a ProcessMesh, which is not touched.
  /// Communication: none.
  template <class... A> Choice operator()(const A&... a) const {
    constexpr std::size_t at = sizeof...(A) - 1;
    constexpr bool has_mesh = is_mesh_argument<std::tuple_element_t<at, std::tuple<A...>>>;
    static_assert(has_mesh,
                  "[tessera] choose(f)(...) is not told on which mesh; give the sizes of the mesh "
                  "after the arguments of f, as in choose(f)(like<X>(8, 512), sizes<Grid>(2, 4))");
    if constexpr (has_mesh)
      return run(std::forward_as_tuple(a...), std::make_index_sequence<at>{});
    else
      return {};
  }

 private:
  template <class Tuple, std::size_t... I>
  Choice run(const Tuple& arguments, std::index_sequence<I...>) const {
    const auto mesh = dry_mesh_of(std::get<sizeof...(I)>(arguments), -1);
    return chosen(mesh, dry_substitute(mesh, std::get<I>(arguments))...);
  }
  template <class M, class... A> Choice chosen(const ProcessMesh<M>& mesh, const A&... a) const {
    const RecordLayers record = [&](const std::vector<bool>& again) {
      const LayersAsChosen layers(again);
      const ChosenOnThread chosen(true);
      std::vector<ProgramArgument> named;
      Program program = recorded_beside(mesh, Told{named}, f, a...);
      for (const ProgramArgument& argument : named) program.name_argument(argument);
      return program;
    };
    return choose_layers(record, plan_options(*mesh.core()), options);
  }
  /// What the recording is told, and tells.
  struct Told {
    std::vector<ProgramArgument>& named;
    template <class M, class... A> void begin(const ProcessMesh<M>& mesh, const A&... a) const {
      (tell_open(mesh, a), ...);
    }
    template <class M, class R, class... A>
    void end(const ProcessMesh<M>& mesh, const R& result, const A&... a) const {
      tell_open(mesh, result);
      (tie_to(mesh, a, result), ...);
      name(mesh, named, a...);
    }
  };
  /// Names the tensors of arguments that operators have read, while the recording knows them.
  template <class M, class... A>
  static void name(const ProcessMesh<M>& mesh, std::vector<ProgramArgument>& named, const A&... a) {
    int place = 0;
    const auto one = [&](const auto& tree) {
      const std::string own = std::to_string(place++);
      using Tree = std::remove_cvref_t<decltype(tree)>;
      const auto name = [&](const std::string& path, const TensorCore& x) {
        const int t = mesh.core()->template attachment<Recorder>().known(x);
        if (t >= 0) named.push_back({t, path.empty() ? own : own + "." + path});
      };
      if constexpr (HasOpenState<Tree>)
        tree.for_each_open(name);
      else if constexpr (HoldsTensors<Tree>::value)
        for_each_named_tensor([&](const std::string& path, const auto& x) { name(path, x.core()); },
                              tree);
    };
    (one(a), ...);
  }
};
}  // namespace detail

/// Returns the choice for a Program, at the prices of a mesh: those of its machine model and
/// limits. Communication: none.
template <class M>
Choice choose(const Program& program, const ProcessMesh<M>& mesh,
              const ChooseOptions& options = {}) {
  return choose(program, plan_options(*mesh.core()), options);
}

/// Returns the choice for the Programs that record() returns, at the prices of a mesh: of their
/// open layers (grad/recompute.hpp) and shardings together. record is called for each choice of
/// layers that is compared, and returns the Program of what it has recorded on a dry mesh, of the
/// same process each time. Communication: none. Throws what record throws.
template <class R, class M>
  requires std::is_invocable_r_v<Program, const R&> Choice
  choose(const R& record, const ProcessMesh<M>& mesh, const ChooseOptions& options = {}) {
    const detail::RecordLayers recorded = [&](const std::vector<bool>& again) -> Program {
      const detail::LayersAsChosen layers(again);
      const detail::ChosenOnThread chosen(true);
      return record();
    };
    return detail::choose_layers(recorded, plan_options(*mesh.core()), options);
  }

/// Returns a function that chooses the shardings of f, and which of its open layers run again:
/// choose(f, options)(arguments..., mesh).
template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Program>)
detail::ChooseOf<std::decay_t<F>> choose(F&& f, const ChooseOptions& options = {}) {
  return {std::forward<F>(f), options};
}

}  // namespace tessera
