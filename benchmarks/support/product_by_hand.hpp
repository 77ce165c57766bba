// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Matrix products as one writes them by hand with MPI and BLAS: row and column communicators,
/// buffers made once, blocking collectives, one GEMM, packing loops where a collective wants
/// another order. It shares nothing with Tessera.
///
///     ProductByHand<float> product(Split::blocks, 2, 1, 2048, 2048, 2048);
///     product.run(a, b);   product.result()
#include <cblas.h>
#include <mpi.h>

#include <cstring>
#include <type_traits>
#include <vector>

namespace tessera_bench {

/// How A (m x k), B (k x n) and C (m x n) lie on the processes.
enum class Split {
  blocks,         ///< all three in blocks of a grid
  left_rows,      ///< A and C by rows, B whole on each process
  opposite,       ///< A and C by rows, B by columns
  sum_scattered,  ///< A by columns, B and C by rows
  sum_reduced     ///< A by columns, B by rows, C whole on each process
};

template <class T> class ProductByHand {
 public:
  /// On a grid of `down` x `across` processes; even sizes only. For all but Split::blocks `across`
  /// is 1.
  ProductByHand(Split split, int down, int across, long m, long n, long k)
      : split_(split), down_(down), across_(across), m_(m), n_(n), k_(k) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / across, rank, &row_);
    MPI_Comm_split(MPI_COMM_WORLD, rank % across, rank, &column_);
    const bool sums = split == Split::sum_scattered || split == Split::sum_reduced;
    rows_ = sums ? m : m / down;
    columns_ = n / across;
    depth_ = sums ? k / down : k;
    if (across > 1) a_.resize(size(rows_ * k)), packed_.resize(size(rows_ * k));
    if (down > 1 && (split == Split::blocks || split == Split::opposite))
      b_.resize(size(k * columns_));
    if (split == Split::opposite) packed_.resize(size(k * n));
    c_.resize(size(rows_ * columns_));
    if (split == Split::sum_scattered) scattered_.resize(size(m / down * n));
  }
  ProductByHand(const ProductByHand&) = delete;
  ProductByHand& operator=(const ProductByHand&) = delete;
  ~ProductByHand() {
    MPI_Comm_free(&row_);
    MPI_Comm_free(&column_);
  }

  void run(const T* a, const T* b) {
    if (across_ > 1) a = gathered_columns(a, rows_, k_ / across_, across_, row_, a_);
    if (split_ == Split::blocks && down_ > 1) {  // rows come in order
      MPI_Allgather(b, int(k_ / down_ * columns_), type(), b_.data(), int(k_ / down_ * columns_),
                    type(), column_);
      b = b_.data();
    }
    if (split_ == Split::opposite) b = gathered_columns(b, k_, n_ / down_, down_, column_, b_);
    multiply(rows_, columns_, depth_, a, b, c_.data());
    if (split_ == Split::sum_scattered)
      MPI_Reduce_scatter_block(c_.data(), scattered_.data(), int(scattered_.size()), type(),
                               MPI_SUM, column_);
    if (split_ == Split::sum_reduced)
      MPI_Allreduce(MPI_IN_PLACE, c_.data(), int(c_.size()), type(), MPI_SUM, column_);
  }
  const T* result() const { return split_ == Split::sum_scattered ? scattered_.data() : c_.data(); }
  /// The local product alone: rows x columns x depth.
  long rows() const { return rows_; }
  long columns() const { return columns_; }
  long depth() const { return depth_; }

 private:
  static std::size_t size(long n) { return static_cast<std::size_t>(n); }
  static MPI_Datatype type() { return std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE; }

  /// Columns come behind each other; they are interleaved.
  const T* gathered_columns(const T* part, long rows, long width, int parts, MPI_Comm group,
                            std::vector<T>& whole) {
    MPI_Allgather(part, int(rows * width), type(), packed_.data(), int(rows * width), type(),
                  group);
    for (int p = 0; p < parts; ++p)
      for (long i = 0; i < rows; ++i)
        std::memcpy(&whole[size((i * parts + p) * width)], &packed_[size((p * rows + i) * width)],
                    size(width) * sizeof(T));
    return whole.data();
  }
  static void multiply(long m, long n, long k, const T* a, const T* b, T* c) {
    if constexpr (std::is_same_v<T, float>)
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, int(m), int(n), int(k), 1.0F, a,
                  int(k), b, int(n), 0.0F, c, int(n));
    else
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, int(m), int(n), int(k), 1.0, a, int(k),
                  b, int(n), 0.0, c, int(n));
  }

  Split split_;
  int down_, across_;
  long m_, n_, k_, rows_, columns_, depth_;
  MPI_Comm row_ = MPI_COMM_NULL, column_ = MPI_COMM_NULL;
  std::vector<T> a_, b_, packed_, c_, scattered_;
};

}  // namespace tessera_bench
