// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contracts as types and as values.
#include <tessera/mesh/contract.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct expert : Axis<> {};
}  // namespace grid
namespace {
using grid::data, grid::model, grid::expert;
using Grid = Mesh<data, model, expert>;

template <class C> constexpr Contract value = contract_of<Grid, C>();

static_assert(!Contract{}.bounded() && Contract::nothing().bounded());
static_assert(value<NoContract> == Contract{} && value<Only<>> == Contract::nothing());
static_assert(contract_of<Strict<Grid>, NoContract>() ==
              Contract::nothing());  // no contract on a strict mesh: no communication

constexpr Contract some = value<Only<gathers<data, model>, reduce_scatters<model>>>;
static_assert(some == value<Only<reduce_scatters<model>, gathers<model, data>>>);  // free of order
static_assert(some == value<Only<gathers<data>, reduce_scatters<model>, gathers<model>>>);
static_assert(some.accepts(Collective::all_gather, AxisSet{0, 1}) &&
              some.accepts(Collective::all_gather, AxisSet{0}));
static_assert(!some.accepts(Collective::all_gather, AxisSet{0, 2}) &&
              !some.accepts(Collective::reduce_scatter, AxisSet{0}));
static_assert(!some.accepts(Collective::all_reduce, AxisSet{1}) &&
              some.accepts(Collective::all_reduce, AxisSet{}));

// No axes: over any.
static_assert(value<Only<all_reduces<>>>.accepts(Collective::all_reduce, AxisSet{0, 1, 2}));
static_assert(!value<Only<all_reduces<>>>.accepts(Collective::all_gather, AxisSet{0}));
// An exchange is the general form of a permute, not the other way round.
static_assert(value<Only<exchanges<data>>>.accepts(Collective::collective_permute, AxisSet{0}));
static_assert(!value<Only<permutes<data>>>.accepts(Collective::exchange, AxisSet{0}));
static_assert(value<Only<permutes<data>, exchanges<model>>>.accepts(Collective::collective_permute,
                                                                    AxisSet{0, 1}));

static_assert(Contract{}.covers(some) && some.covers(Contract::nothing()) && some.covers(some) &&
              !some.covers(Contract{}));
static_assert(some.covers(value<Only<gathers<model>>>) &&
              !value<Only<gathers<model>>>.covers(some));

// What a message advises is the contract itself.
template <class C>
constexpr bool written =
    std::is_same_v<typename detail::WrittenContract<Grid, value<C>.bits()>::type, C>;
static_assert(written<Only<>> && written<Only<gathers<data, model>, reduce_scatters<model>>>);
static_assert(written<Only<gathers<expert>, reduce_scatters<data>, all_reduces<model>,
                           all_to_alls<data, expert>, permutes<model>, exchanges<data>>>);

static_assert(detail::is_strict<Strict<Grid>> && !detail::is_strict<Grid>);
static_assert(Strict<Grid>::rank == 3 && Strict<Grid>::index<model> == 1 &&
              Strict<Grid>::names()[2] == "expert");
static_assert(std::is_same_v<Strict<Grid>::axis<0>, data>);
}  // namespace
