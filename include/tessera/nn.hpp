// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Neural networks: the umbrella of the room nn, with the gradients that training needs. It is not
/// part of tessera/tessera.hpp.
///
///     const auto step = value_and_grad([&](const auto& w) { return mean<"ij->">(square(y - x * w)); });
///     for_each_tensor([](auto& w, const auto& g) { w = w - 0.1f * g; }, weights, step(weights).gradient);
#include <tessera/grad.hpp>
#include <tessera/nn/mixture_of_experts.hpp>
#include <tessera/tensor/tree.hpp>
