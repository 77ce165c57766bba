// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Neural networks: the umbrella of the room nn, with the gradients that training needs. It is not
/// part of tessera/tessera.hpp.
///
///     const auto step = value_and_grad([&](const auto& w) { return mean<"ij->">(square(y - x * w)); });
///     for_each_tensor([](auto& w, const auto& g) { w = w - 0.1f * g; }, weights, step(weights).gradient);
#include <tessera/grad.hpp>
#include <tessera/nn/attention.hpp>
#include <tessera/nn/batch_norm.hpp>
#include <tessera/nn/blocked_attention.hpp>
#include <tessera/nn/convolution_block.hpp>
#include <tessera/nn/cross_entropy.hpp>
#include <tessera/nn/decoder.hpp>
#include <tessera/nn/dense.hpp>
#include <tessera/nn/documents/documents.hpp>
#include <tessera/nn/documents/pack.hpp>
#include <tessera/nn/dropout.hpp>
#include <tessera/nn/embedding.hpp>
#include <tessera/nn/encoder.hpp>
#include <tessera/nn/feed_forward.hpp>
#include <tessera/nn/layer_norm.hpp>
#include <tessera/nn/mixture_of_experts.hpp>
#include <tessera/nn/optimizer/adafactor.hpp>
#include <tessera/nn/optimizer/adam.hpp>
#include <tessera/nn/optimizer/gradient_sum.hpp>
#include <tessera/nn/optimizer/lars.hpp>
#include <tessera/nn/optimizer/optimizer.hpp>
#include <tessera/nn/optimizer/sgd.hpp>
#include <tessera/nn/parameter_table.hpp>
#include <tessera/nn/parameters.hpp>
#include <tessera/nn/positions.hpp>
#include <tessera/nn/rules.hpp>
#include <tessera/nn/under.hpp>
#include <tessera/tensor/tree.hpp>
