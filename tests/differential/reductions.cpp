// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reductions, running ones, statistics, softmax and norms, by the names of cases.txt.
#include "case.hpp"

namespace differential {
namespace {

template <class Kind> Results reduced(const Run& r) {
  const Terms terms = parse(r.equation());
  constexpr bool mean = std::is_same_v<Kind, Mean>;
  const Sharding out = r.out_open(Kind::reduction, [&](const Sharding& s) {
    return detail::check_reduce(terms, {r.in[0].sharding()}, s, Kind::reduction, mean).ok();
  });
  return {reduce<Kind>(r.equation(), r.in[0], out)};
}
Results reduce_of(const Run& r) {
  const std::string& kind = r.c.text("kind");
  if (kind == "sum") return reduced<Sum>(r);
  if (kind == "product") return reduced<Product>(r);
  if (kind == "mean") return reduced<Mean>(r);
  if (kind == "max") return reduced<Max>(r);
  if (kind == "min") return reduced<Min>(r);
  if (kind == "any") return reduced<Any>(r);
  return reduced<All>(r);
}

Results arg_of(const Run& r) {
  if (r.c.text("kind") == "max") return {argmax(r.equation(), r.in[0], r.out())};
  return {argmin(r.equation(), r.in[0], r.out())};
}

template <class Kind> Results running(const Run& r) {
  const ScanOptions options{.reverse = r.c.number_of("reverse") != 0,
                            .exclusive = r.c.number_of("exclusive") != 0};
  return {cumulative<Kind>(r.equation(), r.along(), r.in[0], options, r.out())};
}
Results cumulative_of(const Run& r) {
  const std::string& kind = r.c.text("kind");
  if (kind == "sum") return running<Sum>(r);
  if (kind == "product") return running<Product>(r);
  if (kind == "max") return running<Max>(r);
  if (kind == "min") return running<Min>(r);
  if (kind == "any") return running<Any>(r);
  if (kind == "logsumexp") return running<LogSumExp>(r);
  return running<All>(r);
}

template <class T> Results statistic(const Run& r) {
  const std::string& kind = r.c.text("kind");
  const std::string_view eq = r.equation();
  const Sharding out = r.out();
  const Index ddof = r.c.number_of("ddof");
  if (kind == "norm1") return {norm<1, T>(eq, r.in[0], out)};
  if (kind == "norm2") return {norm<2, T>(eq, r.in[0], out)};
  if (kind == "norminf") return {norm<infinite_norm, T>(eq, r.in[0], out)};
  if (kind == "variance") return {variance<T>(eq, r.in[0], ddof, out)};
  if (kind == "mean_and_variance") {
    const auto [mean, spread] = mean_and_variance<T>(eq, r.in[0], ddof, out);
    return {mean, spread};
  }
  if constexpr (RealElement<T>)
    if (kind == "logsumexp") return {logsumexp<T>(eq, r.in[0], out)};
  return {standard_deviation<T>(eq, r.in[0], ddof, out)};
}
template <class T> Results softmax_of(const Run& r) {
  if (r.c.text("kind") == "softmax") return {softmax<T>(r.equation(), r.along(), r.in[0])};
  return {log_softmax<T>(r.equation(), r.along(), r.in[0])};
}

template <class T> Results norm_of(const Run& r) {
  const double epsilon = r.c.real("epsilon", 0);
  if (r.c.text("kind") == "rms_norm") return {rms_norm<T>(r.in[0], r.in[1], epsilon)};
  return {layer_norm<T>(r.in[0], r.in[1], r.in[2], epsilon)};
}

template <class... T> void add_rows(Table& table) {
  (table.add("statistics", dtype_of<T>, &statistic<T>), ...);
  (table.add("softmax", dtype_of<T>, &softmax_of<T>), ...);
  (table.add("norms", dtype_of<T>, &norm_of<T>), ...);
}

}  // namespace

void add_reductions(Table& table) {
  table.add("reduce", reduce_of);
  table.add("arg", arg_of);
  table.add("cumulative", cumulative_of);
  add_rows<half, float, double>(table);
  table.add("norms", DType::bf16, &norm_of<bfloat16>);
  table.add("statistics", DType::c64, &statistic<complex<float>>);
}

}  // namespace differential
