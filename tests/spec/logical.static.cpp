// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Logical axis rules: the rules in order, each axis once, the next rule of a name as the fallback.
#include <tessera/spec/logical.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct expert : Axis<> {};
}  // namespace grid
namespace name {
struct batch;
struct sequence;
struct embed;
struct hidden;
struct heads;
}  // namespace name
namespace {
using grid::data, grid::model, grid::expert;
using name::batch, name::sequence, name::embed, name::hidden, name::heads;
using Grid = Mesh<data, model, expert>;

template <class A, class B> constexpr bool same = std::is_same_v<A, B>;

using TwoD = Rules<AxisRule<batch, data>, AxisRule<embed, model>,
                   AxisRule<hidden, Axes<data, model>>, AxisRule<heads, _>, AxisRule<hidden, model>,
                   AxisRule<embed, data>, AxisRule<sequence, _>>;

static_assert(same<Logical<TwoD, batch, _, embed>, P<data, _, model>>);
static_assert(same<Logical<TwoD, hidden, _>, P<Axes<data, model>, _>>);
static_assert(same<Logical<TwoD, heads>, P<_>> && same<Logical<TwoD>, P<>> &&
              same<Logical<TwoD, _, _>, P<_, _>>);
// batch has data, so both axes are not free for hidden: its second rule applies.
static_assert(same<Logical<TwoD, batch, sequence, hidden>, P<data, _, model>>);
// embed comes before hidden in the rules, whatever the order of the dimensions; nothing is left for
// hidden.
static_assert(same<Logical<TwoD, embed, hidden>, P<model, _>> &&
              same<Logical<TwoD, hidden, embed>, P<_, model>>);
static_assert(same<Logical<TwoD, batch, embed, hidden>, P<data, model, _>>);

// A rule that says _ settles the matter: what stands after it for the same name never applies.
using Settled = Rules<AxisRule<embed, _>, AxisRule<embed, data>>;
static_assert(same<Logical<Settled, embed>, P<_>>);
// Fallbacks of one name, one after the other.
using Fallbacks = Rules<AxisRule<batch, data>, AxisRule<heads, data>,
                        AxisRule<heads, Axes<model, data>>, AxisRule<heads, Axes<model>>>;
static_assert(same<Logical<Fallbacks, heads>, P<data>> &&
              same<Logical<Fallbacks, heads, batch>, P<model, data>>);
static_assert(same<Logical<Fallbacks, batch>, P<data>>);

// Unreduced takes the axes of its names, after the dimensions; with none it says nothing.
static_assert(same<Logical<TwoD, batch, Unreduced<Sum, embed>>, P<data, Unreduced<Sum, model>>>);
static_assert(same<Logical<TwoD, Unreduced<Max, hidden>>, P<Unreduced<Max, data, model>>>);
static_assert(same<Logical<TwoD, batch, Unreduced<Sum, heads>>, P<data>>);
static_assert(same<Logical<TwoD, Unreduced<Sum, batch, embed>>, P<Unreduced<Sum, data, model>>>);

// One model under two sets of rules.
template <class R> using Weight = Logical<R, embed, hidden>;
using DataParallel =
    Rules<AxisRule<batch, Axes<data, model>>, AxisRule<embed, _>, AxisRule<hidden, _>>;
static_assert(same<Weight<DataParallel>, P<_, _>> &&
              same<Logical<DataParallel, batch, _, embed>, P<Axes<data, model>, _, _>>);

// Names alone decide; eight dimensions are as many as a tensor has.
struct a1;
struct a2;
struct a3;
struct a4;
struct a5;
struct a6;
using Long = Rules<AxisRule<a1, _>, AxisRule<a2, data>, AxisRule<a3, model>, AxisRule<a4, data>,
                   AxisRule<a5, expert>, AxisRule<a6, model>>;
static_assert(
    same<Logical<Long, a6, a5, a4, a3, a2, a1, _, _>, P<_, expert, _, model, data, _, _, _>>);
static_assert(detail::demand_spec<Grid, Logical<Long, a6, a5, a4, a3, a2, a1, _, _>>());
}  // namespace
