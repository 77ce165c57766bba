// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The forms in which an operator can be called, each performed on a loopback mesh and compared
/// with the typed call. A kind is a struct that says how it is called.
///
///     struct Roll {
///       static constexpr OperatorKind kind = OperatorKind::roll;
///       using Operands = Tensors<Real<data, model>>;       // Out: the spec that a call may name
///       using Out = P<_, model>;
///       static constexpr std::array extents{Extents{6, 8}};
///       template <class O, class B> static auto typed(const auto& x) { return roll<0, O, B>(x, 1); }
///       static DynamicTensor dynamic(const Dynamic& x, const Sharding* out, const CallOptions& call);
///       static constexpr ops::Roll value(const Sharding& out) { return {{1, 0}, out}; }
///     };
///     rows.push_back(support::row<Roll>());
///
/// Laws: a cell performs its form, or is a sentence that says why it cannot be.
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace support {
using namespace tessera;

enum class Form {
  typed,
  named,
  given,
  deduced,
  bound,
  held,
  dry,
  planned,
  into,
  entry,
  joined,
  started,
  compiled
};
inline constexpr std::string_view form_names[] = {"typed call",
                                                  "typed call that names the result's spec",
                                                  "dynamic call with a sharding",
                                                  "dynamic call, deduced",
                                                  "typed call under a contract",
                                                  "dynamic call under a contract on a Strict mesh",
                                                  "dry plan",
                                                  "the struct planned",
                                                  "into a tensor",
                                                  "entry of a recorded Program",
                                                  "its result resharded together with another",
                                                  "started, and waited for later",
                                                  "in a compiled function"};
inline constexpr std::size_t form_count = std::size(form_names);

using Values = std::vector<double>;
using Dynamic = std::vector<DynamicTensor>;
using Everything =
    Only<gathers<>, all_reduces<>, reduce_scatters<>, all_to_alls<>, permutes<>, exchanges<>>;
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;
template <class... D> using Index32 = ShardedTensor<std::int32_t, Grid, P<D...>>;
template <class... X> struct Tensors {};

struct Meshes {
  ProcessMesh<Grid> mesh;
  ProcessMesh<Strict<Grid>> strict;
};
struct Cell {
  std::function<std::string(const Meshes&)> perform;  ///< returns what is wrong, or nothing
  std::string_view cannot = {};                       ///< why it cannot be
};
struct Row {
  OperatorKind kind;
  std::string name;
  bool constant;  ///< its plan can be a constant of the program
  std::array<Cell, form_count> cells = {};
};

/// Small whole numbers, so that sums of them are exact in every order; below 5, so that they are
/// indices of tables too.
template <class T> struct Small {
  template <class I> KOKKOS_FUNCTION T operator()(const I& i) const {
    Index value = 1;
    for (int d = 0; d < i.size(); ++d) value = value * 3 + i[d] * (d + 2);
    return static_cast<T>(value % 5);
  }
};

template <class T> Values values_of(const DynamicTensor& y) {
  const auto host = to_host<T>(y);
  return Values(host.values.begin(), host.values.end());
}
inline Values values(const DynamicTensor& y) {
  switch (y.type()) {
    case DType::i32:
      return values_of<std::int32_t>(y);
    case DType::i64:
      return values_of<std::int64_t>(y);
    default:
      return values_of<double>(y);
  }
}
/// To every process; a Strict mesh has no objection to what a call is given leave to.
inline Values freed(const DynamicTensor& y) {
  return values(reshard(y, Sharding::replicated(y.core().rank()), Contract{}));
}

inline std::string differ(const Values& got, const Values& expected) {
  if (got == expected) return "";
  std::size_t i = 0;
  while (i < got.size() && i < expected.size() && got[i] == expected[i]) ++i;
  return "element " + std::to_string(i) + " of " + std::to_string(expected.size()) +
         " is another one (or " + std::to_string(got.size()) + " are there)";
}

template <class K, class Operands = typename K::Operands> struct Performed;
template <class K, class... X> struct Performed<K, Tensors<X...>> {
  template <class O, class B> static auto call(const X&... x) {
    return K::template typed<O, B>(x...);
  }
  static constexpr Sharding out() { return named_sharding<Grid, typename K::Out>(); }
  /// The operands, made by make.operator()<X>(extents) each.
  template <class Made> static constexpr Made each(const auto& make) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Made{make.template operator()<X>(K::extents[I])...};
    }
    (std::index_sequence_for<X...>{});
  }
  static auto with(const auto& mesh, const auto& f) {
    return std::apply(f, each<std::tuple<X...>>([&]<class A>(const Extents& extents) {
                        return from_function<A>(mesh, extents, Small<typename A::value_type>{});
                      }));
  }
  static Dynamic dynamic(const DynamicMesh& mesh) {
    return each<Dynamic>([&]<class A>(const Extents& extents) {
      using T = typename A::value_type;
      return from_function<T>(mesh, extents, A::sharding(), Small<T>{});
    });
  }
  static constexpr TensorDescs descs() {
    return each<TensorDescs>([]<class A>(const Extents& extents) {
      return TensorDesc{dtype_of<typename A::value_type>, extents, A::sharding()};
    });
  }
  template <class O, class B> static Values typed(const Meshes& m) {
    return with(m.mesh, [](const X&... x) { return values(DynamicTensor(call<O, B>(x...))); });
  }
  static Values expected(const Meshes& m) { return typed<typename K::Plain, NoContract>(m); }

  static std::string named(const Meshes& m) {
    return differ(typed<typename K::Out, NoContract>(m), expected(m));
  }
  static std::string bound(const Meshes& m) {
    return differ(typed<typename K::Out, Everything>(m), expected(m));
  }
  static std::string given(const Meshes& m) {
    const Sharding to = out();
    const DynamicTensor y = K::dynamic(dynamic(m.mesh), &to, Where::here());
    if (!(y.sharding() == to)) return "the result is sharded otherwise";
    return differ(values(y), expected(m));
  }
  static std::string deduced(const Meshes& m) {
    return differ(values(K::dynamic(dynamic(m.mesh), nullptr, Where::here())), expected(m));
  }
  static std::string held(const Meshes& m) {
    const Sharding to = out();
    const Dynamic x = dynamic(m.strict);
    const auto refused = [&](const CallOptions& call) {
      try {
        (void)K::dynamic(x, &to, call);
        return false;
      } catch (const ContractError&) {
        return true;
      }
    };
    if (refused(Contract::nothing()) != K::communicates)
      return K::communicates ? "a call that communicates keeps Only<>"
                             : "a call that communicates nothing breaks Only<>";
    if (!K::free && !refused(Where::here())) return "a Strict mesh allows a call that communicates";
    return differ(freed(K::dynamic(x, &to, Contract{})), expected(m));
  }
  /// The plans of a Program.
  static std::vector<Plan> plans(const Program& program) {
    std::vector<Plan> all;
    for (const ProgramEntry& entry : program.entries()) all.push_back(*entry.plan);
    return all;
  }
  static bool has_kind(const Program& program) {
    for (const ProgramEntry& entry : program.entries())
      if (entry.plan->kind == K::kind) return true;
    return false;
  }
  static Program run_recorded(const Meshes& m) {
    return with(m.mesh, [&](const X&... x) {
      return record(m.mesh, &call<typename K::Out, NoContract>, x...);
    });
  }
  static std::string entry(const Meshes& m) {
    const Program program = run_recorded(m);
    if (!has_kind(program)) return "no entry is of the kind";
    for (const ProgramEntry& one : program.entries())
      if (one.result < 0 || one.operands.size() != one.plan->operands)
        return "an entry has no result, or lacks an operand";
    return "";
  }
  static std::string dry(const Meshes& m) {
    const auto likes = each<std::tuple<Like<X>...>>(
        []<class A>(const Extents& extents) { return Like<A>{extents}; });
    const auto planned = [&](const auto&... mesh) {
      return std::apply(
          [&](const Like<X>&... like) {
            return plan(&call<typename K::Out, NoContract>)(like..., mesh...);
          },
          likes);
    };
    if (!has_kind(planned(sizes<Grid>(3, 5), 7))) return "no entry is of the kind";
    return plans(planned(m.mesh)) == plans(run_recorded(m))
               ? ""
               : "the dry plan is not the one that is carried out";
  }
  static std::string planned(const Meshes& m) {
    const MeshCore& mesh = *m.mesh.core();
    const TensorDescs x = K::operands(descs());
    const PlanOptions options{mesh.machine(), mesh.workspace_limit()};
    std::vector<Box> boxes, others;  // which the plans view
    const auto operation = K::value(out());
    if (!operation.check(x).ok()) return "the struct does not check";
    const Plan alone = operation.plan(x, {mesh.shape(), mesh.process(), options, &boxes});
    if (!(Operation(operation).plan(x, {mesh.shape(), mesh.process(), options, &others}) == alone))
      return "of any kind it is planned otherwise";
    for (const Plan& one : plans(run_recorded(m)))
      if (one.kind == K::kind && !(one == alone)) return "the call has another plan";
    if constexpr (K::constant) {
      static constexpr Plan once = K::value(named_sharding<Grid, typename K::Out>())
                                       .plan(descs(), {MeshShape{2, 2}, 0, PlanOptions{}});
      if (!(operation.plan(x, {MeshShape{2, 2}, 0, PlanOptions{}}) == once))
        return "while the program compiles it is planned otherwise";
    }
    return "";
  }
  static std::string into(const Meshes& m) {
    const Sharding to = out();
    const Dynamic x = dynamic(m.mesh);
    const DynamicTensor fresh = K::dynamic(x, &to, Where::here());
    const DynamicTensor y = zeros_like(fresh);
    const void* const memory = y.core().data();
    const DynamicTensor same = K::dynamic(x, &to, tessera::into(y));
    if (same.core().storage() != y.core().storage() || y.core().data() != memory)
      return "the result is not in the destination";
    if (K::deduces) {
      const DynamicTensor z = zeros_like(K::dynamic(x, nullptr, Where::here()));
      (void)K::dynamic(x, nullptr, tessera::into(z));
      if (const std::string wrong = differ(values(z), expected(m)); !wrong.empty())
        return "deduced: " + wrong;
    }
    return differ(values(y), expected(m));
  }
  static std::string joined(const Meshes& m) {
    const Sharding to = out();
    const Dynamic x = dynamic(m.mesh);
    const DynamicTensor y = K::dynamic(x, &to, Where::here());
    const DynamicTensor other = y.core().mesh() == m.mesh.core() ? x[0] : finish(y);
    const auto whole = [](const DynamicTensor& t) { return Sharding::replicated(t.core().rank()); };
    const Dynamic both = reshard_together({y, other}, {whole(y), whole(other)});
    const std::string wrong = differ(values(both[0]), expected(m));
    return wrong.empty() ? differ(values(both[1]), values(other)) : wrong;
  }
  /// A typed and a dynamic call at once, waited for in another order, with operators between.
  static std::string started(const Meshes& m) {
    const Sharding to = out();
    return with(m.mesh, [&](const X&... x) {
      auto first = async([&] { return call<typename K::Out, NoContract>(x...); });
      auto second = async([&] { return K::dynamic(dynamic(m.mesh), &to, Where::here()); });
      const std::string wrong = differ(values(second.wait()), expected(m));
      return wrong.empty() ? differ(values(DynamicTensor(first.wait())), expected(m)) : wrong;
    });
  }
  /// A typed and a dynamic call in one function, called twice.
  static std::string compiled(const Meshes& m) {
    const Sharding to = out();
    return with(m.mesh, [&](const X&... x) {
      const Dynamic given = dynamic(m.mesh);
      auto both = compile([&](const X&... y) {
        return std::pair(call<typename K::Out, NoContract>(y...),
                         K::dynamic(given, &to, Where::here()));
      });
      for (int i = 0; i < 2; ++i) {
        const auto [first, second] = both(x...);
        std::string wrong = differ(values(DynamicTensor(first)), expected(m));
        if (wrong.empty()) wrong = differ(values(second), expected(m));
        if (!wrong.empty()) return wrong;
      }
      if (!has_kind(both.listed())) return std::string("no entry is of the kind");
      return std::string(both.structures() == 1 ? "" : "the second call is planned anew");
    });
  }
};

/// What most kinds have: a call that leaves the spec to be deduced.
struct Usual {
  using Plain = Deduced;
  static constexpr bool deduces = true;  ///< a dynamic call can do without a sharding
  static constexpr bool free = false;    ///< on a Strict mesh it needs no contract
  static constexpr bool communicates = true;
  static constexpr bool constant = true;
  static TensorDescs operands(const TensorDescs& x) { return x; }  ///< of the struct
  static constexpr std::string_view cannot(Form) { return {}; }
};

template <class K> Row row(std::string name = std::string(name_of(K::kind))) {
  using Does = Performed<K>;
  Row row{K::kind, std::move(name), K::constant};
  const auto cell = [&](Form form, auto perform) {
    Cell& made = row.cells[static_cast<std::size_t>(form)];
    made.cannot = K::cannot(form);
    if (made.cannot.empty()) made.perform = perform;
  };
  cell(Form::typed, [](const Meshes& m) {
    return Does::expected(m).empty() ? std::string("the result is empty") : std::string();
  });
  cell(Form::named, &Does::named);
  cell(Form::given, &Does::given);
  cell(Form::deduced, &Does::deduced);
  cell(Form::bound, &Does::bound);
  cell(Form::held, &Does::held);
  cell(Form::dry, &Does::dry);
  cell(Form::planned, &Does::planned);
  cell(Form::into, [] {
    if constexpr (requires(const Meshes& m) { K::into(m); })
      return &K::into;  // memory that is no tensor
    else
      return &Does::into;
  }());
  cell(Form::entry, &Does::entry);
  cell(Form::joined, &Does::joined);
  cell(Form::started, &Does::started);
  cell(Form::compiled, &Does::compiled);
  return row;
}
}  // namespace support
