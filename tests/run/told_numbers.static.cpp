// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A compiler that cannot clear padding compares functions of one number by their bytes, and no byte
// that is padding.
#include <tessera/run/told_numbers.hpp>

namespace {
using namespace tessera;

struct Nothing {};
struct Wraps {
  Nothing function;
};
struct Factor {
  double factor;
};
struct Flag {
  bool set;
};
struct Two {
  Nothing function;
  float factor;
};

static_assert(detail::is_one_number<Factor> && detail::is_one_number<Flag>);
static_assert(!detail::is_one_number<Wraps> && !detail::is_one_number<Two>);
static_assert(!detail::has_bytes<Nothing> && detail::has_bytes<Factor>);
}  // namespace
