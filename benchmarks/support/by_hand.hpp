// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The 2D feed-forward layer as one writes it by hand with MPI and BLAS: row and column
/// communicators, buffers made once, blocking collectives, one GEMM for each product, packing loops
/// where a collective wants another order. It shares nothing with Tessera except the kernel of
/// gelu, so that the two compare communication and products.
///
///     HandwrittenLayer layer(2, 2, 2048, 512, 2048);   layer.run(x, w_in, w_out);   layer.result()
#include <cblas.h>
#include <mpi.h>

#include <cstring>
#include <vector>

#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map/map.hpp>

namespace tessera_bench {

class HandwrittenLayer {
 public:
  /// Even sizes only: `rows` x `embed` activations on a d x m grid of processes.
  HandwrittenLayer(int d, int m, long rows, long embed, long hidden)
      : d_(d), m_(m), rows_(rows / d), embed_(embed), hidden_(hidden / m) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / m, rank, &along_model_);
    MPI_Comm_split(MPI_COMM_WORLD, rank % m, rank, &along_data_);
    gathered_x_.resize(size(rows_ * embed_));
    x_.resize(size(rows_ * embed_));
    w_in_.resize(size(embed_ * hidden_));
    h_.resize(size(rows_ * hidden_));
    gathered_w_out_.resize(size(hidden_ * embed_));
    w_out_.resize(size(hidden_ * embed_));
    partial_.resize(size(rows_ * embed_));
    packed_.resize(size(rows_ * embed_));
    y_.resize(size(rows_ * embed_ / m_));
  }
  HandwrittenLayer(const HandwrittenLayer&) = delete;
  HandwrittenLayer& operator=(const HandwrittenLayer&) = delete;
  ~HandwrittenLayer() {
    MPI_Comm_free(&along_model_);
    MPI_Comm_free(&along_data_);
  }

  void run(const float* x, const float* w_in, const float* w_out) {
    const float* whole_x = x;
    if (m_ > 1) {  // columns of x lie behind each other; interleave them
      const long width = embed_ / m_;
      MPI_Allgather(x, int(rows_ * width), MPI_FLOAT, gathered_x_.data(), int(rows_ * width),
                    MPI_FLOAT, along_model_);
      for (int p = 0; p < m_; ++p)
        for (long i = 0; i < rows_; ++i)
          std::memcpy(&x_[size(i * embed_ + p * width)],
                      &gathered_x_[size((p * rows_ + i) * width)], size(width) * sizeof(float));
      whole_x = x_.data();
    }
    const float* whole_w_in = w_in;
    if (d_ > 1) {  // rows of w_in: in order as they come
      MPI_Allgather(w_in, int(embed_ / d_ * hidden_), MPI_FLOAT, w_in_.data(),
                    int(embed_ / d_ * hidden_), MPI_FLOAT, along_data_);
      whole_w_in = w_in_.data();
    }
    multiply(rows_, hidden_, embed_, whole_x, whole_w_in, h_.data());
    const tessera::detail::LocalMap all{
        .extents = {rows_ * hidden_}, .strides = {{1}}, .flat = true};
    tessera::detail::map<float>(tessera::fn::Gelu{}, all, h_.data(), h_.data());
    const float* whole_w_out = w_out;
    if (d_ > 1) {
      const long width = embed_ / d_;
      MPI_Allgather(w_out, int(hidden_ * width), MPI_FLOAT, gathered_w_out_.data(),
                    int(hidden_ * width), MPI_FLOAT, along_data_);
      for (int p = 0; p < d_; ++p)
        for (long i = 0; i < hidden_; ++i)
          std::memcpy(&w_out_[size(i * embed_ + p * width)],
                      &gathered_w_out_[size((p * hidden_ + i) * width)],
                      size(width) * sizeof(float));
      whole_w_out = w_out_.data();
    }
    if (m_ == 1) {
      multiply(rows_, embed_, hidden_, h_.data(), whole_w_out, y_.data());
      return;
    }
    multiply(rows_, embed_, hidden_, h_.data(), whole_w_out, partial_.data());
    const long width = embed_ / m_;
    for (int p = 0; p < m_; ++p)
      for (long i = 0; i < rows_; ++i)
        std::memcpy(&packed_[size((p * rows_ + i) * width)],
                    &partial_[size(i * embed_ + p * width)], size(width) * sizeof(float));
    MPI_Reduce_scatter_block(packed_.data(), y_.data(), int(rows_ * width), MPI_FLOAT, MPI_SUM,
                             along_model_);
  }
  const float* result() const { return y_.data(); }

 private:
  static std::size_t size(long n) { return static_cast<std::size_t>(n); }
  static void multiply(long m, long n, long k, const float* a, const float* b, float* c) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, int(m), int(n), int(k), 1.0F, a, int(k),
                b, int(n), 0.0F, c, int(n));
  }

  int d_, m_;
  long rows_, embed_, hidden_;
  MPI_Comm along_model_ = MPI_COMM_NULL, along_data_ = MPI_COMM_NULL;
  std::vector<float> gathered_x_, x_, w_in_, h_, gathered_w_out_, w_out_, partial_, packed_, y_;
};

}  // namespace tessera_bench
