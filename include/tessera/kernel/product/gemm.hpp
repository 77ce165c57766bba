// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Batches of matrix products, the local part of every einsum. float, double and complex go to
/// BLAS, oneDNN (float, with TESSERA_HAVE_DNNL) or BLIS (with TESSERA_HAVE_BLIS), as a table of
/// measured times says or, without one, the fixed rule below; on CUDA to cuBLAS. Half types go
/// there too, widened to float piece by piece; integers and unusual strides go to Tessera's own
/// kernel.
///
///     const detail::Gemm g{.m = 2, .n = 3, .k = 4, .lda = 4, .ldb = 3, .ldc = 3};
///     detail::gemm(DType::f32, g, a, b, c);                  // C = A B
///     detail::gemm(DType::f32, g, a, b, c, 1.0);             // C += A B
///
/// Laws: k == 0 gives zeros (or leaves C, with beta 1); with beta 0, the old contents of C do not
/// matter, NaN or not; integers are exact modulo 2^bits; half types are summed in float and rounded
/// once. A row times a column (kernel/product/detail/dot.hpp) is summed in double.
#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/kernel/detail/convert_row.hpp>
#include <tessera/kernel/detail/gemm_shape.hpp>
#include <tessera/kernel/detail/gemm_tiles.hpp>
#include <tessera/kernel/device/cublas.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/product/detail/blas.hpp>
#include <tessera/kernel/product/detail/blis.hpp>
#include <tessera/kernel/product/detail/dot.hpp>
#include <tessera/kernel/product/detail/gemm_pieces.hpp>
#include <tessera/kernel/product/detail/row_times_matrix.hpp>
#include <tessera/kernel/product/product_table.hpp>

namespace tessera::detail {

/// The fixed rule's size from which oneDNN multiplies floats. Measured on one core of an AMD EPYC
/// 9004 (AVX-512; OpenBLAS 0.3.21 with its Cooperlake kernels, oneDNN 2.6.3), in GFLOP/s:
///
///     m, n, k           OpenBLAS   oneDNN          m, n, k           OpenBLAS   oneDNN
///     8, 8, 8                 27        4          1024, 1024, 1024       102      109
///     32, 32, 32             108       78          4, 512, 512             40      106
///     64, 64, 64             115       98          2048, 512, 16           81       99
///     128, 128, 128          100      114          64, 2048, 64            79       97
///
/// and where OpenBLAS does not know the CPU ("Prescott"), oneDNN is up to five times faster. So
/// only the size decides, and the same product uses the same library on every process.
inline constexpr Index dnnl_from = Index{1} << 18;

template <class T> bool use_dnnl(T, Index work) {
  return dnnl_is_here && std::is_same_v<T, float> && work >= dnnl_from;
}

#if defined(TESSERA_HAVE_DNNL)
inline void dnnl_gemm(const GemmShape& g, Index m, Index n, float beta, const float* a,
                      const float* b, float* c) {
  const int status = tessera_dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', m, n,
                                        g.k, 1.0f, a, g.lda, b, g.ldb, beta, c, g.ldc);
  if (status != 0)
    throw MemoryError("dnnl_sgemm failed; it does so when it cannot have its workspace");
}
#else
inline void dnnl_gemm(const GemmShape&, Index, Index, float, const float*, const float*, float*) {}
#endif
template <class T> void dnnl_gemm(const GemmShape&, Index, Index, T, const T*, const T*, T*) {}

/// Host: an index is a product of the batch, or a piece of one.
template <class T> struct GemmBatch {
  const GemmShape& g;
  ProductWay way;
  GemmPieces pieces;
  T beta;
  const T* a;
  const T* b;
  T* c;
  void run(Index begin, Index end) const {
    if (way == ProductWay::blis) blis_is_ready();  // on each thread
    for (Index i = begin; i < end; ++i)
      if (pieces.rows * pieces.columns == 1)
        multiply(g.m, g.n, a + g.a_offset(i), b + g.b_offset(i), c + g.c_offset(i));
      else
        multiply(pieces.piece(g, i));
  }

 private:
  void multiply(const GemmPiece& p) const {
    multiply(p.m, p.n, a + g.a_offset(p.batch) + p.row * g.a_row,
             b + g.b_offset(p.batch) + p.column * g.b_column,
             c + g.c_offset(p.batch) + p.row * g.ldc + p.column);
  }
  void multiply(Index m, Index n, const T* x, const T* y, T* z) const {
    switch (way) {
      case ProductWay::onednn:
      case ProductWay::onednn_pieces:
        return dnnl_gemm(g, m, n, beta, x, y, z);
      case ProductWay::blis:
        return blis_gemm(m, n, g.k, x, g.a_row, g.a_column, y, g.b_row, g.b_column, beta, z, g.ldc);
      default:
        return split_gemm(g.transpose_a, g.transpose_b, m, n, g.k, x, g.lda, y, g.ldb, beta, z,
                          g.ldc);
    }
  }
};

/// Copies rows of half types to packed float, and back.
template <class T> struct WidenRows {
  const T* from;
  Index row, column, columns;
  float* to;
  void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const T* p = from + i * row;
      float* q = to + i * columns;
      if (column == 1)
        convert_row(p, columns, q);
      else
        for (Index j = 0; j < columns; ++j) q[j] = p[j * column];
    }
  }
};
template <class T> struct RoundRows {
  const float* from;
  Index columns;
  T* to;
  Index row;
  void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) convert_row(from + i * columns, columns, to + i * row);
  }
};

/// Whether BLIS keeps the law of NaN. On processors without AVX-512 BLIS 0.9 multiplies the last of
/// an odd number of columns (or rows) as a sum of columns of A, and leaves out those times zero,
/// NaN and infinite or not.
inline bool blis_may(const GemmShape& g) { return g.m % 2 == 0 && g.n % 2 == 0 && blis_is_ready(); }

/// BLIS 0.9 is faster than OpenBLAS 0.3.21 for large double products that are not narrow (on two
/// threads of a Xeon with AVX-512, 2048^3: 66.6 and 75.5 ms), and slower for narrow ones (a third
/// of its speed with 8 rows), complex and small ones. It packs all of B for the rows that there
/// are: of 2048 x 2048, with 64 to 128 rows, at 0.76 to 0.88 of OpenBLAS's speed, with 256 at 0.94,
/// with 512 at 1.0 (one thread of an AMD EPYC, AVX-512; on two 0.92 with 64 and 1.02 with 128);
/// columns may be as few as 64, at 1.17. What OpenBLAS would do on one thread only is BLIS's in
/// every type.
template <class T> bool use_blis(const GemmShape& g, Index work) {
  constexpr Index narrow = 64, least = Index{1} << 21;
  if (min_of(g.m, min_of(g.n, g.k)) < narrow || work < least || !blis_may(g)) return false;
  if (blas_is_serial() && host_threads() > 1) return true;
  return std::is_same_v<T, double> && g.m >= (host_threads() > 1 ? 128 : 384);
}

/// The fixed rule, with which bits depend on shapes, threads and libraries alone.
template <class T> ProductWay fixed_way(const GemmShape& g, Index work) {
  if (use_dnnl(T{}, work)) return ProductWay::onednn;
  return use_blis<T>(g, work) ? ProductWay::blis : ProductWay::blas;
}
/// Returns whether this program can make a product of T so.
template <class T> bool has_way(ProductWay way, const GemmShape& g) {
  switch (way) {
    case ProductWay::fixed:
      return false;
    case ProductWay::blas:
      return true;
    case ProductWay::blas_pieces:
      return blas_is_for_each_thread();
    case ProductWay::blis:
      return blis_may(g);
    default:
      return use_dnnl(T{}, max_int64);
  }
}
/// Returns how a product of two matrices is made: as g.products says, if that can be.
template <class T> ProductWay product_way(const GemmShape& g, Index work) {
  if (g.products != nullptr) {
    constexpr int type = static_cast<int>(dtype_of<T>) - static_cast<int>(product_types[0]);
    const ProductWay way =
        g.products->way(type, g.m, g.n, g.k, many_products(g.batches, host_threads()));
    if (has_way<T>(way, g)) return way;
  }
  return fixed_way<T>(g, work);
}

template <class T> void gemm_host(const GemmShape& g, T beta, const T* a, const T* b, T* c) {
  const Index work = saturating_mul(g.m, saturating_mul(g.n, g.k));
  // BLAS has a product of a matrix and a vector of its own.
  GemmBatch<T> kernel{g, ProductWay::blas, {}, beta, a, b, c};
  if (g.m > 1 && g.n > 1) kernel.way = product_way<T>(g, work);
  switch (kernel.way) {
    case ProductWay::blas:
    case ProductWay::onednn:
      // Many threads at once may call oneDNN. A BLAS that they may not call has threads of its own
      // for each product, or one.
      if (g.batches < host_threads() ||
          (kernel.way == ProductWay::blas && !blas_is_for_each_thread()))
        return kernel.run(0, g.batches);
      break;
    default:
      kernel.pieces = gemm_pieces(g, host_threads());
  }
  const Index each = kernel.pieces.rows * kernel.pieces.columns;
  if (g.batches * each == 1) return kernel.run(0, 1);
  launch("tessera::gemm", g.batches * each, each > 1 ? 1 : max_of(1, 500000 / work), kernel);
}

template <class T> void gemm_blas(const GemmShape& g, T beta, const T* a, const T* b, T* c) {
  const bool narrow = max_of(g.lda, max_of(g.ldb, g.ldc)) <= blas_limit;
  // A column times a row waits for memory; libraries take up to twice as long.
  const bool outer = RealElement<T> && g.k == 1 && g.m > 1 && g.n > 1;
  if (g.k == 0 || !g.fits_blas() || (kernels_on_host && (outer || !narrow)))
    return gemm_tiles<T>(g, !(beta == T{0}), a, b, c);
  if constexpr (kernels_on_host) {
    if constexpr (std::is_same_v<T, double>)
      if (takes_strips(g)) return row_times_matrix(g, !(beta == T{0}), a, b, c);
    return gemm_host(g, beta, a, b, c);
  }
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<KernelSpace, Kokkos::Cuda>) return cublas_gemm(g, beta, a, b, c);
#endif
  if constexpr (!kernels_on_host) gemm_tiles<T>(g, beta != 0, a, b, c);
}

/// Half types on the host: pieces of A and B are widened to float and multiplied; a piece of C is
/// rounded when all of k has been added, unless it is float itself.
template <class T, class R>
void gemm_short(const GemmShape& g, bool add, const T* a, const T* b, R* c) {
  constexpr bool wide = std::is_same_v<R, float>;
  constexpr Index most = 512, deepest = 1024;
  const Index rows = min_of(g.m, most), columns = min_of(g.n, most), depth = min_of(g.k, deepest);
  thread_local std::vector<float> memory;  // at most 5 MiB
  const auto words =
      static_cast<std::size_t>(rows * depth + depth * columns + (wide ? 0 : rows * columns));
  if (memory.size() < words) memory.resize(words);
  float* left = memory.data();
  float* right = left + rows * depth;
  float* const rounded = right + depth * columns;
  for (Index batch = 0; batch < g.batches; ++batch)
    for (Index j = 0; j < g.n; j += most)
      for (Index i = 0; i < g.m; i += most) {
        const Index m = min_of(most, g.m - i), n = min_of(most, g.n - j);
        R* to = c + g.c_offset(batch) + i * g.ldc + j;
        float* out = rounded;
        if constexpr (wide) {
          out = to;
          for (Index row = 0; !add && row < m; ++row) std::fill_n(to + row * g.ldc, n, 0.0f);
        } else if (add) {
          launch("tessera::gemm", m, 64, WidenRows<T>{to, g.ldc, 1, n, out});
        } else {
          std::fill_n(out, m * n, 0.0f);
        }
        for (Index l = 0; l < g.k; l += deepest) {
          const Index k = min_of(deepest, g.k - l);
          const T* x = a + g.a_offset(batch) + i * g.a_row + l * g.a_column;
          const T* y = b + g.b_offset(batch) + l * g.b_row + j * g.b_column;
          launch("tessera::gemm", m, 64, WidenRows<T>{x, g.a_row, g.a_column, k, left});
          launch("tessera::gemm", k, 64, WidenRows<T>{y, g.b_row, g.b_column, n, right});
          const Index pitch = wide ? g.ldc : n;
          const Gemm piece{.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = pitch};
          gemm_host(gemm_shape(piece, g.products), 1.0f, left, right, out);
        }
        if constexpr (!wide) launch("tessera::gemm", m, 64, RoundRows<T>{out, n, to, g.ldc});
      }
}

/// Half types to parts of sums in float.
template <class T>
void gemm_parts(const GemmShape& g, bool add, const void* a, const void* b, void* c) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<KernelSpace, Kokkos::Cuda>)
    if (g.k > 0 && g.fits_blas())
      return cublas_gemm(g, add ? 1.0f : 0.0f, x, y, static_cast<float*>(c));
#endif
  if constexpr (!kernels_on_host)
    gemm_tiles<T, float>(g, add, x, y, c);
  else if (g.m == 1 && g.n == 1 && g.k > 0)
    dot_host(g, add, x, y, static_cast<float*>(c));
  else
    gemm_short(g, add, x, y, static_cast<float*>(c));
}

/// For integers T is unsigned, which wraps.
template <class T>
void gemm_elements(const GemmShape& g, double beta, const void* a, const void* b, void* c,
                   bool wide) {
  if constexpr (sizeof(T) == 2 && !IntegerElement<T>)
    if (wide) return gemm_parts<T>(g, beta != 0, a, b, c);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(c);
  if constexpr (kernels_on_host)
    if (g.m == 1 && g.n == 1 && g.k > 0) return dot_host(g, beta != 0, x, y, z);
  if constexpr (IntegerElement<T>)
    gemm_tiles<T>(g, beta != 0, a, b, c);
  else if constexpr (sizeof(T) > 2)
    gemm_blas(g, beta != 0 ? T{1} : T{0}, x, y, z);
  else if constexpr (kernels_on_host)
    gemm_short(g, beta != 0, x, y, z);
#if defined(KOKKOS_ENABLE_CUDA)
  else if (g.k > 0 && g.fits_blas() && std::is_same_v<KernelSpace, Kokkos::Cuda>)
    cublas_gemm(g, static_cast<float>(beta), x, y, z);
#endif
  else
    gemm_tiles<T>(g, beta != 0, a, b, c);
}

/// With `wide`, half types make sums in float.
struct GemmKernels {
  void (*run)(const GemmShape& shape, double beta, const void* a, const void* b, void* c,
              bool wide);
  template <class T> static constexpr bool has = NumberElement<T>;
  template <class T> static constexpr GemmKernels of() { return {&gemm_elements<ModularType<T>>}; }
};

/// Computes C = A B + beta C for every product of the batch, in row-major order; beta is 0 or 1.
/// Products must not overlap in C. With `wide` A and B are of a half type and C is float.
/// `products` says which libraries make which products; without it, the fixed rule does.
/// Communication: none. Throws UsageError for bool.
inline void gemm(DType type, const Gemm& work, const void* a, const void* b, void* c,
                 double beta = 0, bool wide = false, const ProductTable* products = nullptr) {
  if (!is_number(type))
    throw UsageError("elements of " + std::string(name_of(type)) +
                     " have no products; cast them to a number first");
  const GemmShape g = gemm_shape(work, products);
  const GemmKernels& kernels = kernels_of<GemmKernels>(type);
  if (g.m > 0 && g.n > 0 && g.batches > 0) kernels.run(g, beta, a, b, c, wide);
}
}  // namespace tessera::detail
