// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oneapi/dnnl/dnnl.h>
int main() { return dnnl_version() == nullptr ? 1 : 0; }
