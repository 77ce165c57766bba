// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Operands that lie within halos: the same tensors, each in the middle of a larger block. What
/// lies around an operand is poison, so that reading it shows, and is looked at again, so that
/// writing it shows.
///
///     support::WithinHalos within(random);
///     const DynamicTensor x = within.put(y);                 // y's values, perhaps within a halo
///     plan_map(terms, descs, type, out, shape, process, within.options(mesh));
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/op/halo/halo.hpp>
#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"

namespace support {
using namespace tessera;

template <class T> T poison() {
  if constexpr (std::is_floating_point_v<T>)
    return std::numeric_limits<T>::quiet_NaN();
  else if constexpr (std::is_same_v<T, bool>)
    return true;
  else
    return static_cast<T>(111);
}

/// Some widths, of any boundary.
inline Halo some_halo(Random& random, const Extents& extents) {
  Halo halo;
  for (const Index n : extents) {
    HaloDim d{random.below(3), random.below(4),
              random.of<Boundary>({Boundary::none, Boundary::constant, Boundary::periodic,
                                   Boundary::reflected, Boundary::symmetric})};
    if (random.chance(40)) d.low = d.high = 0;
    if (random.chance(10)) d.high = n + 2;
    if (d.boundary == Boundary::reflected || d.boundary == Boundary::symmetric) {
      const Index most = max_of(0, n - (d.boundary == Boundary::reflected ? 1 : 0));
      d.low = min_of(d.low, most);
      d.high = min_of(d.high, most);
    }
    halo.push_back(d);
  }
  return halo;
}

class WithinHalos {
 public:
  WithinHalos() = default;  // puts nothing anywhere
  explicit WithinHalos(Random& random) : random_(&random) {}

  /// Returns x, or the same tensor within a halo.
  DynamicTensor put(const DynamicTensor& x) { return put(x, stored_.operands.push_back({})); }
  /// Returns the destination of an operator, or the same tensor within a halo.
  DynamicTensor put_destination(const DynamicTensor& x) { return put(x, stored_.destination); }

  PlanOptions options(const std::shared_ptr<MeshCore>& mesh) const {
    PlanOptions options = plan_options(*mesh);
    for (const DynamicHaloTensor& u : kept_)
      if (u.defined()) options.stored = &stored_;
    return options;
  }
  std::string text() const {
    std::string text;
    for (const DynamicHaloTensor& u : kept_) {
      text += " within";
      for (const HaloDim& d : u.halo())
        text += " " + std::to_string(d.low) + "_" + std::to_string(d.high) + " " +
                std::string(name_of(d.boundary));
    }
    return text;
  }
  /// Returns what was written around a tensor, or nothing. With `equal` what it owns is that.
  std::string around() const {
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const std::vector<std::byte> now = bytes(kept_[i]);
      const Box box = kept_[i].box(), own = kept_[i].own_box();
      const std::size_t unit = size_of(kept_[i].desc().type);
      const Extents extents = box.extents();
      for (Index e = 0; e < box.size(); ++e) {
        bool inside = true;
        Index rest = e;
        for (int d = box.rank() - 1; d >= 0; --d) {
          const Index v = box[d].lo + rest % extents[d];
          rest /= extents[d];
          inside = inside && v >= own[d].lo && v < own[d].hi;
        }
        const std::size_t at = static_cast<std::size_t>(e) * unit;
        if (!inside && std::memcmp(now.data() + at, before_[i].data() + at, unit) != 0)
          return "element " + std::to_string(e) + " around a tensor was written";
      }
    }
    return "";
  }

 private:
  DynamicTensor put(const DynamicTensor& x, Halo& halo) {
    if (random_ == nullptr || !x.sharding().partial.empty() || random_->chance(25)) return x;
    halo = some_halo(*random_, x.extents());
    const DynamicHaloTensor u = detail::with_type(x.type(), [&](auto zero) {
      using T = decltype(zero);
      return make_halo(x.core().mesh(), x.extents(), x.sharding(), halo, poison<T>());
    });
    u.assign(x);
    kept_.push_back(u);
    before_.push_back(bytes(u));
    return u;
  }
  static std::vector<std::byte> bytes(const DynamicHaloTensor& u) {
    std::vector<std::byte> all(static_cast<std::size_t>(u.box().size()) * size_of(u.desc().type));
    if (!u.core().dry()) {
      tessera::detail::fence();
      detail::copy_to_host(all.data(), u.core().data(), static_cast<Index>(all.size()));
    }
    return all;
  }

  Random* random_ = nullptr;
  detail::StoredWithin stored_;
  std::vector<DynamicHaloTensor> kept_;
  std::vector<std::vector<std::byte>> before_;
};

}  // namespace support
