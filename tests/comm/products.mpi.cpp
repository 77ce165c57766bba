// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Processes that know different ways of products multiply as the first of them does.
// together: transport
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include <tessera/comm/detail/product_cache.hpp>
#include <tessera/comm/fake.hpp>
#include <tessera/comm/mesh_core.hpp>

#include <support/world.hpp>

using namespace tessera;

TEST_CASE("processes that know different ways of products take those of the first") {
  const int own = support::world()->process(), size = support::world()->size();
  // What this program knows is made up: nothing is measured.
  detail::ProductTable made_up;
  detail::ProductRow row{};
  for (int i = 0; i < detail::product_classes; ++i)
    row[i] = static_cast<detail::ProductWay>((own + i) % detail::product_ways);
  made_up.set(own % 4, row);
  detail::KnownProducts::all().adopt(made_up);
  const detail::ProductTable known = detail::KnownProducts::all().table();
  for (int turn = 0; turn < 2; ++turn) {
    const auto mesh = make_mesh_core(support::world(), MeshShape{size}, {"data"},
                                     {.products = Products::measured});
    const detail::ProductWords own_words = detail::words_of(mesh->products());
    const std::vector<std::int64_t> words(std::begin(own_words.words), std::end(own_words.words));
    const std::vector<std::int64_t> all = mesh->gather_facts(words, Where::here());
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == words[i % words.size()]);
    if (mesh->process() == 0) CHECK(mesh->products() == known);
  }
  // A process without the others has its own, and so has the program after it.
  const detail::ProductTable agreed = detail::KnownProducts::all().table();
  const auto fake = make_mesh_core(fake_transport(4, 3), MeshShape{4}, {"data"},
                                   {.products = Products::measured});
  CHECK(fake->products() == agreed);
  CHECK(detail::KnownProducts::all().table() == agreed);
}
