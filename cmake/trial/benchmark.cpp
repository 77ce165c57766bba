// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <benchmark/benchmark.h>
int main(int argc, char** argv) { benchmark::Initialize(&argc, argv); }
