// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elementwise kernels on the host of which only a loop over contiguous elements is compiled for
/// each function; how operands lie is this header's matter, compiled once. For functions of which
/// many are compiled, such as derivatives; kernel/map/map.hpp is faster where operands lie in short
/// rows.
///
///     detail::map_by_loop(work, &TwiceLoop::run, &f, out, in, {sizeof(float), sizeof(float)});
///
/// Laws: equals map of the same function.
#include <array>
#include <cstddef>

#include <tessera/base/compiled.hpp>
#include <tessera/base/dtype.hpp>
#include <tessera/kernel/copy/copy_loops.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/map_shape.hpp>

namespace tessera::detail {

/// out[i] = f(in[0][i], in[1][i], ...) for i below n.
using ElementLoop = void (*)(const void* f, Index n, void* out, const void* const* in);

/// Calls `loop`, which has float in place of half types, for tiles of elements of `types`, those of
/// the operands and last of the result: they are widened before, and its results are rounded.
/// Communication: none.
TESSERA_FUNCTION void loop_in_float(ElementLoop loop, const void* f, Index n, void* out,
                                    const void* const* in, const DType* types, int operands);

/// The bytes of an element of each operand, and last of the result.
using ElementSizes = FixedVector<int, max_dims + 1>;

/// Writes f(in[0][...], in[1][...], ...) to each element of `out`, laid out as kernel/map/map.hpp
/// says. Communication: none.
TESSERA_FUNCTION void map_by_loop(const LocalMap& work, ElementLoop loop, const void* f, void* out,
                                  const void* const* in, const ElementSizes& sizes);

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/kernel/map/detail/map_tiles.hpp>
#endif
