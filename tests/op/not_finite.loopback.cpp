// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: reports
// The first operator that makes a NaN or an infinity is named on all processes, with the element
// and the process that has it; what comes from outside, or from a number that was given, is let
// through.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <string>

#include <tessera/grad.hpp>
#include <tessera/op/async.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

namespace {
using X = ShardedTensor<float, Grid, P<data, model>>;

/// i * 3 + j, so that element [0, 0] is the only zero.
struct Ramp {
  KOKKOS_FUNCTION float operator()(const GlobalIndex& i) const {
    return static_cast<float>(3 * i[0] + i[1]);
  }
};

/// Returns what f(mesh, x) throws on the processes of a 2 x 2 mesh that looks for `find`, without
/// the process's own name; all must throw the same, and the mesh must be usable after it.
template <class F> std::string said(const F& f, Find find = Find::nan_and_infinity) {
  std::mutex mutex;
  std::set<std::string> texts;
  bool usable = true;
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    MeshOptions options;
    options.find = find;
    const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 2), options);
    const X x = from_function<X>(mesh, {5, 3}, Ramp{});
    std::string text = "nothing";
    try {
      f(mesh, x);
    } catch (const ValueError& error) {
      text = error.what();
      text.resize(text.rfind("on process "));
    }
    const bool goes_on = value(sum(x)) == 105;
    const std::lock_guard lock(mutex);
    usable = usable && goes_on;
    texts.insert(text);
  });
  CHECK(usable);
  CHECK(texts.size() == 1);
  return *texts.begin();
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("operator, element, process, layer and place are named") {
  const std::string text = said([](const auto& mesh, const X& x) {
    const Layer layer(mesh, "feed_forward");
    (void)log(x);
  });
  CHECK_MESSAGE(has(text,
                    "Log: the operator makes an infinity of finite operands: element [0, 0] "
                    "of its result, float 5x3 P<data,model>, which lies on process 0"),
                text);
  CHECK_MESSAGE(has(text, "not_finite.loopback.cpp:"), text);
  CHECK_MESSAGE(has(text, "in layer \"feed_forward\""), text);
}

TEST_CASE("a NaN is found where it is made, on whichever process, by any operator") {
  CHECK(has(said([](const auto&, const X& x) { (void)sqrt(13.0f - x); }),
            "makes a NaN of finite operands: element [4, 2] of its result, float 5x3 "
            "P<data,model>, which lies on process 3"));
  CHECK(has(said([](const auto&, const X& x) { (void)sqrt(13.0f - DynamicTensor(x)); }),
            "element [4, 2]"));
  CHECK(has(said([](const auto&, const X& x) {
              const auto large = x * 1e25f;
              (void)einsum<"ij,kj->ik">(large, large);
            }),
            "makes an infinity of finite operands"));
  CHECK(has(said([](const auto&, const X& x) { (void)sum(x * 2e37f); }), "makes an infinity"));
}

TEST_CASE("compiled functions, gradients and operators under way are looked at") {
  const auto root = [](const X& x) { return sum(sqrt(x)); };
  CHECK(has(said([&](const auto&, const X& x) { (void)value_and_grad(root)(x); }),
            "makes an infinity of finite operands: element [0, 0]"));
  CHECK(has(said([&](const auto&, const X& x) { (void)compile(value_and_grad(root))(x); }),
            "makes an infinity of finite operands: element [0, 0]"));
  CHECK(has(said([](const auto&, const X& x) {
              (void)compile([](const X& v) { return log(v * 2.0f); })(x);
            }),
            "Log: the operator makes an infinity"));
  CHECK(has(said([](const auto&, const X& x) {
              auto pending = async([&] { return reshard<P<_, model>>(log(x)); });
              (void)pending.wait();
            }),
            "Log: the operator makes an infinity"));
}

TEST_CASE("what was no finite number before, or was given as a number, is let through") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(said([](const auto&, const X& x) { (void)(where(x > 4.0f, x, -infinity) + 1.0f); }) ==
        "nothing");
  CHECK(said([](const auto& mesh, const X&) {
          const X nans = full<X>(mesh, {5, 3}, NAN);
          (void)sum(nans + 1.0f);
        }) == "nothing");
  // A NaN of infinities is one that the operator makes.
  CHECK(has(said([](const auto&, const X& x) {
              const auto endless = where(x > 4.0f, x, -infinity);
              (void)(endless - endless);
            }),
            "makes a NaN of infinite and finite operands: element [0, 0]"));
  CHECK(said([](const auto&, const X& x) { (void)log(x); }, Find::nan) == "nothing");
  CHECK(said([](const auto&, const X& x) { (void)log(x - 1.0f); }, Find::nothing) == "nothing");
}
