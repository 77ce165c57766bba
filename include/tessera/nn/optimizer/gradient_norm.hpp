// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The norm of all gradients together, and which of them are no numbers: the factor by which an
/// update multiplies them.
///
///     const GradientCheck check(gradients, {.clip = 1.0, .scale = 1.0}, site);
///     check.factor();          // a scalar tensor: min(1, clip / norm) / scale, or NaN
///
/// Laws: all sums of squares that are open over the same axes are added before they are finished,
/// so that the norm takes one all-reduce of one number for each such set of axes: one where all
/// gradients are split alike. Sums are made in double. Source: Pascanu, Mikolov and Bengio, "On the
/// difficulty of training recurrent neural networks" (2013), Algorithm 1.
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/nn/optimizer/update.hpp>
#include <tessera/tensor/host_copy.hpp>

namespace tessera::detail {

struct GradientChecks {
  double clip = 0;     ///< the greatest norm; 0: any
  bool finite = true;  ///< whether gradients that are no numbers are found
  double scale = 1;    ///< of the loss, by which gradients are divided
};

/// From the sum of all squares to the factor of gradients.
struct FactorOfNorm {
  double clip, inverse;
  KOKKOS_FUNCTION double operator()(double squares) const {
    if (!(squares <= 1.7976931348623157e308)) return squares - squares;  // NaN
    const double norm = Kokkos::sqrt(squares) * inverse;
    return clip > 0 && norm > clip ? inverse * (clip / norm) : inverse;
  }
};

class GradientCheck {
 public:
  /// Communication: an all-reduce of one number for each set of axes that splits gradients, none
  /// where nothing is asked for. Collective over the mesh. Precondition: there is a gradient.
  GradientCheck(const std::vector<TensorCore>& gradients, const GradientChecks& asked,
                CallSite site) {
    if (asked.clip <= 0 && !asked.finite) {
      const TensorDesc scalar{DType::f64, {}, {}};
      factor_ = filled(gradients[0].mesh(), scalar, 1 / asked.scale, site);
      return;
    }
    std::vector<TensorCore> totals;  // one for each set of axes
    for (const TensorCore& g : gradients) {
      parts_.push_back(square_sum(g, site));
      const TensorCore& part = parts_.back();
      bool added = false;
      for (TensorCore& total : totals) {
        if (!(total.sharding() == part.sharding())) continue;
        total = map_scalars(fn::Add{}, site, total, part);
        added = true;
      }
      if (!added) totals.push_back(part);
    }
    const std::vector<TensorCore> finished = finish_scalars(totals, site);
    total_ = finished[0];
    for (std::size_t i = 1; i < finished.size(); ++i)
      total_ = map_scalars(fn::Add{}, site, total_, finished[i]);
    factor_ = map_scalars(FactorOfNorm{asked.clip, 1 / asked.scale}, site, total_);
  }

  /// Returns the factor of gradients: NaN where one of them is no number.
  const TensorCore& factor() const { return factor_; }
  /// Returns whether its values can be read: not on a dry mesh, nor before a compiled function ran.
  bool readable() const {
    return total_.defined() && !total_.dry() && !total_.storage()->promised();
  }
  /// Returns the norm of the gradients as they are, scale and all. Precondition: readable().
  /// Communication: none.
  double norm() const { return std::sqrt(read(total_)); }
  /// Returns the numbers of the gradients that are not finite. Collective over the mesh.
  /// Communication: scalars are finished, few calls for all of them.
  std::vector<int> not_finite(CallSite site) const {
    std::vector<int> numbers;
    const std::vector<TensorCore> finished = finish_scalars(parts_, site);
    for (std::size_t i = 0; i < finished.size(); ++i)
      if (!std::isfinite(read(finished[i]))) numbers.push_back(static_cast<int>(i));
    return numbers;
  }

 private:
  static double read(const TensorCore& scalar) {
    double value = 0;
    copy_to_host(&value, scalar.read(), sizeof(value));
    return value;
  }

  std::vector<TensorCore> parts_;  ///< of each gradient, unfinished
  TensorCore total_, factor_;
};

}  // namespace tessera::detail
