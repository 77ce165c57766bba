// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A compiler that cannot clear padding compares functions without any by their bytes; pointers are
// no numbers.
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
  float factor, more;
};
struct Nested {
  double factor;
  Two two;
  int powers[2];
};
struct Padded {
  Nothing function;
  float factor;
};
struct alignas(8) Tail {
  float factor;
};
struct Refers {
  const float* factor;
};
[[maybe_unused]] auto one(float a) {
  return [a](float x) { return a * x; };
}
[[maybe_unused]] auto uneven(float a, double b) {
  return [a, b](float x) { return static_cast<double>(a * x) + b; };
}
[[maybe_unused]] auto referring(const float& a) {
  return [&a](float x) { return a * x; };
}

static_assert(detail::HasNoPadding<Factor> && detail::HasNoPadding<Flag>);
static_assert(!detail::HasNoPadding<Wraps> && !detail::HasNoPadding<Padded>);
static_assert(!detail::HasNoPadding<decltype(uneven(1, 1))>);
static_assert(!detail::HasNoPadding<Refers> && !detail::HasNoPadding<decltype(referring(1.0f))>);
#if !defined(__CUDACC__)
static_assert(detail::HasNoPadding<Two> && detail::HasNoPadding<Nested>);
static_assert(detail::HasNoPadding<decltype(one(1))>);
static_assert(!detail::HasNoPadding<Tail>);
static_assert(detail::has_bytes<Two> && detail::has_bytes<Nested>);
#endif
static_assert(!detail::has_bytes<Nothing> && detail::has_bytes<Factor>);
}  // namespace
