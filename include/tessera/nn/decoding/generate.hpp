// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Texts that a model writes, many at once: a text that ends leaves, and the next one enters in its
/// place, so that steps stay full. Beginnings are read some tokens at a time, beside texts that are
/// being written.
///
///     GenerateOptions options{.batch = 8, .sampling = {.temperature = 0.8, .top_k = 40}};
///     const auto texts = generate(mesh, model, {{.begin = {1, 2, 3}, .most = 20}}, options);
///     texts[0];                                   // what follows the beginning
///
/// Laws: a text does not depend on the others, on how many are under way, or on the mesh, as far as
/// its scores do not; where these are numbers: a text of NaN spoils those that enter its row.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/nn/decoding/decode.hpp>
#include <tessera/nn/decoding/sampling.hpp>
#include <tessera/nn/decoding/text_queue.hpp>
#include <tessera/op/to_host.hpp>

namespace tessera {

/// Returns the tokens that follow each request's beginning, by a function that reads on:
/// read(ids, at, last) returns the scores (batch, vocabulary) of the token after `last` of each
/// row, as decode does, with a cache of as many places as `make_reader(batch, places)`, which
/// returns it, is told. Collective over the mesh; every process gives the same. Communication: that
/// of reading, and of next_token; each step every process gets the new tokens. Throws UsageError
/// for an empty beginning, and for options below 1.
template <class U, class MakeReader>
std::vector<std::vector<std::int32_t>> generate_by(const ProcessMesh<typename U::mesh_type>& mesh,
                                                   const MakeReader& make_reader,
                                                   std::vector<TextRequest> requests,
                                                   const GenerateOptions& options,
                                                   Where where = Where::here()) {
  using Ids = typename U::template Of<std::int32_t, logical::batch, logical::sequence>;
  using Row = typename U::template Of<std::int32_t, logical::batch>;
  detail::TextQueue queue(std::move(requests), options, where);
  auto read = make_reader(options.batch, queue.places());
  const auto row = [&](const std::vector<std::int32_t>& values) {
    return from_host<Row>(mesh, {options.batch}, values, where);
  };
  while (queue.any()) {
    const detail::TextQueue::Step step = queue.next_step();
    const auto scores =
        read(from_host<Ids>(mesh, {options.batch, step.count}, step.ids, where),
             NewPlaces<U>::at(mesh, step.places, queue.places(), where), row(step.last));
    queue.take(to_host(next_token(scores, options.sampling, row(step.text), row(step.next), where))
                   .values);
  }
  return queue.written();
}

/// Returns the tokens that follow each request's beginning, by a decoder. Communication: that of
/// decode and next_token; each step every process gets the new tokens. Collective over the mesh;
/// every process gives the same. Throws UsageError for an empty beginning, tokens that the model
/// has not, and options below 1, ShapeError where a text could be longer than the model's table of
/// positions.
template <class U>
std::vector<std::vector<std::int32_t>> generate(const ProcessMesh<typename U::mesh_type>& mesh,
                                                const Decoder<U>& model,
                                                std::vector<TextRequest> requests,
                                                const GenerateOptions& options = {},
                                                Where where = Where::here()) {
  for (std::size_t r = 0; r < requests.size(); ++r)
    if (requests[r].most > 0)
      detail::require_text("generate", r, requests[r].begin, requests[r].most, model, where);
  const auto make = [&](Index batch, Index places) {
    return [&, cache = DecoderCache<U>::like(mesh, model, batch, places, where)](
               const auto& ids, const auto& at, const auto& last) mutable {
      return decode(model, cache, ids, at, last, options.attention, where);
    };
  };
  return generate_by<U>(mesh, make, std::move(requests), options, where);
}

}  // namespace tessera
