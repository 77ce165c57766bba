// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a list of fixed capacity says where it is full: which limit that is, and the number given.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <tessera/mesh/mesh.hpp>
#include <tessera/plan/deduce.hpp>
#include <tessera/spec/halo.hpp>

using namespace tessera;

namespace {
struct data : Axis<> {};
struct model : Axis<2> {};
using Grid = Mesh<data, model>;

/// Returns the text of f's exception, an E.
template <class E, class F> std::string said(const F& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("a tensor of nine dimensions is told of the eight that it may have") {
  const auto told = [](const std::string& text, const std::string& many) {
    CHECK_MESSAGE(has(text, "[tessera] a tensor is given " + many +
                                " dimensions; a tensor has at most 8; merge"),
                  text);
  };
  told(said<ShapeError>([] { (void)Extents{1, 2, 3, 4, 5, 6, 7, 8, 9}; }), "9");
  told(said<ShapeError>([] { (void)Extents(11, 1); }), "11");
  told(said<ShapeError>([] { (void)Sharding{{}, {}, {}, {}, {}, {}, {}, {}, {0}}; }), "9");
  told(said<ShapeError>([] { (void)Sharding::replicated(12); }), "12");
  told(said<ShapeError>([] { (void)Halo(9, HaloDim{}); }), "9");
  told(said<ShapeError>([] { Extents(8, 1).push_back(1); }), "more than 8");
}

TEST_CASE("a mesh of seven axes is told of the six that it may have") {
  const auto told = [](const std::string& text, const std::string& many) {
    CHECK_MESSAGE(has(text, "given " + many + " axes; a mesh has at most 6; join"), text);
  };
  told(said<MeshError>([] { (void)MeshShape{1, 1, 1, 1, 1, 1, 1}; }), "7");
  told(said<MeshError>([] { (void)MeshShape(std::vector<int>(9, 1)); }), "9");
  told(said<MeshError>([] { (void)AxisList{0, 1, 2, 3, 4, 5, 6}; }), "7");
  told(said<MeshError>([] { (void)AxisNames{"a", "b", "c", "d", "e", "f", "g"}; }), "7");
}

TEST_CASE("nine operands are told of the eight that an operator takes, a plan of its own lists") {
  CHECK(has(said<UsageError>([] { (void)TensorDescs(9, TensorDesc{}); }),
            "given 9 operands; an operator takes at most 8"));
  CHECK(has(said<std::length_error>([] { (void)FixedVector<char, 3>(5, 'a'); }),
            "a plan needs 5 entries of a list that holds 3"));
}

TEST_CASE("a mesh takes its sizes from a vector, and checks them as it checks those of a call") {
  const std::vector<int> three_by_two{3, 2};
  CHECK(MeshShape(three_by_two) == MeshShape{3, 2});
  CHECK(sizes<Grid>(three_by_two).shape == MeshShape{3, 2});
  const auto of = [](std::vector<int> sizes) {
    return said<MeshError>([&] { (void)MeshSizes<Grid>(sizes); });
  };
  CHECK(has(of({3}), "a mesh of 2 axes is given 1 sizes"));
  CHECK(has(of({3, 4}), "axis model is declared Axis<2> but is given size 4"));
  CHECK(has(of({0, 2}), "axis data has size 0"));
  CHECK(has(of({1 << 30, 2}), "fewer than 2^31"));
}
