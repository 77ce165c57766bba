// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Texts that are written, of sources that share rows.
// CASE packed: a text that is written grows in a row of its own
// ERRORS each: 1
#include <tessera/nn/rules.hpp>
#include <tessera/nn/translation/decode.hpp>
using namespace tessera;

namespace grid {
struct data : Axis<> {};
}  // namespace grid
using Here = Under<float, Mesh<grid::data>, DataParallel<grid::data>>;
using Ids = Here::Of<std::int32_t, logical::batch, logical::sequence>;

void f(const Translator<Here>& model, const TranslatorStates<Here>::X& states,
       [[maybe_unused]] const Documents<Ids>& documents,
       [[maybe_unused]] const Here::Of<bool, logical::batch, logical::sequence>& valid) {
#if defined(CASE_packed)
  TranslatorCache<Here>::like(model, states, 5, documents);
#else
  TranslatorCache<Here>::like(model, states, 5, valid);
#endif
}
