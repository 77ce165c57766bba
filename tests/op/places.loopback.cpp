// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: reports
// The places that errors name: of the call, and of the layer where the call cannot carry its own.
#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <string>

#include <tessera/tessera.hpp>

using namespace tessera;

namespace {
struct rows : Axis<> {};
using Grid = Mesh<rows>;
using Real = ShardedTensor<double, Grid, P<rows>>;
using Whole = ShardedTensor<double, Grid, P<_>>;

struct Sum4 {
  KOKKOS_FUNCTION double operator()(double a, double b, double c, double d) const {
    return a + b + c + d;
  }
};
struct AtIndex {
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i, double a, double b, double c,
                                    double d) const {
    return static_cast<double>(i[0]) + a + b + c + d;
  }
};

template <class F> std::string thrown(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
std::string at_line(int line) { return "places.loopback.cpp:" + std::to_string(line); }

/// Returns what is wrong on this process, or nothing.
std::string wrong_places(const ProcessMesh<Grid>& mesh) {
  const Real x = zeros<Real>(mesh, 7);
  const Real y = zeros<Real>(mesh, 9);
  const Whole z = zeros<Whole>(mesh, 9);
  const std::string here = "on process " + std::to_string(mesh.process());
  std::string wrong;
  const auto expect = [&](bool holds, const std::string& text) {
    if (!holds) wrong += text + "\n";
  };

  int line = __LINE__ + 1;
  std::string text = thrown([&] { (void)map(at(), Sum4{}, x, x, x, y); });
  expect(has(text, "(at " + at_line(line) + ", " + here), text);
  line = __LINE__ + 1;
  text = thrown([&] { (void)map<"a,a,a,a->a">(at(), Sum4{}, x, x, x, y); });
  expect(has(text, "(at " + at_line(line) + ", " + here), text);
  line = __LINE__ + 1;
  text = thrown([&] { (void)map_with_index(at(), AtIndex{}, x, x, x, y); });
  expect(has(text, "(at " + at_line(line) + ", " + here), text);
  line = __LINE__ + 1;
  text = thrown([&] { (void)einsum<"a,a,a,a,a->a">(at(), x, x, x, x, y); });
  expect(has(text, "(at " + at_line(line) + ", " + here), text);

  // An operator on dynamic tensors carries its place.
  const DynamicTensor d = x, e = y;
  const auto expect_line = [&](int at) {
    expect(has(text, "(at " + at_line(at) + ", " + here), text);
  };
  line = __LINE__ + 1;
  text = thrown([&] { (void)(d + e); });
  expect_line(line);
  line = __LINE__ + 1;
  text = thrown([&] { (void)(x * e); });
  expect_line(line);
  line = __LINE__ + 1;
  text = thrown([&] { (void)(d <= y); });
  expect_line(line);
  DynamicTensor changed = d;
  line = __LINE__ + 1;
  text = thrown([&] { changed -= e; });
  expect_line(line);
  line = __LINE__ + 1;
  text = thrown([&] { (void)(x + y); });
  expect_line(line);
  // One on tensors of two types carries none: its layer has one.
  text = thrown([&] { (void)(x + z); });
  expect(has(text, "(" + here) && !has(text, "layer"), text);
  std::optional<Layer> outer;
  outer.emplace(mesh, std::string("encoder.") + "0");
  {
    const int opened = __LINE__ + 1;
    const Layer inner(x, "attention");
    const std::string layer_here =
        "in layer \"encoder.0/attention\" of " + at_line(opened) + ", " + here;
    text = thrown([&] { (void)(x + z); });
    expect(has(text, "(" + layer_here), text);
    line = __LINE__ + 1;
    text = thrown([&] { (void)maximum(x, y); });
    expect(has(text, "(at " + at_line(line) + ", " + layer_here), text);
  }
  text = thrown([&] { (void)(x * z); });
  expect(has(text, "(in layer \"encoder.0\""), text);
  outer.reset();
  text = thrown([&] { (void)(x < z); });
  expect(!has(text, "layer"), text);

  const int made = __LINE__ + 1;
  const auto head = layer("head", [](const Real& a, const Whole& b) { return a - b; });
  text = thrown([&] { (void)head(x, z); });
  expect(has(text, "(in layer \"head\" of " + at_line(made) + ", " + here), text);

  // The mesh goes on, and at() changes no value.
  const Real two = x + 2.0;
  expect(value(sum(map(at(), Sum4{}, x, two, x, two))) == 28, "the sum");
  expect(value(sum(einsum<"a,a,a,a,a->a">(at(), two, two, two, two, two))) == 224, "the product");
  return wrong;
}
}  // namespace

TEST_CASE("errors name the place of a call, or of its layer") {
  for (int processes : {1, 3}) {
    std::atomic<int> good{0};
    std::string sample;
    run_loopback(processes, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(processes));
      const std::string wrong = wrong_places(mesh);
      if (wrong.empty()) ++good;
      if (mesh.process() == 0) sample = wrong;
    });
    CHECK_MESSAGE(good == processes, sample);
  }
}

TEST_CASE("a layer may end after its mesh") {
  std::atomic<int> good{0};
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    std::optional<Layer> late;
    {
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(1));
      late.emplace(mesh, "late");
    }
    late.reset();
    ++good;
  });
  CHECK(good == 1);
}
