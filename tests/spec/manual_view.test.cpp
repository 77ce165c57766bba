// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensors of all parts of a mesh as one of the mesh: there and back for every sharding, and
// each process has the same block.
#include <doctest/doctest.h>

#include <tessera/spec/block.hpp>
#include <tessera/spec/manual_view.hpp>
#include <tessera/spec/verdict.hpp>

using namespace tessera;

TEST_CASE("what is seen from outside and from within again is as it was, and blocks are the same") {
  const MeshShape whole{2, 3, 2, 2}, part{3, 2};
  const AxisList free{1, 3};  // axes 0 and 2 are named
  const std::vector<AxisList> splits{{}, {0}, {1}, {0, 1}, {1, 0}};
  const std::vector<AxisList> majors{{}, {0}, {2}, {0, 2}, {2, 0}};
  int cases = 0;
  for (const AxisList& first : splits)
    for (const AxisList& second : splits)
      for (const AxisList& major : majors)
        for (const AxisList& lead : majors)
          for (const AxisSet open : {AxisSet{}, AxisSet{1}}) {
            if (!((first.set() & second.set()) | ((first.set() | second.set()) & open)).empty() ||
                !(major.set() & lead.set()).empty())
              continue;
            const AxisSet partial = AxisSet{0, 2} - major.set() - lead.set();
            const detail::ManualView view{{{}, major}, lead, partial};
            const TensorDesc inner{
                DType::f32, {5, 7}, Sharding{first, second}.with_partial(open, Reduction::sum)};
            const TensorDesc outer = detail::outer_desc(inner, free, view, whole);
            CHECK(detail::inner_desc(outer, free, view, whole) == inner);
            CHECK(check(outer, whole.rank()).ok());
            for (int p = 0; p < whole.processes(); ++p) {
              const Coordinates at = whole.coordinates(p), within{at[1], at[3]};
              const Box mine = block(inner.extents, inner.sharding, part, within);
              Extents seen = block(outer.extents, outer.sharding, whole, at).extents();
              REQUIRE(seen.size() == lead.size() + 2);
              for (int d = 0; d < lead.size(); ++d) CHECK(seen[d] == 1);
              for (int d = 0; d < 2; ++d) CHECK(seen[lead.size() + d] == mine.extents()[d]);
            }
            ++cases;
          }
  CHECK(cases == 154);
}

TEST_CASE("named axes come first in a dimension that they split") {
  CHECK(detail::entered_view({{0, 1}, {3}}, AxisSet{0}).ok);
  CHECK(detail::entered_view({{2, 0, 1}, {}}, AxisSet{0, 2}).ok);
  CHECK_FALSE(detail::entered_view({{1, 0}, {}}, AxisSet{0}).ok);
  CHECK_FALSE(detail::entered_view({{0, 1, 2}, {}}, AxisSet{0, 2}).ok);
}
