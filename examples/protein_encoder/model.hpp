// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The encoder: what a file of weights says of it (examples/protein_encoder/fetch.py makes one),
/// the letters that it knows, and the ways to split it.
///
///     Kind kind = kind_of("weights/antiberty.safetensors");
///     using Here = Under<float, Grid, by::Tensors>;
///     auto model = read_model<Here>(mesh, kind);
///
/// Laws: each process reads its own blocks of the weights, whichever the rules and the mesh.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/io/checkpoint.hpp>
#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

#include "../support/facts.hpp"

namespace protein_encoder {

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
using Id = std::int32_t;
inline constexpr std::string_view amino_acids = "ACDEFGHIKLMNPQRSTVWY";

/// Ways to split the encoder over data x model (tessera/nn/rules.hpp).
namespace by {
using Batch = DataParallel<Axes<data, model>>;
using Tensors = TensorParallel<data, model>;
using Two = TwoDimensional<data, model>;
using Shards = FullySharded<Axes<data, model>>;
using Sequence = SequenceSplit<data, model>;
}  // namespace by

template <class U>
using States = typename U::template Tensor<logical::batch, logical::sequence, logical::embed>;
template <class U> using Ids = typename U::template Of<Id, logical::batch, logical::sequence>;

/// The words of a vocabulary, of which most are letters.
class Vocabulary {
 public:
  Id padding = 0, unknown = 0, begin = 0, end = 0, mask = 0;

  explicit Vocabulary(const std::string& words = {}) {
    std::istringstream text(words);
    for (std::string word; text >> word;) words_.push_back(word);
  }
  Index size() const { return static_cast<Index>(words_.size()); }
  const std::string& word(Index id) const { return words_[static_cast<std::size_t>(id)]; }
  /// Returns the id of a word; -1 for one that it has not.
  Id find(const std::string& word) const {
    const auto found = std::find(words_.begin(), words_.end(), word);
    return found == words_.end() ? -1 : static_cast<Id>(found - words_.begin());
  }
  /// Whether sequences can be given as letters: those of the amino acids are words.
  bool has_letters() const {
    return std::all_of(amino_acids.begin(), amino_acids.end(),
                       [&](char one) { return find(std::string(1, one)) >= 0; });
  }
  /// Returns the id of a letter; '_' stands for one that is masked.
  Id letter(char c) const {
    const Id id = c == '_' ? mask : find(std::string(1, c));
    return id < 0 ? unknown : id;
  }

 private:
  std::vector<std::string> words_;
};

/// An encoder's architecture, and its file; none: its weights are random numbers.
struct Kind {
  std::string file, source = "random numbers";
  EncoderSizes sizes;
  EncoderOptions options;
  Vocabulary vocabulary;
};

/// Returns what a file says of its encoder, read by this process alone. Throws FileError for a file
/// of another format, UsageError for one that says too little.
inline Kind kind_of(const std::string& path) {
  const SafetensorsHeader header = read_checkpoint_header(path);
  const support::Facts facts("--weights", path, header.metadata,
                             "a file that examples/protein_encoder/fetch.py has made, "
                             "such as antiberty's");
  const auto size = [&](const char* key) { return facts.number<Index>(key); };
  Kind kind{path, facts.text("source"), {}, {}, Vocabulary(facts.text("words"))};
  kind.sizes = {.vocabulary = size("vocabulary"),
                .places = size("places"),
                .kinds = size("kinds"),
                .embed = size("embed"),
                .heads = size("heads"),
                .hidden = size("hidden"),
                .layers = size("layers"),
                .input_norm = size("input_norm") != 0,
                .last_norm = size("last_norm") != 0,
                .head = size("head") != 0};
  kind.options.norm_first = size("norm_first") != 0;
  kind.options.first_place = size("first_place");
  kind.options.attention.rotary = size("rotary") != 0;
  kind.options.epsilon = facts.number<double>("epsilon");
  const bool drops = header.metadata.count("token_dropout") != 0 && size("token_dropout") != 0;
  Vocabulary& words = kind.vocabulary;
  for (const auto& [id, key] :
       {std::pair{&words.padding, "padding"}, std::pair{&words.unknown, "unknown"},
        std::pair{&words.begin, "begin"}, std::pair{&words.end, "end"},
        std::pair{&words.mask, "mask"}})
    if ((*id = words.find(facts.text(key))) < 0)
      throw UsageError("--weights: the word \"" + facts.text(key) + "\" for " + key + " of " +
                       path + " is none of its words; make the file again by fetch.py");
  if (words.size() != kind.sizes.vocabulary)
    throw UsageError("--weights: " + path + " has " + std::to_string(words.size()) +
                     " words, and a table of " + std::to_string(kind.sizes.vocabulary) +
                     " rows; make the file again by fetch.py");
  if (drops) kind.options.token_dropout = TokenDropout{.mask = words.mask};
  return kind;
}

/// Returns what kind_of reads, to be written beside an encoder's weights.
inline CheckpointFacts facts_of(const Kind& kind) {
  const EncoderSizes& n = kind.sizes;
  const Vocabulary& words = kind.vocabulary;
  CheckpointFacts facts{{"source", kind.source},
                        {"epsilon", fmt::format("{}", kind.options.epsilon)}};
  const std::pair<const char*, Index> numbers[] = {
      {"vocabulary", n.vocabulary},
      {"places", n.places},
      {"kinds", n.kinds},
      {"embed", n.embed},
      {"heads", n.heads},
      {"hidden", n.hidden},
      {"layers", n.layers},
      {"input_norm", n.input_norm},
      {"last_norm", n.last_norm},
      {"head", n.head},
      {"norm_first", kind.options.norm_first},
      {"first_place", kind.options.first_place},
      {"rotary", kind.options.attention.rotary},
      {"token_dropout", kind.options.token_dropout.has_value()}};
  for (const auto& [key, number] : numbers) facts[key] = std::to_string(number);
  for (Index id = 0; id < words.size(); ++id)
    facts["words"] += (id > 0 ? " " : "") + words.word(id);
  facts["padding"] = words.word(words.padding), facts["unknown"] = words.word(words.unknown);
  facts["begin"] = words.word(words.begin), facts["end"] = words.word(words.end);
  facts["mask"] = words.word(words.mask);
  return facts;
}

/// Returns ESM2's architecture with such sizes: norms before layers, rotary positions, 33 words.
/// Source: Lin et al., "Language models of protein sequences at the scale of evolution" (2022). Its
/// scaling of the input by the number of masked letters is left out, as its weights are random
/// (EncoderOptions::token_dropout has it).
inline Kind esm2(EncoderSizes sizes) {
  Kind kind;
  kind.vocabulary = Vocabulary(
      "<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <null_1> "
      "<mask>");
  kind.vocabulary.begin = 0, kind.vocabulary.padding = 1, kind.vocabulary.end = 2;
  kind.vocabulary.unknown = 3, kind.vocabulary.mask = 32;
  kind.sizes = sizes;
  kind.sizes.vocabulary = kind.vocabulary.size();
  kind.sizes.places = kind.sizes.kinds = 0;
  kind.sizes.input_norm = false;
  kind.sizes.last_norm = true;
  kind.options.norm_first = kind.options.attention.rotary = true;
  return kind;
}

/// Returns the encoder with the weights of its file, or with random ones. Communication: as
/// read_checkpoint. Collective over the mesh.
template <class U> Encoder<U> read_model(const ProcessMesh<Grid>& mesh, const Kind& kind) {
  Parameters<Grid> make(mesh, 1);
  auto model = Encoder<U>::like(make, kind.sizes);
  if (!kind.file.empty() && !mesh.dry())
    read_checkpoint(mesh, kind.file, model,
                    {.progress = progress_bar("reading weights", mesh.process() == 0)});
  return model;
}

}  // namespace protein_encoder
