// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A claim that the compiler cannot prove: that what varies over an axis, by its type, is equal.
///
///     // each process has computed the same from the same, by a way that the types do not follow
///     const auto same = equal_by_promise<model>(y);
///
/// Laws: where processes compare what they call (Check::communicating, TESSERA_CHECK), the bits are
/// compared, and other values are an error on every process; elsewhere, and where a compiled
/// function or async makes the values later, nothing is, and a broken promise gives results that
/// differ. The gradient is shared by the processes, each a part of it.
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/base/digest.hpp>
#include <tessera/manual/detail/over_axes.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/elements/arithmetic.hpp>
#include <tessera/op/to_host.hpp>
#include <tessera/tensor/host_copy.hpp>

namespace tessera {
namespace detail {

/// Returns a digest of the bits of x's block.
inline std::int64_t block_digest(const TensorCore& x) {
  const Index bytes = TensorCore::local_bytes(*x.mesh(), x.desc());
  std::vector<unsigned char> host(static_cast<std::size_t>(bytes));
  if (bytes > 0) copy_to_host(host.data(), x.read(), bytes);
  std::uint64_t digest = 0;
  for (const unsigned char byte : host) digest = mix(digest, byte);
  return static_cast<std::int64_t>(digest);
}
struct OneDigest {
  std::int64_t digest;
  static void make(const void* one, const Box& block, const Extents&, void* out) {
    if (!block.empty())
      copy_from_host(out, &static_cast<const OneDigest*>(one)->digest, sizeof(std::int64_t));
  }
};

/// Throws UsageError, on all processes, where blocks differ between coordinates of `axes`.
/// Communication: an all-gather of one number of each process. Collective over the mesh on which
/// the function is called.
inline void require_equal(const TensorCore& x, AxisSet axes, CallSite site) {
  const std::shared_ptr<MeshCore> whole = manual_whole_of(x.mesh(), site.where);
  const bool later = x.storage()->promised() || lister_of_thread() != nullptr;
  if (whole->dry() || whole->check() < Check::communicating || later) return;
  use_element<std::int64_t>();
  const TakenBy none(nullptr);  // numbers of the host
  AxisList all;
  for (int a = 0; a < whole->shape().rank(); ++a) all.push_back(a);
  const int processes = whole->shape().processes();
  const OneDigest own{block_digest(x)};
  const TensorCore digests =
      create(whole, {DType::i64, {processes}, Sharding{all}},
             {.context = &own, .keep = &keep_function<OneDigest>, .make = &OneDigest::make}, site);
  const auto host = to_host<std::int64_t>(DynamicTensor(digests));
  for (int p = 0; p < processes; ++p) {
    Coordinates at = whole->shape().coordinates(p);
    for (int a = 0; a < at.size(); ++a)
      if (axes.contains(a)) at[a] = 0;
    if (const int first = whole->shape().process(at); host(p) != host(first))
      throw UsageError(std::string(site.label) + ": process " + std::to_string(p) +
                           " has other values than process " + std::to_string(first) +
                           ", and the call promises that they are equal; give values that are, or "
                           "reduce or gather them",
                       site.where);
  }
}
}  // namespace detail

/// Returns x, which varies over the axes X..., as a value that is equal over them. Communication:
/// none; where processes compare what they call, an all-gather of one number of each. Collective
/// over the mesh. Throws UsageError, on all processes, where it is compared and differs.
template <class... X, TypedTensor A>
auto equal_by_promise(const A& x, Where where = Where::here()) {
  using Checked = detail::OverAxes<A, detail::OverAxis::varies, X...>;
  if constexpr (Checked::said()) {
    const detail::CallSite site = detail::named_call("equal_by_promise", where);
    using Y = typename Checked::template Result<(Checked::varies - Checked::axes).bits,
                                                Checked::unfinished.bits, detail::OwnSharding<A>>;
    const TensorCore given = detail::moved_to(x.core(), Y::sharding(), site);
    detail::require_equal(given, Checked::axes, site);
    const auto back =
        [parts = detail::manual_whole_of(given.mesh(), where)->shape().group_size(Checked::axes)](
            const std::vector<TensorCore>& g) {
          if constexpr (RealElement<typename A::value_type> ||
                        ComplexElement<typename A::value_type>)
            return std::vector<TensorCore>{(Y(g[0]) / static_cast<float>(parts)).core()};
          else
            return std::vector<TensorCore>{TensorCore()};
        };
    constexpr AxisSet still = (Checked::varies | Checked::unfinished) - Checked::axes;
    return Y(detail::beside_tapes(given, back, site, [&] {
      return detail::seen_on(given, given.mesh(), given.desc(), still, site);
    }));
  } else {
    return detail::Unknown<A>();
  }
}

}  // namespace tessera
