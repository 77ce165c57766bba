// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A 3 x 3 convolution of an image (NCHW, padded by 1) that is split by rows, as one writes it by
/// hand with MPI and oneDNN: rows for the neighbours are packed and exchanged, the block is put
/// between them, and one primitive convolves it, in the layouts that the library asks for, made
/// once with all buffers. It shares nothing with Tessera.
///
///     HandwrittenConvolution hand(rank, processes, 4, 32, 256, 256, 32);   hand.run(x, k);   hand.result()
#include <mpi.h>

#include <cstring>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

namespace tessera_bench {

class HandwrittenConvolution {
 public:
  /// `h` rows in all, which the processes divide.
  HandwrittenConvolution(int rank, int processes, long n, long c, long h, long w, long k)
      : up_(rank > 0 ? rank - 1 : MPI_PROC_NULL),
        down_(rank + 1 < processes ? rank + 1 : MPI_PROC_NULL),
        n_(n),
        c_(c),
        rows_(h / processes),
        w_(w),
        above_(rank > 0 ? 1 : 0),
        below_(rank + 1 < processes ? 1 : 0),
        engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_) {
    using md = dnnl::memory::desc;
    using tag = dnnl::memory::format_tag;
    const auto f32 = dnnl::memory::data_type::f32;
    const dnnl::memory::dims x{n, c, rows_ + above_ + below_, w}, weights{k, c, 3, 3},
        y{n, k, rows_, w};
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        md(x, f32, tag::any), md(weights, f32, tag::any), md(y, f32, tag::any), {1, 1},
        {1 - above_, 1}, {1 - below_, 1});
    const dnnl::convolution_forward::primitive_desc best(desc, engine_);
    convolve_ = dnnl::convolution_forward(best);
    x_ = dnnl::memory(md(x, f32, tag::nchw), engine_);
    k_ = dnnl::memory(md(weights, f32, tag::oihw), engine_);
    y_ = dnnl::memory(md(y, f32, tag::nchw), engine_);
    inner_x_ = dnnl::memory(best.src_desc(), engine_);
    inner_k_ = dnnl::memory(best.weights_desc(), engine_);
    inner_y_ = dnnl::memory(best.dst_desc(), engine_);
    enter_x_ = dnnl::reorder(x_, inner_x_);
    enter_k_ = dnnl::reorder(k_, inner_k_);
    leave_y_ = dnnl::reorder(inner_y_, y_);
    for (std::vector<float>* edge : {&top_, &bottom_, &from_up_, &from_down_})
      edge->resize(static_cast<std::size_t>(n * c * w));
  }

  void run(const float* x, const float* k) {
    const long plane = rows_ * w_, padded = (rows_ + above_ + below_) * w_;
    for (long i = 0; i < n_ * c_; ++i) {
      std::memcpy(&top_[size(i * w_)], x + i * plane, size(w_) * sizeof(float));
      std::memcpy(&bottom_[size(i * w_)], x + i * plane + plane - w_, size(w_) * sizeof(float));
    }
    const int count = static_cast<int>(n_ * c_ * w_);
    MPI_Request requests[4];
    MPI_Irecv(from_up_.data(), count, MPI_FLOAT, up_, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(from_down_.data(), count, MPI_FLOAT, down_, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(top_.data(), count, MPI_FLOAT, up_, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(bottom_.data(), count, MPI_FLOAT, down_, 0, MPI_COMM_WORLD, &requests[3]);
    float* block = static_cast<float*>(x_.get_data_handle());
    for (long i = 0; i < n_ * c_; ++i)
      std::memcpy(block + i * padded + above_ * w_, x + i * plane, size(plane) * sizeof(float));
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (long i = 0; i < n_ * c_; ++i) {
      if (above_ > 0)
        std::memcpy(block + i * padded, &from_up_[size(i * w_)], size(w_) * sizeof(float));
      if (below_ > 0)
        std::memcpy(block + i * padded + padded - w_, &from_down_[size(i * w_)],
                    size(w_) * sizeof(float));
    }
    k_.set_data_handle(const_cast<float*>(k));
    enter_x_.execute(stream_, x_, inner_x_);
    enter_k_.execute(stream_, k_, inner_k_);
    convolve_.execute(
        stream_,
        {{DNNL_ARG_SRC, inner_x_}, {DNNL_ARG_WEIGHTS, inner_k_}, {DNNL_ARG_DST, inner_y_}});
    leave_y_.execute(stream_, inner_y_, y_);
    stream_.wait();
  }
  const float* result() const { return static_cast<const float*>(y_.get_data_handle()); }

 private:
  static std::size_t size(long n) { return static_cast<std::size_t>(n); }

  int up_, down_;
  long n_, c_, rows_, w_, above_, below_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::convolution_forward convolve_;
  dnnl::memory x_, k_, y_, inner_x_, inner_k_, inner_y_;
  dnnl::reorder enter_x_, enter_k_, leave_y_;
  std::vector<float> top_, bottom_, from_up_, from_down_;
};

}  // namespace tessera_bench
