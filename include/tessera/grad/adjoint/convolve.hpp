// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of a convolution, of its gradient by the input, and of that by the kernel: each is
/// one of the other two, since all three are one trilinear form of input, kernel and result.
///
///     // y = convolve(x, k): dx is the gradient by the input of (dy, k), dk that by the kernel of (x, dy)
///
/// Laws: as those of plan/op/window/convolve.hpp.
#include <array>

#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/plan/op/window/convolve.hpp>

namespace tessera::detail {

inline void adjoint_of(const ops::Convolve& op, AdjointBuilder& build) {
  using Form = ops::ConvolveForm;
  // Input, kernel and result are 0, 1 and 2: which of them each form makes, and of which others.
  const auto roles = [](Form form) -> std::array<int, 3> {
    if (form == Form::by_input) return {0, 2, 1};
    if (form == Form::by_kernel) return {1, 0, 2};
    return {2, 0, 1};
  };
  const std::array<int, 3> own = roles(op.form);
  std::array<AdjointValue, 3> of_role;
  of_role[static_cast<std::size_t>(own[0])] = build.cotangent();
  for (int i = 0; i < 2; ++i)
    of_role[static_cast<std::size_t>(own[static_cast<std::size_t>(i) + 1])] =
        build.finish(build.operand(i));
  for (int i = 0; i < 2; ++i) {
    if (!build.wants(i)) continue;
    const int role = own[static_cast<std::size_t>(i) + 1];
    const Form form = role == 0 ? Form::by_input : role == 1 ? Form::by_kernel : Form::forward;
    const std::array<int, 3> turned = roles(form);
    const TensorDesc to = build.gradient_of(i);
    ops::Convolve back = op;
    back.form = form;
    back.extents = form == Form::forward ? Extents{} : to.extents;
    back.out = to.sharding;
    build.set(i, build.add_open(i, back,
                                {of_role[static_cast<std::size_t>(turned[1])],
                                 of_role[static_cast<std::size_t>(turned[2])]}));
  }
}

inline const bool convolve_has_adjoint = have_adjoints<ops::Convolve>();

}  // namespace tessera::detail
