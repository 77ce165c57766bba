// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Ways to split a model, each a list of rules for the names of nn/under.hpp; a model's source does
/// not know them. Rules of one's own come first in LayerRules, and may name further dimensions.
///
///     using Two = TwoDimensional<data, model>;
///     std::is_same_v<Logical<Two, logical::embed, logical::hidden>, P<data, model>>
///     using Mine = LayerRules<AxisRule<logical::batch, data>, AxisRule<logical::hidden, model>>;
///
/// Laws: a dimension without a rule of its own is not split.
#include <tessera/nn/under.hpp>

namespace tessera {

/// The rules R, and that all other dimensions are whole.
template <class... R>
using LayerRules =
    Rules<R..., AxisRule<logical::batch, _>, AxisRule<logical::sequence, _>,
          AxisRule<logical::embed, _>, AxisRule<logical::hidden, _>, AxisRule<logical::groups, _>,
          AxisRule<logical::repeats, _>, AxisRule<logical::head_dim, _>,
          AxisRule<logical::vocabulary, _>, AxisRule<logical::positions, _>,
          AxisRule<logical::cache, _>, AxisRule<logical::experts, _>, AxisRule<logical::norm, _>,
          AxisRule<logical::height, _>, AxisRule<logical::width, _>, AxisRule<logical::channels, _>,
          AxisRule<logical::in_channels, _>>;

/// Every process has all weights and a part of the batch; gradients are all-reduced. `A` is an axis
/// or Axes<...>.
template <class A> using DataParallel = LayerRules<AxisRule<logical::batch, A>>;

/// Heads, hidden elements and the vocabulary over `Model`: an all-reduce after attention and one
/// after the feed-forward layer, and as many on the way back. Source: Shoeybi et al., "Megatron-LM"
/// (2019), section 3; the embedding is split by vocabulary, as there.
template <class Data, class Model>
using TensorParallel =
    LayerRules<AxisRule<logical::batch, Data>, AxisRule<logical::groups, Model>,
               AxisRule<logical::hidden, Model>, AxisRule<logical::vocabulary, Model>>;

/// Every weight and every activation over both axes: GSPMD's "2D finalized" (Xu et al. 2021, Table
/// 1). A weight's embedding dimension gets `Data`, an activation's `Model`, since its batch has
/// `Data`.
template <class Data, class Model>
using TwoDimensional =
    LayerRules<AxisRule<logical::batch, Data>, AxisRule<logical::groups, Model>,
               AxisRule<logical::hidden, Model>, AxisRule<logical::vocabulary, Model>,
               AxisRule<logical::embed, Data>, AxisRule<logical::embed, Model>>;

/// Every process has a part of the batch and of each weight, which is gathered where it is used;
/// gradients are reduce-scattered. Source: Rajbhandari et al., "ZeRO" (2020), stage 3. `A` is an
/// axis or Axes<...>.
template <class A>
using FullySharded = LayerRules<AxisRule<logical::batch, A>, AxisRule<logical::embed, A>>;

/// The batch over `Data`, the places of a text over `Model`, weights whole: attention gathers keys
/// and values.
template <class Data, class Model>
using SequenceSplit =
    LayerRules<AxisRule<logical::batch, Data>, AxisRule<logical::sequence, Model>>;

/// The batch over `Data`, the rows of images and of their patches, and the places of a text, over
/// `Model`, so that where that has several processes none holds a whole image. Weights are whole
/// but for tables with rows as images have (VisionTransformer::positions).
template <class Data, class Model>
using SpaceSplit = LayerRules<AxisRule<logical::batch, Data>, AxisRule<logical::height, Model>,
                              AxisRule<logical::sequence, Model>>;

/// The batch and the experts of mixtures over `A`, an axis or Axes<...>, all other weights whole:
/// tokens go to their experts and back by an all-to-all each. Source: GShard, section 3.3.
template <class A>
using ExpertParallel = LayerRules<AxisRule<logical::batch, A>, AxisRule<logical::experts, A>>;

/// The same over `Data`, and heads, hidden elements, of experts too, and the vocabulary over
/// `Model`.
template <class Data, class Model>
using ExpertTensorParallel =
    LayerRules<AxisRule<logical::batch, Data>, AxisRule<logical::experts, Data>,
               AxisRule<logical::groups, Model>, AxisRule<logical::hidden, Model>,
               AxisRule<logical::vocabulary, Model>>;

}  // namespace tessera
