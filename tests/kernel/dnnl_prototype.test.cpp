// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_windows
// The prototype that kernel/product/detail/blas.hpp declares in place of oneDNN's header is the
// header's.
#include <doctest/doctest.h>

#include <tessera/kernel/product/detail/blas.hpp>

#if defined(TESSERA_HAVE_DNNL)
#include <cstddef>
#include <type_traits>

#include <oneapi/dnnl/dnnl.h>

namespace {
template <class A, class B> constexpr bool same = false;
template <class A, class B, class... Arguments>
constexpr bool same<A (*)(Arguments...), B (*)(Arguments...)> =
    sizeof(A) == sizeof(B) && std::is_enum_v<B>;
static_assert(same<decltype(&tessera_dnnl_sgemm), decltype(&dnnl_sgemm)>);
static_assert(same<decltype(&tessera_dnnl_isa), decltype(&dnnl_get_effective_cpu_isa)>);
static_assert(dnnl_success == 0);
static_assert(offsetof(dnnl_version_t, major) == offsetof(TesseraDnnlVersion, major) &&
              offsetof(dnnl_version_t, minor) == offsetof(TesseraDnnlVersion, minor) &&
              offsetof(dnnl_version_t, patch) == offsetof(TesseraDnnlVersion, patch));
}  // namespace

TEST_CASE("both names are one function") {
  const bool one = reinterpret_cast<void (*)()>(&tessera_dnnl_sgemm) ==
                   reinterpret_cast<void (*)()>(&dnnl_sgemm);
  CHECK(one);
}
#endif
