// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Parts of models, as functions of dynamic tensors: a Transformer's layers, GShard's mixture of
/// experts and a U-Net. The tests of chosen shardings and the benchmark of choosing them record the
/// same ones.
///
///     x = models::attention(&weights[0], x);         // each beside its input
///     x = models::feed_forward(&weights[4], x);
#include <cstdint>

#include <tessera/tessera.hpp>

namespace models {
using tessera::DynamicTensor;
using tessera::Index;

/// Normalizes the last dimension, without a scale or an offset of its own.
inline DynamicTensor norm(const DynamicTensor& x) {
  const tessera::Extents& extents = x.desc().extents;
  const auto whole = [&] {
    return tessera::zeros<float>(x.mesh(), {extents[extents.size() - 1]}, tessera::Sharding{{}});
  };
  const DynamicTensor scale = whole(), offset = whole();
  return tessera::layer_norm<float>(x, scale, offset);
}
/// Attention beside its input x, (batch, positions, features). Its weights are those of queries,
/// keys and values, each (features, heads, 64), and what puts the heads together.
inline DynamicTensor attention(const DynamicTensor* w, const DynamicTensor& x) {
  const DynamicTensor a = norm(x);
  const DynamicTensor q = einsum("btm,mnd->btnd", a, w[0]), k = einsum("btm,mnd->btnd", a, w[1]),
                      v = einsum("btm,mnd->btnd", a, w[2]);
  const DynamicTensor scores =
      tessera::softmax<float>("bnts", 's', einsum("btnd,bsnd->bnts", q, k) * 0.125f);
  return x + einsum("btnd,ndm->btm", einsum("bnts,bsnd->btnd", scores, v), w[3]);
}
/// A feed-forward layer beside its input.
inline DynamicTensor feed_forward(const DynamicTensor* w, const DynamicTensor& x) {
  return x + einsum("bth,hm->btm", gelu(einsum("btm,mh->bth", norm(x), w[0])), w[1]);
}
/// GShard's algorithm 2, to the one expert that likes a token best; x is (groups, tokens,
/// features). What the experts make stays in their order, as in nn/mixture_of_experts.hpp.
inline DynamicTensor mixture(const DynamicTensor* w, const DynamicTensor& x, Index experts,
                             Index capacity) {
  using namespace tessera;
  const DynamicTensor gates = softmax<float>("gse", 'e', einsum("gsm,me->gse", x, w[0]));
  const DynamicTensor top = one_hot<float>("gse", 'e', argmax("gse->gs", gates), experts);
  const DynamicTensor place =
      cast<std::int64_t>(reduce<Sum>("gse->gs", cumulative<Sum>("gse", 's', top) * top) - 1.0f);
  const DynamicTensor slots = one_hot<float>("gsc", 'c', place, capacity);
  const DynamicTensor x_of = einsum("gsec,gsm->egcm", einsum("gse,gsc->gsec", top, slots), x);
  const DynamicTensor y =
      einsum("egch,ehm->egcm", relu(einsum("egcm,emh->egch", x_of, w[1])), w[2]);
  return einsum("gsec,egcm->gsm", einsum("gse,gsc->gsec", gates * top, slots), y);
}

/// A convolution of 3 x 3 whose result is as large as its input, or half as long either way.
inline DynamicTensor conv(const DynamicTensor& x, const DynamicTensor& k, Index stride = 1) {
  tessera::Convolution same{.stride = {stride, stride}, .low = {1, 1}, .high = {1, 1}};
  if (stride == 2) same.low = {0, 0};
  return convolve("nihw,oihw->nohw", x, k, same);
}
/// Repeats every row and every column of (images, features, rows, columns).
inline DynamicTensor twice_as_large(const DynamicTensor& x) {
  const tessera::Extents e = x.desc().extents;
  const DynamicTensor rows = reshape(broadcast_to(x, {e[0], e[1], e[2], 2, e[3]}, {0, 1, 2, 4}),
                                     {e[0], e[1], 2 * e[2], e[3]});
  return reshape(broadcast_to(rows, {e[0], e[1], 2 * e[2], e[3], 2}, {0, 1, 2, 3}),
                 {e[0], e[1], 2 * e[2], 2 * e[3]});
}
/// The extents of a U-Net's kernels.
inline const tessera::Extents unet_kernels[]{
    {16, 3, 3, 3}, {32, 16, 3, 3}, {32, 32, 3, 3}, {3, 48, 3, 3}};
/// A U-Net of two levels on images of three colours.
inline DynamicTensor unet(const DynamicTensor* w, const DynamicTensor& x) {
  const DynamicTensor a = relu(conv(x, w[0])), m = relu(conv(relu(conv(a, w[1], 2)), w[2]));
  return conv(tessera::concatenate(1, {twice_as_large(m), a}), w[3]);
}

}  // namespace models
