// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: within
// Every small convolution in one dimension over 1 to 5 processes against plain loops: up to 9
// elements and 4 taps, strides and dilations to 3, padding from -1 to 3. Both block and window are
// ragged or empty on some process more often than not.
#include <doctest/doctest.h>

#include "kernel/window_cases.hpp"
#include "op/window_cases.hpp"
#include "support/every_mesh.hpp"

using namespace tessera;
using namespace support;

namespace {

/// Convolves rows, which are split, by taps, which all have; the bits do not depend on the
/// partition.
std::string wrong_convolution(const std::shared_ptr<MeshCore>& mesh, Index n, const Window& w) {
  static const Terms terms = parse("bxi,xio->bxo");
  const Sharding rows{{}, {0}, {}};
  const TensorDesc x{DType::f64, {1, n, 1}, rows},
      k{DType::f64, {w.size, 1, 1}, Sharding::replicated(3)};
  const Convolution c{.stride = {w.stride},
                      .low = {w.low},
                      .high = {w.high},
                      .base_dilation = {w.base_dilation},
                      .window_dilation = {w.window_dilation},
                      .portable = true};
  const Whole<double> left = whole_input<double>(x, mesh->shape(), 1),
                      right = whole_input<double>(k, mesh->shape(), 2);
  const detail::ConvolveWindows shape{{w}};
  Whole<double> expected(
      detail::convolved_extents(shape, detail::parts_of(terms), x.extents, k.extents));
  for_each_product(terms, shape, x.extents, k.extents, [&](Index in, Index weight, Index result) {
    expected[result] += left[in] * right[weight];
  });
  const DynamicTensor y = convolve("bxi,xio->bxo", make_input<double>(mesh, x, 1),
                                   make_input<double>(mesh, k, 2), c, rows);
  std::vector<double> wanted;
  for (Index i = y.box()[1].lo; i < y.box()[1].hi; ++i) wanted.push_back(expected[i]);
  const std::string text = difference(host_block<double>(y), wanted, 1e-12);
  return text.empty() ? ""
                      : std::to_string(n) + " rows on " +
                            std::to_string(mesh->shape().processes()) + " processes: " + text;
}

}  // namespace

TEST_CASE("every small convolution in one dimension equals plain loops") {
  // Each is on two of 1 to 5 processes.
  std::mutex mutex;
  std::vector<std::string> wrong;
  long cases = 0;
  for (int parts = 1; parts <= 5; ++parts)
    run_loopback(parts, [&](std::shared_ptr<Transport> world) {
      MeshOptions options;
      options.check = Check::normal;
      std::shared_ptr<MeshCore> mesh;  // one for each extent: plans are kept as long as their mesh
      Index last = -1;
      int number = 0;
      test::for_each_window(9, [&](Index n, const Window& w) {
        if (++number % share != 0 || (number + parts) % 5 > 1) return;
        if (detail::result_extent(n, w) < 1) return;  // refused: the window does not fit
        if (n != last) mesh = make_mesh_core(world, MeshShape{parts}, axis_names(1), options);
        last = n;
        const std::string text = wrong_convolution(mesh, n, w);
        const std::lock_guard lock(mutex);
        cases += mesh->process() == 0;
        if (!text.empty()) wrong.push_back(text);
      });
    });
  MESSAGE(cases << " cases");
  for (std::size_t i = 0; i < wrong.size() && i < 5; ++i) MESSAGE(wrong[i]);
  CHECK(wrong.empty());
  CHECK(cases > 32000 / share);
}
