// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Real cases on whatever space the kernels run on, checked against loops on the host: what a
/// device must get right. tests/CMakeLists.txt runs them on a device that is pretended
/// (support/late_space.hpp).
///
///     device_cases                  mpiexec -n 4 device_cases
#include "check.hpp"

int main(int argc, char** argv) {
  tessera::Environment env(argc, argv);
  const int processes = env.world()->size();
  const int rows = processes % 2 == 0 ? 2 : 1;
  const auto mesh = tessera::make_mesh<Grid>(env, rows, processes / rows);
  device_test::Cases cases(mesh);
  device_test::operators(cases);
  device_test::training(cases);
  return cases.finish("device") == 0 ? 0 : 1;
}
