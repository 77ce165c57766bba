// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The umbrella header, and nothing done with it.
#include <tessera/tessera.hpp>
