// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cblas.h>
int main() { return cblas_sdot(0, nullptr, 1, nullptr, 1) == 0 ? 0 : 1; }
