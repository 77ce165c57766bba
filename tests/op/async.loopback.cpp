// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: typed
// Operators that are started and waited for later, on loopback.
#include "op/async_cases.hpp"

TEST_CASE("what is started gives what the plain operator gives") {
  for (const MeshSizes<Grid> size : {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(3, 2),
                                     sizes<Grid>(1, 4), sizes<Grid>(4, 1)}) {
    std::mutex mutex;
    std::string first;
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(world, size);
      const std::string text = async_cases(mesh);
      const std::lock_guard lock(mutex);
      if (first.empty()) first = text;
    });
    CHECK_MESSAGE(first.empty(), to_string(size.shape, Grid::names()) << ": " << first);
  }
}

TEST_CASE("misuse of an operator under way") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    auto x = full<Real<data, _>>(mesh, {4, 4}, 1);
    const auto y = full<Real<data, _>>(mesh, {4, 4}, 2);
    auto pending = async([&] { return reshard<P<_, data>>(x); });
    CHECK_THROWS_WITH_AS(reshard_into(x, y),
                         doctest::Contains("an operator that was started at async.loopback.cpp"),
                         UsageError);
    const auto z = pending.wait();
    CHECK_THROWS_WITH_AS((void)pending.wait(), doctest::Contains("waited for twice"), UsageError);
    reshard_into(x, y);  // now it may be written
    CHECK(to_host(z).values == std::vector<double>(16, 1.0));
    CHECK(to_host(x).values == std::vector<double>(16, 2.0));
    // What is under way is neither read nor written by others.
    auto kept = x;
    auto leaks = async([&] { return kept = reshard<P<data, _>>(reshard<P<_, data>>(x)); });
    const auto in_use = doctest::Contains("started at async.loopback.cpp");
    CHECK_THROWS_WITH_AS((void)to_host(kept), in_use, UsageError);
    CHECK_THROWS_WITH_AS((void)kept.data(), in_use, UsageError);
    CHECK_THROWS_WITH_AS(reshard_into(kept, y), in_use, UsageError);
    CHECK(to_host(leaks.wait()).values == to_host(x).values);
    CHECK(to_host(kept).values == to_host(x).values);
    auto z2 = zeros_like(x);
    auto writes = async([&] {
      reshard_into(z2, reshard<P<_, data>>(x));
      return 0;
    });
    CHECK_THROWS_WITH_AS((void)to_host(z2), in_use, UsageError);
    CHECK(writes.wait() == 0);
    // A tensor of the host's memory is made at once, and not where an operator under way writes.
    const std::vector<double> fives(16, 5.0);
    auto made = async([&] {
      return reshard<P<_, data>>(from_host<Real<data, _>>(mesh, {4, 4}, fives) +
                                 ones_like(reshard<P<data, _>>(reshard<P<_, data>>(x))));
    });
    CHECK(to_host(made.wait()).values == std::vector<double>(16, 6.0));
    CHECK(to_host(z2).values == to_host(x).values);
    // A function that brings a tensor to the host says so, and what it had started is finished.
    CHECK_THROWS_WITH_AS((void)async([&] { return to_root(x); }),
                         doctest::Contains("tensors for its operands and results"), UsageError);
    CHECK(to_host(x).values == std::vector<double>(16, 2.0));
    try {
      auto lost = async([&] { return reshard<P<_, data>>(x); });
      throw std::runtime_error("of the user");
    } catch (const std::runtime_error&) {
    }
    CHECK_THROWS_WITH_AS((void)sum(x),
                         doctest::Contains("an exception passed while an operator was under way"),
                         UsageError);
  });
}

TEST_CASE("the host's memory is not kept for an operator under way") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto x = full<Real<data, _>>(mesh, {4, 4}, 1);
    const std::vector<double> fives(16, 5.0);
    CHECK_THROWS_WITH_AS(
        (void)async([&] {
          const DynamicTensor late = reshard<P<data, _>>(reshard<P<_, data>>(x));
          return from_host<double>(mesh, {4, 4}, late.sharding(), std::span(fives), into(late));
        }),
        doctest::Contains("reads the host's memory"), UsageError);
  });
}
