// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The bodies of kernel/map/map_by_loop.hpp: tiles of the operands, gathered where they do not lie
/// as the result does.
///
///     MapTiles{shape, operands, loop, f, out, in, sizes}.run(begin, end);
#include <tessera/kernel/detail/convert_row.hpp>
#include <tessera/kernel/map/map_by_loop.hpp>

namespace tessera::detail {

/// Calls use(Word{}) for elements of this many bytes.
template <class Use> auto with_word(int bytes, const Use& use) {
  switch (bytes) {
    case 1:
      return use(Word<1>{});
    case 2:
      return use(Word<2>{});
    case 4:
      return use(Word<4>{});
    case 8:
      return use(Word<8>{});
    default:
      return use(Word<16>{});
  }
}

struct MapTiles {
  MapShape<max_dims> shape;
  int operands;
  ElementLoop loop;
  const void* f;
  std::byte* out;
  std::array<const std::byte*, max_dims> in;
  ElementSizes sizes;

  void run(Index begin, Index end) const {
    std::array<const void*, max_dims> from{};
    const MapOperand& result = shape.operand[operands];
    if (shape.flat) {
      for (int k = 0; k < operands; ++k) from[index(k)] = in[index(k)] + begin * sizes[k];
      return loop(f, end - begin, out + begin * sizes[operands], from.data());
    }
    alignas(64) std::byte buffers[max_dims + 1][map_tile * 16];
    std::array<const void*, max_dims> filled{};
    for (Index i = begin; i < end;) {
      const Index count = min_of(map_tile, end - i);
      for (int k = 0; k < operands; ++k)
        from[index(k)] = gathered(k, i, count, buffers[k], filled[index(k)]);
      std::byte* const made = result.flat ? out + i * sizes[operands] : buffers[operands];
      loop(f, count, made, from.data());
      if (!result.flat) scatter(result, i, count, made);
      i += count;
    }
  }

 private:
  static std::size_t index(int k) { return static_cast<std::size_t>(k); }
  const void* gathered(int k, Index begin, Index count, void* buffer, const void*& filled) const {
    return with_word(sizes[k], [&](auto word) -> const void* {
      using T = decltype(word);
      const T* before = static_cast<const T*>(filled);
      const T* const tile = gather_tile(shape.rank, shape.extent, shape.operand[k],
                                        reinterpret_cast<const T*>(in[index(k)]), begin, count,
                                        static_cast<T*>(buffer), before);
      filled = before;
      return tile;
    });
  }
  void scatter(const MapOperand& result, Index begin, Index count, const void* made) const {
    with_word(sizes[operands], [&](auto word) {
      using T = decltype(word);
      const T* const from = static_cast<const T*>(made);
      T* const to = reinterpret_cast<T*>(out);
      for (Index i = 0; i < count; ++i)
        to[result.offset(begin + i, shape.rank, shape.extent)] = from[i];
    });
  }
};

TESSERA_FUNCTION void loop_in_float(ElementLoop loop, const void* f, Index n, void* out,
                                    const void* const* in, const DType* types, int operands) {
  alignas(64) float wide[max_dims + 1][map_tile];
  const DType made = types[operands];
  const auto at = [](const void* p, DType type, Index i) {
    return static_cast<const std::byte*>(p) + i * size_of(type);
  };
  std::array<const void*, max_dims> from{};
  for (Index i = 0; i < n; i += map_tile) {
    const Index count = min_of(map_tile, n - i);
    for (int k = 0; k < operands; ++k) {
      const void* const first = at(in[k], types[k], i);
      if (types[k] == DType::f16)
        convert_row(static_cast<const half*>(first), count, wide[k]);
      else if (types[k] == DType::bf16)
        convert_row(static_cast<const bfloat16*>(first), count, wide[k]);
      from[static_cast<std::size_t>(k)] = is_short(types[k]) ? wide[k] : first;
    }
    float* const results = wide[operands];
    if (made == DType::f16) {
      loop(f, count, results, from.data());
      convert_row(results, count, static_cast<half*>(out) + i);
    } else if (made == DType::bf16) {
      loop(f, count, results, from.data());
      convert_row(results, count, static_cast<bfloat16*>(out) + i);
    } else {
      loop(f, count, static_cast<std::byte*>(out) + i * size_of(made), from.data());
    }
  }
}

TESSERA_FUNCTION void map_by_loop(const LocalMap& work, ElementLoop loop, const void* f, void* out,
                                  const void* const* in, const ElementSizes& sizes) {
  const int operands = sizes.size() - 1;
  MapTiles kernel{map_shape<max_dims>(work, operands), operands, loop, f,
                  static_cast<std::byte*>(out),        {},       sizes};
  for (int k = 0; k < operands; ++k)
    kernel.in[static_cast<std::size_t>(k)] = static_cast<const std::byte*>(in[k]);
  launch_on_host("tessera::map", kernel.shape.size, 16384, kernel);
}

}  // namespace tessera::detail
