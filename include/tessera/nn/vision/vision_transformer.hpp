// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A Vision Transformer: an image is cut into patches, and these are the tokens of an encoder whose
/// blocks begin with their norms (nn/encoder.hpp). A class token or the mean of the patches stands
/// for the image, and scores its classes.
///
///     const VisionSizes sizes_of{.height = 4, .width = 4, .channels = 2, .patch = {2, 2}, .embed = 6,
///                                .heads = 3, .hidden = 8, .layers = 2, .classes = 10};
///     auto model = VisionTransformer<Here>::like(make, sizes_of);
///     auto states = encode(model, images);             // (batch, 1 + patches, embed)
///     auto scores = class_scores(model, states);       // (batch, classes)
///     auto layers = hidden_states(model, images);      // of the input and after each block
///
/// Laws: equals Hugging Face's ViTModel and ViTForImageClassification of equal weights, to
/// rounding, where class_token is its token plus the position that it adds to that; the same
/// numbers under all rules and on every mesh, to rounding. Errors: those of the operators that it
/// is made of.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/nn/encoder.hpp>
#include <tessera/op/product/convolve.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/shape/broadcast.hpp>
#include <tessera/op/shape/concatenate.hpp>
#include <tessera/op/shape/dimensions.hpp>
#include <tessera/op/shape/reshape.hpp>
#include <tessera/op/shape/slice.hpp>

namespace tessera {

/// Which parameters a Vision Transformer has. Its images are (height, width, channels); patches lie
/// side by side from the first row and column on, and what is left of an image after the last whole
/// one is not seen.
struct VisionSizes {
  Index height = 224, width = 224, channels = 3;
  Extents patch = {16, 16};  ///< rows and columns of a patch
  Index embed = 768, heads = 12, hidden = 3072, layers = 12;
  Index classes = 0;        ///< that class_scores scores; 0: none
  bool class_token = true;  ///< stands for the image; without it the mean of all patches does
};

/// Patches' positions are a number for each row, column and element, so that a model knows how many
/// there are of either, and rules may split them as they split patches.
template <class U> struct VisionTransformer {
  template <class... Names> using Tensor = typename U::template Tensor<Names...>;
  using Kernel = Tensor<_, _, logical::in_channels, logical::embed>;
  using Positions = Tensor<logical::height, logical::width, logical::embed>;
  Kernel patches;
  Tensor<logical::embed> patches_bias;
  Positions positions;
  std::optional<Tensor<logical::embed>> class_token;
  std::vector<EncoderBlock<U>> blocks;
  LayerNorm<U> norm;
  std::optional<Dense<U, logical::embed, logical::vocabulary>> head;
  static constexpr auto fields =
      Fields<&VisionTransformer::patches, &VisionTransformer::patches_bias,
             &VisionTransformer::positions, &VisionTransformer::class_token,
             &VisionTransformer::blocks, &VisionTransformer::norm, &VisionTransformer::head>{};

  /// Throws ShapeError unless a patch has a height and a width, and an image has room for one.
  static VisionTransformer like(Parameters<typename U::mesh_type>& make, const VisionSizes& n,
                                Where where = Where::here()) {
    if (n.patch.size() != 2 || n.patch[0] < 1 || n.patch[1] < 1 || n.patch[0] > n.height ||
        n.patch[1] > n.width)
      throw ShapeError("vision transformer: patches of " + to_string(n.patch) + " in images of " +
                           to_string(Extents{n.height, n.width}) +
                           "; a patch has a height and a width of at least 1, and an image at "
                           "least one patch; give smaller patches, or larger images",
                       where);
    const Index rows = n.height / n.patch[0], columns = n.width / n.patch[1];
    const Initializer small = Initializer::normal(0.02);
    VisionTransformer model;
    model.patches =
        make.template tensor<Kernel>({n.patch[0], n.patch[1], n.channels, n.embed},
                                     Initializer::fan_in(volume(n.patch) * n.channels), where);
    model.patches_bias =
        make.template tensor<Tensor<logical::embed>>({n.embed}, Initializer::zeros(), where);
    model.positions = make.template tensor<Positions>({rows, columns, n.embed}, small, where);
    if (n.class_token)
      model.class_token = make.template tensor<Tensor<logical::embed>>({n.embed}, small, where);
    const EncoderSizes block{.embed = n.embed, .heads = n.heads, .hidden = n.hidden};
    for (Index l = 0; l < n.layers; ++l)
      model.blocks.push_back(EncoderBlock<U>::like(make, block, where));
    model.norm = LayerNorm<U>::like(make, n.embed);
    if (n.classes > 0)
      model.head = Dense<U, logical::embed, logical::vocabulary>::like(make, n.embed, n.classes);
    return model;
  }
};

/// How a Vision Transformer runs, whatever its weights are.
struct VisionOptions {
  double epsilon = 1e-6;            ///< of all norms; Hugging Face's default is 1e-12
  Dropout dropout = {};             ///< of the input, residuals and attention
  AttentionOptions attention = {};  ///< that of all blocks; it drops as `dropout` says
  /// The blocks of which a gradient keeps the arguments alone, as in DecoderOptions.
  std::vector<Recompute> again = {};
};

namespace detail {
/// Throws ShapeError unless images have the model's patches.
template <class U>
void require_patches(const VisionTransformer<U>& model, const Extents& images, Where where) {
  const Extents patch{model.patches.extent(0), model.patches.extent(1)};
  const Extents there{model.positions.extent(0), model.positions.extent(1)};
  const Extents given{images[1] / patch[0], images[2] / patch[1]};
  if (given == there) return;
  throw ShapeError("encode: images of " + to_string(Extents{images[1], images[2]}) + " have " +
                       to_string(given) + " patches of " + to_string(patch) +
                       ", and the model has positions for " + to_string(there) +
                       "; resize the images, or make a model of their size",
                   where);
}

/// Returns the input of the first block, (batch, sequence, embed), whose first place is the class
/// token's where there is one.
template <class X, class U, TypedTensor A>
X vision_input(const VisionTransformer<U>& model, const A& images, const VisionOptions& options,
               Where where) {
  using Patches =
      typename U::template Spec<logical::batch, logical::height, logical::width, logical::embed>;
  require_patches(model, images.extents(), where);
  const Convolution apart{.stride = {model.patches.extent(0), model.patches.extent(1)}};
  const auto seen = biased(convolve<nhwc, Patches>(images, model.patches, apart, where),
                           std::optional(model.patches_bias), where);
  const auto placed = map<"bhwz,hwz->bhwz", Patches>(fn::Add{}, seen, model.positions, where);
  const Index batch = placed.extent(0), embed = placed.extent(3);
  X x =
      reshape<typename X::spec>(placed, {batch, placed.extent(1) * placed.extent(2), embed}, where);
  if (model.class_token) {
    using Token = typename U::template Spec<logical::batch, _, logical::embed>;
    x = X(concatenate<1, typename X::spec>(
        broadcast_to<Token>(*model.class_token, {batch, 1, embed}, where), x));
  }
  return dropout(x, options.dropout.at(0), where);
}

/// Returns the states; adds what each block is given to `kept`, unless that is null.
template <class U, TypedTensor A>
States<U> encode(const VisionTransformer<U>& model, const A& images, const VisionOptions& options,
                 Where where, std::vector<States<U>>* kept) {
  static_assert(A::rank == 4,
                "[tessera] a Vision Transformer takes images (batch, height, width, channels); "
                "give a tensor of these dimensions");
  States<U> x = [&] {
    const Layer scope(images, "patches");
    return vision_input<States<U>>(model, images, options, where);
  }();
  const EncoderOptions own{.norm_first = true,
                           .epsilon = options.epsilon,
                           .dropout = options.dropout,
                           .attention = options.attention,
                           .again = options.again};
  x = encoder_blocks(model.blocks, std::move(x), own, AllValid{}, where, kept);
  const Layer scope(images, "norm");
  return layer_norm(model.norm, x, options.epsilon, where);
}
}  // namespace detail

/// Returns the states of an image's patches, after that of the class token where there is one:
/// images are (batch, height, width, channels), the result (batch, sequence, embed), patches row by
/// row. Communication: that of the blocks (encoder_block). Of the patches, where height or width is
/// split, the pixels of those that lie across the border of two blocks, and none where patches
/// divide blocks; where the sequence is split otherwise than the patches one exchange, and one of
/// the states that the class token moves on by a place. Collective over the mesh. Throws ShapeError
/// when images have other numbers of patches than the model, or other channels. Source: Dosovitskiy
/// et al., "An image is worth 16x16 words" (2021), section 3.1.
template <class U, TypedTensor A>
auto encode(const VisionTransformer<U>& model, const A& images, const VisionOptions& options = {},
            Where where = Where::here()) {
  return detail::encode(model, images, options, where, nullptr);
}

/// Returns the input of the first block and the states after each block, those after the last as
/// encode returns them. Communication, errors: as encode.
template <class U, TypedTensor A>
auto hidden_states(const VisionTransformer<U>& model, const A& images,
                   const VisionOptions& options = {}, Where where = Where::here()) {
  std::vector<detail::States<U>> states;
  const auto last = detail::encode(model, images, options, where, &states);
  states.push_back(last);
  return states;
}

/// Returns what stands for each image: the class token's state, or the mean of the patches' states,
/// which is (batch, embed) of states (batch, sequence, embed). Communication: where the sequence is
/// split one exchange, or one reduction, of the result. Collective over the mesh. Source of the
/// mean: Beyer, Zhai and Kolesnikov, "Better plain ViT baselines" (2022).
template <class U, TypedTensor A>
auto image_states(const VisionTransformer<U>& model, const A& states, Where where = Where::here()) {
  using Y = typename U::template Tensor<logical::batch, logical::embed>;
  using Token = typename U::template Spec<logical::batch, _, logical::embed>;
  if (!model.class_token) return Y(mean<"bse->be", typename Y::spec>(states, where));
  return Y(squeeze<1>(slice<Token, NoContract, 1>(states, {0}, {1}, {}, where), where));
}

/// Returns the scores of an image's classes: states are (batch, sequence, embed), the result
/// (batch, classes), split as a vocabulary is; cross_entropy takes them. Communication: that of
/// image_states and of a product. Collective over the mesh. Throws UsageError for a model without
/// classes.
template <class U, TypedTensor A>
auto class_scores(const VisionTransformer<U>& model, const A& states, Where where = Where::here()) {
  if (!model.head)
    throw UsageError(
        "class_scores: the model has no classes; make it with VisionSizes{.classes = 10}, or read "
        "the weights of one that has",
        where);
  const Layer scope(states, "head");
  using Scores = typename U::template Spec<logical::batch, logical::vocabulary>;
  return dense<Scores>(*model.head, image_states(model, states, where), detail::NoActivation{},
                       where);
}

}  // namespace tessera
