// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Adafactor: a second moment that is kept as the means of its rows and of its columns.
///
///     Optimizer optimizer(Adafactor{}, weights);       // as GShard trains (section A.2)
///
/// Laws: means and norms are those of the whole weight on every mesh; of a weight of n x m elements
/// the state has n + m.
#include <cmath>
#include <utility>
#include <vector>

#include <tessera/nn/optimizer/norm.hpp>
#include <tessera/nn/optimizer/schedule.hpp>
#include <tessera/nn/optimizer/update.hpp>

namespace tessera {

namespace detail {
template <class C> struct Unscaled {
  template <class G> KOKKOS_FUNCTION C operator()(G g, double factor) const {
    return static_cast<C>(factor) * static_cast<C>(g);
  }
};
struct SquareAndMore {
  double epsilon;
  template <class C> KOKKOS_FUNCTION C operator()(C g) const {
    return g * g + static_cast<C>(epsilon);
  }
};
/// The moving mean; the old one where the factor is no number.
struct MovingMean {
  double beta;
  template <class C> KOKKOS_FUNCTION C operator()(C old, C now, double factor) const {
    const C made = static_cast<C>(beta) * old + static_cast<C>(1 - beta) * now;
    return factor == factor ? made : old;
  }
};
struct OverRoot {
  template <class C> KOKKOS_FUNCTION C operator()(C g, C square) const {
    return g / Kokkos::sqrt(square);
  }
  /// From the means of rows, of columns, and of the means of rows.
  template <class C> KOKKOS_FUNCTION C operator()(C g, C row, C column, C all) const {
    return g / (Kokkos::sqrt(row / all) * Kokkos::sqrt(column));
  }
};
/// The factor of an update, from the update and the weight.
struct ClippedRate {
  double rate, elements, clip, least, relative;
  KOKKOS_FUNCTION double operator()(Squares update, Squares weight, double factor) const {
    if (!(factor == factor)) return factor;
    const double by = 1 / Kokkos::sqrt(elements), rms = update.norm(by), size = weight.norm(by);
    const double scale = relative != 0 ? (size > least ? size : least) : 1.0;
    const double over = clip > 0 && rms > clip ? rms / clip : 1.0;
    return rate * scale / over;
  }
};
struct Minus {
  template <class C> KOKKOS_FUNCTION Several<C> operator()(C w, C step) const {
    return {w - step, {}};
  }
};
}  // namespace detail

/// With v the moving mean of g^2 + epsilon1, which of a weight of two dimensions and more is (row
/// means x column means) / mean of row means over the last two: u = g / sqrt(v), w -= rate
/// max(epsilon2, RMS(w)) u / max(1, RMS(u) / clip); beta2 = min(most_beta2, 1 - t^-power), beta1 =
/// 0. Without `relative` the rate is not multiplied by the weight's RMS. The defaults are GShard's
/// (section A.2). Source: Shazeer and Stern, "Adafactor" (2018), Algorithms 4 and 5, section 7.
struct Adafactor {
  Schedule rate = InverseSquareRoot{};
  double power = 0.8;
  double most_beta2 = 0.99;
  double clip = 1.0;
  double epsilon1 = 1e-30, epsilon2 = 1e-3;
  bool relative = true;

  static constexpr bool flat = false;  // rows and columns are dimensions
  static constexpr bool trusts = false;
  std::vector<TensorDesc> auxiliary(const TensorDesc& share) const {
    if (share.rank() < 2) return {share};
    return {without(share, share.rank() - 1), without(share, share.rank() - 2)};
  }
  detail::Updated update(const detail::Share& share, Index step) const {
    return share.weight.type() == DType::f64 ? update_in<double>(share, step)
                                             : update_in<float>(share, step);
  }

 private:
  static TensorDesc without(const TensorDesc& x, int dim) {
    TensorDesc made{x.type, {}, {}};
    for (int d = 0; d < x.rank(); ++d) {
      if (d == dim) continue;
      made.extents.push_back(x.extents[d]);
      made.sharding.dims.push_back(x.sharding[d]);
    }
    return made;
  }
  static Term without(const Term& letters, int dim) {
    Term made;
    for (int d = 0; d < letters.size(); ++d)
      if (d != dim) made.push_back(letters[d]);
    return made;
  }
  /// Returns x's means along one of its dimensions.
  static TensorCore means(const TensorCore& x, int dim, detail::CallSite site) {
    const Term all = detail::letters_of(x.desc());
    const ops::Reduce mean{{{all}, without(all, dim)},     Reduction::sum, true, false, x.type(),
                           without(x.desc(), dim).sharding};
    return detail::run({mean, {&x}, site});
  }

  template <class C> detail::Updated update_in(const detail::Share& share, Index step) const {
    using detail::map_letters;
    const detail::CallSite site = share.site;
    const Sharding& own = share.weight.sharding();
    const int rank = share.weight.rank();
    const Term all = detail::letters_of(share.weight.desc());
    const double beta = std::min(most_beta2, 1 - std::pow(static_cast<double>(step), -power));
    const auto moved = [&](const TensorCore& old, const TensorCore& now) {
      const Term letters = detail::letters_of(old.desc());
      return map_letters<C, C, double>({{letters, letters, {}}, letters}, detail::MovingMean{beta},
                                       {&old, &now, &share.factor}, old.sharding(), site);
    };
    TensorCore g = detail::with_real_type(share.gradient.type(), [&](auto zero) {
      return map_letters<decltype(zero), double>({{all, {}}, all}, detail::Unscaled<C>{},
                                                 {&share.gradient, &share.factor}, own, site);
    });
    const TensorCore square =
        map_letters<C>({{all}, all}, detail::SquareAndMore{epsilon1}, {&g}, own, site);
    detail::Updated updated;
    if (rank < 2) {
      updated.auxiliary = {moved(share.auxiliary[0], square)};
      g = map_letters<C, C>({{all, all}, all}, detail::OverRoot{}, {&g, &updated.auxiliary[0]}, own,
                            site);
    } else {
      const TensorCore rows = moved(share.auxiliary[0], means(square, rank - 1, site));
      const TensorCore columns = moved(share.auxiliary[1], means(square, rank - 2, site));
      const TensorCore mean = means(rows, rank - 2, site);
      const Term of_rows = without(all, rank - 1);
      g = map_letters<C, C, C, C>(
          {{all, of_rows, without(all, rank - 2), without(of_rows, rank - 2)}, all},
          detail::OverRoot{}, {&g, &rows, &columns, &mean}, own, site);
      updated.auxiliary = {rows, columns};
    }
    const TensorCore wide = detail::converted(share.weight, dtype_of<C>, site);
    std::vector<TensorCore> sums = detail::squares_of(g, site);
    for (TensorCore& sum : detail::squares_of(wide, site)) sums.push_back(std::move(sum));
    sums = detail::finish_scalars(sums, site);
    const auto elements = static_cast<double>(max_of(Index{1}, volume(share.weight.extents())));
    const detail::ClippedRate rates{rate(step), elements, clip, epsilon2, relative ? 1.0 : 0.0};
    const TensorCore factor = detail::map_squares(rates, sums, share.factor, site);
    detail::Share last{wide, g, {}, factor, {}};
    last.site = site;
    const TensorCore made = detail::update_elements<0>(last, detail::Minus{}).weight;
    if (share.master) updated.master = made;
    updated.weight =
        detail::converted(made, share.master ? share.narrow : share.weight.type(), site);
    return updated;
  }
};

}  // namespace tessera
