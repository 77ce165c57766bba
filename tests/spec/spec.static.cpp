// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <tessera/spec/partition_spec.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct expert : Axis<> {};
struct stage : Axis<> {};  // of another mesh
}  // namespace grid
using grid::data, grid::model, grid::expert, grid::stage;
using Grid = Mesh<data, model, expert>;

// ---- equal shardings are one type
// --------------------------------------------------------------------------------

static_assert(std::is_same_v<P<Axes<data>, model>, P<data, model>>);
static_assert(std::is_same_v<P<Axes<>, model>, P<_, model>>);
static_assert(std::is_same_v<P<Replicated>, P<_>>);
static_assert(std::is_same_v<P<_, Unreduced<Sum, model, data>>, P<_, Unreduced<Sum, data, model>>>);
static_assert(
    std::is_same_v<P<Unreduced<Max, model, expert, data>>, P<Unreduced<Max, data, expert, model>>>);
static_assert(std::is_same_v<P<_, Unreduced<Sum>>, P<_>>);
static_assert(std::is_same_v<P<>, PartitionSpec<>>);
static_assert(!std::is_same_v<P<Axes<data, model>>, P<Axes<model, data>>>);
static_assert(!std::is_same_v<P<Unreduced<Sum, model>>, P<Unreduced<Max, model>>>);
static_assert(!std::is_same_v<P<data, _>, P<_, data>>);

// ---- a spec and its value are one
// --------------------------------------------------------------------------------

template <class Spec>
constexpr bool round_trip = std::is_same_v<detail::spec_of<Grid, detail::Lower<Grid, Spec>>, Spec>;
static_assert(round_trip<P<>> && round_trip<P<_>> && round_trip<P<data>> &&
              round_trip<P<_, model, expert>>);
static_assert(round_trip<P<Axes<expert, data>, _, model>> &&
              round_trip<P<Axes<model, expert, data>>>);
static_assert(round_trip<P<data, Unreduced<Sum, model>>> &&
              round_trip<P<_, Unreduced<Max, data, expert>>>);
static_assert(round_trip<P<Unreduced<Min, data, expert, model>>>);

static_assert(named_sharding<Grid, P<Axes<expert, data>, _, model>>() == Sharding{{2, 0}, {}, {1}});
static_assert(named_sharding<Grid, P<_, Unreduced<Max, expert>>>() ==
              Sharding{{}}.with_partial(AxisSet{2}, Reduction::max));
static_assert(named_sharding<Mesh<model, data>, P<data>>() == Sharding{{1}});

struct Value {
  static constexpr Sharding value = Sharding{{}, {2, 1}}.with_partial(AxisSet{0}, Reduction::min);
};
static_assert(
    std::is_same_v<detail::spec_of<Grid, Value>, P<_, Axes<expert, model>, Unreduced<Min, data>>>);
static_assert(named_sharding<Grid, detail::spec_of<Grid, Value>>() == Value::value);

// ---- a verdict for every rule
// ------------------------------------------------------------------------------------

static_assert(check(Sharding{{0}, {}, {1}}, 2) == Verdict{});
static_assert(check(Sharding{{0}, {2}}, 2) ==
              Verdict{.rule = Rule::axis_in_mesh, .axis = 2, .dim = 1});
static_assert(check(Sharding{{0}, {1, 0}}, 2) ==
              Verdict{.rule = Rule::axis_used_once, .axis = 0, .dim = 1});
static_assert(check(Sharding{{0}}.with_partial(AxisSet{0}, Reduction::sum), 2) ==
              Verdict{.rule = Rule::partial_axis_used_once, .axis = 0, .dim = 1});
static_assert(check(Sharding{{0}}.with_partial(AxisSet{3}, Reduction::sum), 2) ==
              Verdict{.rule = Rule::axis_in_mesh, .axis = 3, .dim = 1});
static_assert(check(Sharding{{0}}.with_partial(AxisSet{1}, Reduction::none), 2).rule ==
              Rule::reduction_named);
static_assert(check(Sharding{{0}, {0, 3}}, 2).rule ==
              Rule::axis_used_once);  // the first broken rule

static_assert(detail::SpecOn<P<data, model>, Grid> && detail::SpecOn<P<>, Grid> &&
              detail::SpecOn<P<_, Unreduced<Sum, data>>, Grid>);
static_assert(!detail::SpecOn<P<data, stage>, Grid>);
static_assert(!detail::SpecOn<P<data, data>, Grid> &&
              !detail::SpecOn<P<Axes<data, model>, model>, Grid>);
static_assert(!detail::SpecOn<P<data, Unreduced<Sum, data>>, Grid> &&
              !detail::SpecOn<P<Unreduced<Sum, stage>>, Grid>);

template <class Spec> constexpr bool accepted = requires { requires detail::SpecOn<Spec, Grid>; };
static_assert(accepted<P<data>>);
static_assert(requires {
  requires !accepted<P<stage>>;
  requires !accepted<P<data, data>>;
});  // a probe, not an error

// ---- values
// ------------------------------------------------------------------------------------------------------

static_assert(Sharding::replicated(3) == Sharding{{}, {}, {}});
static_assert(Sharding{{0}, {1}}.used() == AxisSet{0, 1});
static_assert(Sharding{{0}}.with_partial(AxisSet{}, Reduction::sum) == Sharding{{0}});
static_assert(Sharding{{0}}.with_partial(AxisSet{1}, Reduction::sum).finished() == Sharding{{0}});

namespace named_twice {
struct a : tessera::Axis<> {};
using namespace tessera;
static_assert(std::is_same_v<P<_, Unreduced<Sum, a, a>>, P<_, Unreduced<Sum, a>>>);
}  // namespace named_twice
