// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Encoder-decoders, dense and with experts: the same under all rules and on every mesh, whatever
// stands after a text's end; compiled, run again, chosen and on paper.
#include <algorithm>

#include "nn/translation_case.hpp"

namespace {
using namespace nn_test;
const std::pair<int, int> meshes[] = {{2, 1}, {1, 2}, {2, 2}, {3, 2}};
const TranslationKind* const kinds[] = {&gshard_like, &relative, &rotary_in_window};
}  // namespace

TEST_CASE("an encoder-decoder gives the same numbers under all rules and on every mesh") {
  for (const TranslationKind* kind : kinds) {
    Values whole;
    on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) {
      whole = TranslationCase<Whole>(mesh, *kind).numbers();
    });
    CHECK(whole.size() > 20);
    std::mutex mutex;
    for (const auto& [rows, columns] : meshes)
      on_mesh(rows, columns, [&, kind = kind](const ProcessMesh<Grid>& mesh) {
        for_translation_rules([&]<class R>(const char* rules, std::type_identity<R>) {
          const double far = farthest_apart(TranslationCase<R>(mesh, *kind).numbers(), whole);
          const std::lock_guard lock(mutex);
          CAPTURE(kind->name);
          CAPTURE(rules);
          CAPTURE(mesh.processes());
          CHECK(far < 1e-11);
        });
      });
  }
}
