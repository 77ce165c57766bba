// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The norm of all gradients together, and which of them are not finite: the factor by which an
/// update multiplies them.
///
///     const GradientCheck check(gradients, {.clip = 1.0, .scale = 1.0}, site);
///     check.factor(mesh, site);          // a scalar tensor: min(1, clip / norm) / scale, or NaN
///
/// Laws: all sums of squares that are open over the same axes are added before they are finished,
/// so that the norm takes one all-reduce of one number (of doubles two) for each such set of axes:
/// one where all gradients are split alike. Gradients may lie on several parts of a mesh: then the
/// parts' sums are added on the mesh. Sums are made in double, of doubles in two units, so
/// that no square overflows or vanishes. Source: Pascanu, Mikolov and Bengio, "On the difficulty of
/// training recurrent neural networks" (2013), Algorithm 1.
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/nn/optimizer/norm.hpp>
#include <tessera/op/between.hpp>
#include <tessera/tensor/host_copy.hpp>

namespace tessera::detail {

struct GradientChecks {
  double clip = 0;     ///< the greatest norm; 0: any
  bool finite = true;  ///< whether the factor is NaN where gradients are not finite
  double scale = 1;    ///< of the loss, by which gradients are divided
};

/// Sums of squares, each of its own kind.
enum class SquareKind { plain, large, small };  ///< as they are, or in the units of SquareInUnit

/// From sums of squares to the factor of gradients.
struct FactorOfNorm {
  double clip, inverse;
  bool finite;
  KOKKOS_FUNCTION double operator()(double plain) const { return (*this)(plain, 0.0, 0.0); }
  KOKKOS_FUNCTION double operator()(double plain, double large, double small) const {
    const Squares squares{plain, small, large};
    if (!squares.finite()) {
      const double infinite = plain + large + small;
      return finite ? infinite - infinite : inverse;  // NaN, or as no norm says more
    }
    const double scaled = squares.norm(inverse);
    if (clip <= 0 || !(scaled > clip)) return inverse;
    if (scaled <= Squares::most) return inverse * (clip / scaled);
    return clip * 0x1p-64 / squares.norm(0x1p-64);  // a norm that is no double, in smaller units
  }
};

class GradientCheck {
 public:
  /// Communication: an all-reduce of one number for each set of axes that splits gradients, none
  /// where nothing is asked for. Collective over the mesh. Precondition: there is a gradient.
  GradientCheck(const std::vector<TensorCore>& gradients, const GradientChecks& asked,
                CallSite site)
      : constant_(1 / asked.scale) {
    if (asked.clip <= 0 && !asked.finite) return;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const TensorCore& g = gradients[i];
      const auto add = [&](SquareKind kind, const TensorCore& sum) {
        parts_.push_back({static_cast<int>(i), kind, sum});
      };
      const std::vector<TensorCore> sums = squares_of(g, site);
      if (sums.size() == 1) {
        add(SquareKind::plain, sums[0]);
      } else {
        add(SquareKind::small, sums[0]);
        add(SquareKind::large, sums[1]);
      }
    }
    std::vector<Part> totals;  // one for each kind and set of axes
    for (const Part& part : parts_) {
      bool added = false;
      for (Part& total : totals) {
        if (total.kind != part.kind || !(total.sum.sharding() == part.sum.sharding()) ||
            total.sum.mesh() != part.sum.mesh())
          continue;
        total.sum = map_scalars(fn::Add{}, site, total.sum, part.sum);
        added = true;
      }
      if (!added) totals.push_back(part);
    }
    const std::vector<TensorCore> finished = finish_scalars(sums_of(totals), site);
    common_ = common_mesh(gradients);
    for (std::size_t i = 0; i < finished.size(); ++i) {
      TensorCore& sum = squares_[static_cast<std::size_t>(totals[i].kind)];
      const TensorCore one = scalar_on(common_, finished[i], site);
      sum = sum.defined() ? map_scalars(fn::Add{}, site, sum, one) : one;
    }
    const FactorOfNorm factor{asked.clip, 1 / asked.scale, asked.finite};
    if (!squares_[1].defined()) {
      factor_ = map_scalars(factor, site, squares_[0]);
    } else {
      if (!squares_[0].defined())
        squares_[0] = filled(squares_[1].mesh(), {DType::f64, {}, {}}, 0, site);
      factor_ = map_scalars(factor, site, squares_[0], squares_[1], squares_[2]);
    }
  }

  /// Returns the factor of gradients, on a mesh where there are some: NaN where one of them is not
  /// finite and that was asked for. Communication: to other parts of a mesh one number, once.
  const TensorCore& factor(const std::shared_ptr<MeshCore>& mesh, CallSite site) {
    for (const TensorCore& known : factors_)
      if (known.mesh() == mesh) return known;
    return factors_.emplace_back(factor_.defined()
                                     ? scalar_on(mesh, factor_, site)
                                     : filled(mesh, {DType::f64, {}, {}}, constant_, site));
  }
  /// Returns whether its values can be read: not on a dry mesh, nor before a compiled function ran.
  bool readable() const {
    return factor_.defined() && squares_[0].defined() && !factor_.dry() &&
           !factor_.storage()->promised();
  }
  /// Returns whether its values will be there once a function has run that is compiled or async.
  bool promised() const {
    return factor_.defined() && !factor_.dry() && factor_.storage()->promised() && !broken();
  }
  /// Returns whether that function failed.
  bool broken() const { return factor_.defined() && !factor_.dry() && factor_.storage()->broken(); }
  /// Returns the squares of the gradients as they are, scale and all. Precondition: readable().
  /// Communication: none.
  Squares squares() const {
    const auto sum = [&](int k) { return squares_[k].defined() ? read(squares_[k]) : 0.0; };
    return {sum(0), sum(2), sum(1)};
  }
  /// Returns the numbers of the gradients that are not finite. Collective over the mesh.
  /// Communication: scalars are finished, few calls for all of them.
  std::vector<int> not_finite(CallSite site) const {
    std::vector<int> numbers;
    const std::vector<TensorCore> finished = finish_scalars(sums_of(parts_), site);
    for (std::size_t i = 0; i < finished.size(); ++i)
      if (!std::isfinite(read(scalar_on(common_, finished[i], site))) &&
          (numbers.empty() || numbers.back() != parts_[i].gradient))
        numbers.push_back(parts_[i].gradient);
    return numbers;
  }

 private:
  static double read(const TensorCore& scalar) {
    double value = 0;
    copy_to_host(&value, scalar.read(), sizeof(value));
    return value;
  }

  /// A sum of a gradient's squares, unfinished.
  struct Part {
    int gradient;
    SquareKind kind;
    TensorCore sum;
  };
  static std::vector<TensorCore> sums_of(const std::vector<Part>& parts) {
    std::vector<TensorCore> sums;
    for (const Part& part : parts) sums.push_back(part.sum);
    return sums;
  }

  /// Returns the mesh of all gradients, or that of which their meshes are parts.
  static std::shared_ptr<MeshCore> common_mesh(const std::vector<TensorCore>& gradients) {
    for (const TensorCore& g : gradients)
      if (g.mesh() != gradients[0].mesh()) return whole_of(gradients[0].mesh());
    return gradients[0].mesh();
  }
  static TensorCore scalar_on(const std::shared_ptr<MeshCore>& mesh, const TensorCore& x,
                              CallSite site) {
    if (x.mesh() == mesh) return x;
    return reshard_between(x, Sharding::replicated(0), DynamicMesh(mesh), site);
  }

  double constant_;  ///< the factor where nothing is asked for
  std::shared_ptr<MeshCore> common_;
  std::vector<Part> parts_;
  TensorCore squares_[3];  ///< of each kind there is
  TensorCore factor_;
  std::vector<TensorCore> factors_;  ///< the same on each mesh
};

}  // namespace tessera::detail
