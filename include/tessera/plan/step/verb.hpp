// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a step of a plan does, as a value. A verb is a struct: its name, how its operations are
/// counted, which strides it takes, its work on this process, and its settings as members. A Step
/// holds one of any kind; plan/step/ has the verbs, but for one that a single operator uses: that
/// stands in the operator's header. The verbs below are those that plans of every operator have.
///
///     step.set(step::Find{});
///     step.is<step::Find>() && step.kind.verb().name == "find"
///
/// A struct derives from Verb and has, where the default would be wrong, `operations`,
/// `reads_gaps`, `writes_gaps`; flops(plan, step, at), scratch(plan, step, at) and work(plan, step,
/// at); and members(self, visit), which visits each of its settings, four at most.
///
/// Laws: after step.set(verb), step.as<V>() has the settings of verb. The kernel of a verb is set
/// before main by the header that has it (run/verb/verb_run.hpp); nothing else of its facts
/// changes.
#include <bit>
#include <cstdint>
#include <string_view>

#include <tessera/base/digest.hpp>
#include <tessera/base/math.hpp>
#include <tessera/base/text/type_name.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

struct KernelCall;
struct Plan;
struct Step;

namespace detail {
struct VerbRun;
using RunKernel = void (*)(const VerbRun&);
/// What carries out a verb.
template <class V> inline RunKernel kernel_of_verb = nullptr;
}  // namespace detail

/// What the operations of a step are counted by.
enum class Operations : std::uint8_t {
  none,  ///< it moves elements
  read,  ///< the elements of its first input
  made,  ///< the elements of its output
  own    ///< its flops()
};

namespace detail {
/// The facts of a verb.
struct VerbFacts {
  std::string_view name;  ///< as plans print it
  std::uint64_t number;   ///< of the verb's type
  Operations operations = Operations::none;
  bool reads_gaps = false;   ///< its kernel takes strides for what it reads
  bool writes_gaps = false;  ///< and for what it makes
  Index (*flops)(const Plan&, const Step&, const Coordinates&) = nullptr;
  Index (*scratch)(const Plan&, const Step&, const Coordinates&) = nullptr;
  void (*work)(const Plan&, const Step&, const Coordinates&, KernelCall&) = nullptr;
  RunKernel* run = nullptr;
};
}  // namespace detail

/// Which verb a step has; none, where it has not been told. So a step can be made in code for
/// devices, which may not have the address of a variable of the host.
class StepKind {
 public:
  constexpr StepKind() = default;
  constexpr explicit StepKind(const detail::VerbFacts& facts)
      : facts_(&facts), number_(facts.number) {}
  static const StepKind slice, copy, communicate, permute, diagonal, contract, reduce, map, round,
      widen, convolve;

  /// Returns the facts of the verb. Precondition: there is one.
  constexpr const detail::VerbFacts& verb() const { return *facts_; }
  constexpr bool operator==(const StepKind& other) const {
    return detail::same_object(facts_, number_, other.facts_, other.number_);
  }

 private:
  const detail::VerbFacts* facts_ = nullptr;
  std::uint64_t number_ = 0;  ///< the verb's
};
/// Returns the name as plans print it: "contract".
constexpr std::string_view name_of(StepKind kind) { return kind.verb().name; }

namespace step {
/// What every verb derives from.
struct Verb {
  static constexpr Operations operations = Operations::none;
  static constexpr bool reads_gaps = false;
  static constexpr bool writes_gaps = false;
  template <class Self, class Visit> static constexpr void members(Self&, const Visit&) {}
};
}  // namespace step

namespace detail {
/// The settings of a verb, a word each.
struct VerbSettings {
  std::uint64_t words[4] = {};
  constexpr bool operator==(const VerbSettings&) const = default;
};
struct PackSetting {
  VerbSettings& to;
  int& k;
  constexpr void operator()(double member) const {
    to.words[k++] = std::bit_cast<std::uint64_t>(member);
  }
  template <class M> constexpr void operator()(const M& member) const {
    to.words[k++] = static_cast<std::uint64_t>(static_cast<std::int64_t>(member));
  }
};
struct UnpackSetting {
  const VerbSettings& from;
  int& k;
  constexpr void operator()(double& member) const {
    member = std::bit_cast<double>(from.words[k++]);
  }
  template <class M> constexpr void operator()(M& member) const {
    member = static_cast<M>(static_cast<std::int64_t>(from.words[k++]));
  }
};
template <class V> constexpr V unpacked(const VerbSettings& settings) {
  V verb{};
  int k = 0;
  if constexpr (!__is_empty(V)) V::members(verb, UnpackSetting{settings, k});
  return verb;
}

// The functions of a verb whose type is known only from a step; plan/plan.hpp and
// plan/work/instruction.hpp have their bodies.
template <class V> constexpr Index flops_of_verb(const Plan&, const Step&, const Coordinates&);
template <class V> constexpr Index scratch_of_verb(const Plan&, const Step&, const Coordinates&);
template <class V> void work_of_verb(const Plan&, const Step&, const Coordinates&, KernelCall&);

template <class V> constexpr VerbFacts made_facts() {
  VerbFacts facts{.name = V::name,
                  .number = stirred(full_type_name<V>()),
                  .operations = V::operations,
                  .reads_gaps = V::reads_gaps,
                  .writes_gaps = V::writes_gaps,
                  .run = &kernel_of_verb<V>};
  if constexpr (requires { &V::flops; }) {
    facts.operations = Operations::own;
    facts.flops = &flops_of_verb<V>;
  }
  if constexpr (requires { &V::scratch; }) facts.scratch = &scratch_of_verb<V>;
  if constexpr (requires { &V::work; }) facts.work = &work_of_verb<V>;
  return facts;
}
template <class V> inline constexpr VerbFacts facts_of_verb = made_facts<V>();

template <class V> inline constexpr StepKind step_kind{facts_of_verb<V>};

/// A verb of any type.
struct AnyVerb {
  StepKind kind;
  VerbSettings settings;
  template <class V> constexpr AnyVerb(const V& verb) : kind(step_kind<V>) {  // NOLINT: any verb
    int k = 0;
    if constexpr (!__is_empty(V)) V::members(verb, PackSetting{settings, k});
  }
};
}  // namespace detail

namespace step {
struct Slice : Verb {
  static constexpr std::string_view name = "slice";
};
struct Copy : Verb {
  static constexpr std::string_view name = "copy";
};
/// By a collective. An exchange of sorted lines that merges says along which dimension they lie.
struct Communicate : Verb {
  static constexpr std::string_view name = "communicate";
  std::int8_t along = -1;
  bool descending = false;
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.along);
    visit(self.descending);
  }
};
struct Permute : Verb {
  static constexpr std::string_view name = "permute";
  static constexpr bool writes_gaps = true;
};
struct Diagonal : Verb {
  static constexpr std::string_view name = "diagonal";
};
struct Contract : Verb {
  static constexpr std::string_view name = "contract";
  static constexpr Operations operations = Operations::own;
};
struct Reduce : Verb {
  static constexpr std::string_view name = "reduce";
  static constexpr Operations operations = Operations::read;
  static constexpr bool reads_gaps = true;
};
struct Map : Verb {
  static constexpr std::string_view name = "map";
  static constexpr Operations operations = Operations::made;
  static constexpr bool reads_gaps = true;
  static constexpr bool writes_gaps = true;
};
/// Float sums to their half type.
struct Round : Verb {
  static constexpr std::string_view name = "round";
  static constexpr Operations operations = Operations::made;
};
/// Positions to int64, half types to float.
struct Widen : Verb {
  static constexpr std::string_view name = "widen";
  static constexpr Operations operations = Operations::made;
};
struct Convolve : Verb {
  static constexpr std::string_view name = "convolve";
  static constexpr Operations operations = Operations::own;
  static constexpr bool reads_gaps = true;
};
}  // namespace step

inline constexpr StepKind StepKind::slice = detail::step_kind<step::Slice>;
inline constexpr StepKind StepKind::copy = detail::step_kind<step::Copy>;
inline constexpr StepKind StepKind::communicate = detail::step_kind<step::Communicate>;
inline constexpr StepKind StepKind::permute = detail::step_kind<step::Permute>;
inline constexpr StepKind StepKind::diagonal = detail::step_kind<step::Diagonal>;
inline constexpr StepKind StepKind::contract = detail::step_kind<step::Contract>;
inline constexpr StepKind StepKind::reduce = detail::step_kind<step::Reduce>;
inline constexpr StepKind StepKind::map = detail::step_kind<step::Map>;
inline constexpr StepKind StepKind::round = detail::step_kind<step::Round>;
inline constexpr StepKind StepKind::widen = detail::step_kind<step::Widen>;
inline constexpr StepKind StepKind::convolve = detail::step_kind<step::Convolve>;

}  // namespace tessera
