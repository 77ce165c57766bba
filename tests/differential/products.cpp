// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Products and what slides windows, by the names of cases.txt.
#include "case.hpp"

namespace differential {
namespace {

Results einsum_of(const Run& r) {
  const Terms terms = parse(r.equation());
  Shardings operands;
  for (const DynamicTensor& x : r.in) operands.push_back(x.sharding());
  const Sharding out = r.out_open(Reduction::sum, [&](const Sharding& s) {
    return detail::check_einsum(terms, operands, s).ok();
  });
  switch (r.in.size()) {
    case 1:
      return {einsum(r.equation(), {r.in[0]}, out)};
    case 2:
      return {einsum(r.equation(), r.in[0], r.in[1], out)};
    case 3:
      return {einsum(r.equation(), {r.in[0], r.in[1], r.in[2]}, out)};
    default:
      return {einsum(r.equation(), {r.in[0], r.in[1], r.in[2], r.in[3]}, out)};
  }
}

Results convolve_of(const Run& r) {
  using List = Convolution::PerDimension;
  Convolution settings;
  settings.stride = r.c.list<List>("stride");
  settings.low = r.c.list<List>("low");
  settings.high = r.c.list<List>("high");
  settings.base_dilation = r.c.list<List>("base");
  settings.window_dilation = r.c.list<List>("window");
  settings.feature_groups = r.c.number_of("groups", 1);
  settings.portable = r.random.chance(20);
  return {convolve(r.equation(), r.in[0], r.in[1], settings, r.out())};
}

Results reduce_window_of(const Run& r) {
  const WindowSettings settings{.size = r.c.list("size"),
                                .stride = r.c.list("stride"),
                                .low = r.c.list("low"),
                                .high = r.c.list("high"),
                                .window_dilation = r.c.list("dilation")};
  const std::string& kind = r.c.text("kind");
  if (kind == "sum") return {reduce_window<Sum>(r.in[0], settings, r.out())};
  if (kind == "mean") return {reduce_window<Mean>(r.in[0], settings, r.out())};
  if (kind == "max") return {reduce_window<Max>(r.in[0], settings, r.out())};
  return {reduce_window<Min>(r.in[0], settings, r.out())};
}

}  // namespace

void add_products(Table& table) {
  table.add("einsum", einsum_of);
  table.add("convolve", convolve_of);
  table.add("reduce_window", reduce_window_of);
}

}  // namespace differential
