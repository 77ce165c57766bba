// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// ScaLAPACK's matrix product, where the build has found the library (TESSERA_HAVE_SCALAPACK). Its
/// matrices are in column-major order: for C = A B in row-major order it multiplies the transposes.
///
///     ScalapackProduct<float> product(2, 1, m, n, k, 64);   // square blocks, dealt out in turns
///     product.run(a, b, c);
///
/// Block 0: one block for each process, as Tessera has them.
#include <type_traits>

#if defined(TESSERA_HAVE_SCALAPACK)
extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridexit(int context);
void descinit_(int* desc, const int* m, const int* n, const int* mb, const int* nb,
               const int* first_row, const int* first_column, const int* context, const int* lld,
               int* info);
#define TESSERA_PGEMM(name, T)                                                                  \
  void name(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k, \
            const T* alpha, const T* a, const int* ia, const int* ja, const int* desc_a,        \
            const T* b, const int* ib, const int* jb, const int* desc_b, const T* beta, T* c,   \
            const int* ic, const int* jc, const int* desc_c)
TESSERA_PGEMM(psgemm_, float);
TESSERA_PGEMM(pdgemm_, double);
#undef TESSERA_PGEMM
}
#endif

namespace tessera_bench {

#if defined(TESSERA_HAVE_SCALAPACK)
inline constexpr bool have_scalapack = true;

template <class T> class ScalapackProduct {
 public:
  ScalapackProduct(int down, int across, long m, long n, long k, int block)
      : m_(int(m)), n_(int(n)), k_(int(k)) {
    Cblacs_get(0, 0, &context_);
    Cblacs_gridinit(&context_, "C", across, down);  // the transpose's grid; processes keep places
    describe(a_, k, m, across, down, block);
    describe(b_, n, k, across, down, block);
    describe(c_, n, m, across, down, block);
  }
  ScalapackProduct(const ScalapackProduct&) = delete;
  ScalapackProduct& operator=(const ScalapackProduct&) = delete;
  ~ScalapackProduct() { Cblacs_gridexit(context_); }

  void run(const T* a, const T* b, T* c) const {
    const T one{1}, zero{0};
    const int first = 1;
    const auto call = [&](auto* gemm) {
      gemm("N", "N", &n_, &m_, &k_, &one, b, &first, &first, b_, a, &first, &first, a_, &zero, c,
           &first, &first, c_);
    };
    if constexpr (std::is_same_v<T, float>)
      call(&psgemm_);
    else
      call(&pdgemm_);
  }

 private:
  void describe(int* desc, long rows, long columns, int down, int across, int block) const {
    const int all[2] = {int(rows), int(columns)}, lld = int(rows / down), zero = 0;
    const int blocks[2] = {block > 0 ? block : lld, block > 0 ? block : int(columns / across)};
    int info = 0;
    descinit_(desc, &all[0], &all[1], &blocks[0], &blocks[1], &zero, &zero, &context_, &lld, &info);
  }

  int m_, n_, k_, context_ = 0;
  int a_[9], b_[9], c_[9];
};
#else
inline constexpr bool have_scalapack = false;

template <class T> struct ScalapackProduct {
  ScalapackProduct(int, int, long, long, long, int) {}
  void run(const T*, const T*, T*) const {}
};
#endif

}  // namespace tessera_bench
