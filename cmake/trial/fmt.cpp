// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>
int main() { return fmt::format("{}", 7).size() == 1 ? 0 : 1; }
