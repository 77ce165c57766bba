// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Logical axis rules at run time: the same shardings as the types, and errors that say what is
// wrong.
#include <doctest/doctest.h>

#include <tessera/spec/named_rules.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
namespace name {
struct batch;
struct embed;
struct hidden;
struct heads;
}  // namespace name
namespace {
using grid::data, grid::model;
using name::batch, name::embed, name::hidden, name::heads;
using Grid = Mesh<data, model>;
using TwoD =
    Rules<AxisRule<batch, data>, AxisRule<embed, model>, AxisRule<hidden, Axes<model, data>>,
          AxisRule<hidden, model>, AxisRule<heads, _>>;

template <class... D> bool alike(std::string_view dimensions) {
  return named_rules<Grid, TwoD>().sharding(dimensions) ==
         named_sharding<Grid, Logical<TwoD, D...>>();
}
template <class F> std::string message(F f) {
  try {
    f();
  } catch (const ShardingError& error) {
    return error.what();
  }
  return "";
}
bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("rules by name give the shardings of rules by type") {
  CHECK(alike<batch, _, embed>("batch,_,embed"));
  CHECK(alike<hidden>("hidden"));
  CHECK(alike<batch, hidden>(" batch , hidden "));
  CHECK(alike<hidden, embed>("hidden,embed"));
  CHECK(alike<heads, hidden, batch, embed>("heads,hidden,batch,embed"));
  CHECK(alike<>(""));
  CHECK(alike<_, _>("_,_"));
}

TEST_CASE("wrong names are answered with a sentence") {
  const NamedRules rules = named_rules<Grid, TwoD>();
  CHECK(says(message([&] { rules.sharding("batch,width"); }),
             "width has no rule; every logical axis has at least one"));
  CHECK(says(message([&] { rules.sharding("embed,embed"); }), "embed names two dimensions"));
  CHECK(says(message([&] { rules.sharding("embed,,batch"); }), "is not a list of up to 8 names"));
  CHECK(says(message([&] { rules.sharding("_,_,_,_,_,_,_,_,_"); }),
             "is not a list of up to 8 names"));
  CHECK(says(message([&] { NamedRules(Grid::names()).add("batch", "data,stage"); }),
             "names the mesh axis stage, which the mesh does not have"));
}
