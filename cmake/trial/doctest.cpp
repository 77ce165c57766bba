// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_DISABLE  // its declarations will do
#include <doctest/doctest.h>
int main() {}
