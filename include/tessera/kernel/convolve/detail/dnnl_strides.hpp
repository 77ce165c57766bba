// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Strides as oneDNN wants them, for extents of images, features (dimension 1) and spatial ones.
///
///     plain_strides({4, 1, 8, 8}, strides) == features_last({4, 1, 8, 8})   // where both are dense
#if defined(TESSERA_HAVE_DNNL)
#include <tessera/kernel/convolve/detail/dnnl.hpp>

namespace tessera::detail {

inline DnnlDims row_major(const DnnlDims& dims) {
  DnnlDims strides(dims.size(), 1);
  for (int d = dims.size() - 2; d >= 0; --d) strides[d] = strides[d + 1] * dims[d + 1];
  return strides;
}
/// Returns the strides of a dense tensor whose dimension 1, the features, lies last.
inline DnnlDims features_last(const DnnlDims& dims) {
  DnnlDims strides(dims.size(), dims[1]);
  strides[1] = 1;
  for (int d = dims.size() - 2; d >= 2; --d) strides[d] = strides[d + 1] * dims[d + 1];
  strides[0] = strides[2] * dims[2];
  return strides;
}
/// Replaces strides of extents of 1, which mean nothing, so that the layout is dense if possible.
inline DnnlDims plain_strides(const DnnlDims& dims, DnnlDims strides) {
  for (const DnnlDims& dense : {features_last(dims), row_major(dims)}) {
    bool same = true;
    for (int d = 0; d < dims.size(); ++d) same = same && (dims[d] == 1 || strides[d] == dense[d]);
    if (same) return dense;
  }
  for (int d = 0; d < dims.size(); ++d)
    if (dims[d] == 1) strides[d] = 1;
  return strides;
}

}  // namespace tessera::detail
#endif
