// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Running sums, products, maxima, minima and log-sum-exps along one dimension, sharded or not.
///
///     auto c = cumsum<"bij", 'j'>(x);
///     auto d = cumsum<"bij", 'j'>(x, {.reverse = true, .exclusive = true});
///     auto l = cumulative<LogSumExp, "bij", 'j'>(x);
///
/// Laws: equals the running sum of the whole tensor, for every mesh and spec; element 0 of an
/// exclusive one is the reduction of no elements; a float sum of n elements over p parts errs by at
/// most (p + 2) eps times the sum of their magnitudes, n below 10^7. A running log-sum-exp is kept
/// in double; it is rounded once at each element, and at the end of a part, from which the next
/// part starts.
#include <limits>

#include <tessera/base/compiled.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/kernel/rows/scan.hpp>
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/elements/named_function.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/plan/op/rows/scan.hpp>
#if TESSERA_BODIES
#include <tessera/run/verb/verb_run.hpp>
#endif

namespace tessera {
/// Names a running log-sum-exp, NumPy's logaddexp.accumulate. Over whole dimensions it is
/// logsumexp<E>(x).
struct LogSumExp {};

namespace detail {
#if TESSERA_BODIES
inline const bool fold_runs = runs(kernel_of_verb<step::Fold>, [](const VerbRun& run) {
  run.extras.kernel.fold(run.extras.kernel.context, run.work<LocalScan>(), run.in(0), run.out());
});
inline const bool scan_runs = runs(kernel_of_verb<step::Scan>, [](const VerbRun& run) {
  const auto& work = run.work<LocalScan>();
  if (run.plan.reduction == Reduction::none)
    return run.extras.kernel.scan(run.extras.kernel.context, work, run.in(0), run.in(1), run.out());
  tessera::detail::scan(run.type(), run.plan.reduction, work, run.in(0), run.in(1), run.out(),
                        run.wide());
});
#endif

template <class F, class T>
inline constexpr bool is_join = std::is_invocable_r_v<T, const F&, const T&, const T&>;

/// Carries out a running join of elements T by a function, with totals of type Total.
template <class F, class T, class Total = T> struct ScanRunner {
  F f;
  Total identity;

  static void fold(const void* context, const LocalScan& work, const void* from, void* to) {
    const auto& run = *static_cast<const ScanRunner*>(context);
    tessera::detail::fold<T, Total>(run.f, run.identity, work, static_cast<const T*>(from),
                                    static_cast<T*>(to));
  }
  static void scan(const void* context, const LocalScan& work, const void* from,
                   const void* earlier, void* to) {
    const auto& run = *static_cast<const ScanRunner*>(context);
    tessera::detail::scan<T, Total>(run.f, run.identity, work, static_cast<const T*>(from),
                                    static_cast<const T*>(earlier), static_cast<T*>(to));
  }
  Extras extras() const {
    if constexpr (is_join<F, Total>)
      return {.kernel = {.context = this,
                         .fold = &fold,
                         .scan = &scan,
                         .keep = &keep_function<ScanRunner>,
                         .numbers = &tell_numbers<ScanRunner>}};
    else
      return {};
  }
  template <class Told> void numbers(Told& told) const {
    tell_numbers<F>(&f, told);
    if constexpr (Element<Total>) told.add(identity);
  }
};

/// How a running join of elements T is made, and what carries it out beside the elements' kernels.
template <class Kind, Equation Labels, char Along, class T> struct ScanBy {
  static consteval bool said() {
    static_assert(
        !is_mean<Kind>,
        "[tessera] there is no running mean; divide a running sum by the number of its elements");
    return true;
  }
  static_assert(said());
  static constexpr ops::Scan make(const TensorDescs& x) {
    return {same_terms(Labels.view()), Along, Kind::reduction, {}, KindType<Kind>::of(x[0].type)};
  }
};
template <Equation Labels, char Along, class T> struct ScanBy<LogSumExp, Labels, Along, T> {
  using function = FunctionResult<fn::LogAddExp, Elements, T, T>;
  static constexpr ops::Scan make(const TensorDescs& x) {
    return {same_terms(Labels.view()), Along, Reduction::none, {}, x[0].type};
  }
};
template <class Kind, Equation Labels, char Along, class Out, class A>
using TypedScan = Typed<ScanBy<Kind, Labels, Along, typename A::value_type>, Out, A>;

template <class Kind, class T> struct ScanExtras {
  static Extras make() { return {}; }
};
/// Totals are kept in double, and rounded where they are written.
template <RealElement T> struct ScanExtras<LogSumExp, T> {
  using Total = TotalType<T>;
  static constexpr fn::LogAddExp f{};
  static constexpr ScanRunner<fn::LogAddExp, T, Total> runner{
      f, -std::numeric_limits<Total>::infinity()};
  static Extras make() { return runner.extras(); }
};
}  // namespace detail

/// Returns, for each element of x, the join by Kind (Sum, Product, Max, Min, Any, All, LogSumExp)
/// of the elements up to it along dimension `Along`, with x's spec or `Out`. Labels are the letters
/// of x. cumsum, cumprod, cummax and cummin are those of Sum, Product, Max and Min. An operand
/// Unreduced by Kind stays so; the operand of a LogSumExp is finished and has floating-point
/// elements. Communication: one all-gather of an element for each row and part, over the axes that
/// split `Along`; none when it is not split. Collective over the mesh. Throws nothing of its own.
template <class Kind, Equation Labels, char Along, class Out = Deduced, class Bound = NoContract,
          TypedTensor A>
typename detail::TypedScan<Kind, Labels, Along, Out, A>::result cumulative(
    const A& x, ScanOptions options = {}, const CallOptions& call = Where::here()) {
  using Typed = detail::TypedScan<Kind, Labels, Along, Out, A>;
  detail::use_scan_of<typename A::value_type>();
  if constexpr (requires { requires Kind::reduction == Reduction::product; })
    detail::use_running_products_of<typename A::value_type>();
  ops::Scan operation = Typed::operation;
  operation.options = options;
  return detail::run_typed<Typed, Bound>(Labels.view(), call, operation, {&x.core()},
                                         detail::ScanExtras<Kind, typename A::value_type>::make());
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto cumsum(const A& x, ScanOptions options = {}, const CallOptions& call = Where::here()) {
  return cumulative<Sum, Labels, Along, Out, Bound>(x, options, call);
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto cumprod(const A& x, ScanOptions options = {}, const CallOptions& call = Where::here()) {
  return cumulative<Product, Labels, Along, Out, Bound>(x, options, call);
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto cummax(const A& x, ScanOptions options = {}, const CallOptions& call = Where::here()) {
  return cumulative<Max, Labels, Along, Out, Bound>(x, options, call);
}
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto cummin(const A& x, ScanOptions options = {}, const CallOptions& call = Where::here()) {
  return cumulative<Min, Labels, Along, Out, Bound>(x, options, call);
}

/// This overload takes everything at run time; without a sharding the result is sharded as x is.
/// Throws UsageError when Kind does not take x's elements.
template <class Kind>
DynamicTensor cumulative(std::string_view labels, char along, const DynamicTensor& x,
                         ScanOptions options = {}, const CallOptions& call = Where::here()) {
  if constexpr (std::is_same_v<Kind, LogSumExp>) {
    if (!is_real(x.type()))
      detail::throw_not_taken(Rule::function_of_reals, x.type(), call.sharded_site(labels));
    const ops::Scan operation{detail::same_terms(labels), along, Reduction::none, options,
                              x.type()};
    return detail::with_real_type(x.type(), [&](auto zero) {
      return detail::run_dynamic(labels, call, operation, {&x.core()},
                                 detail::ScanExtras<Kind, decltype(zero)>::make());
    });
  } else {
    if constexpr (Kind::reduction == Reduction::sum || Kind::reduction == Reduction::product)
      detail::use_tensors_of_sums();
    if constexpr (Kind::reduction == Reduction::product) detail::use_running_products_of<void>();
    const ops::Scan operation{detail::same_terms(labels), along, Kind::reduction, options,
                              detail::KindType<Kind>::of(x.type())};
    return detail::run_dynamic(labels, call, operation, {&x.core()});
  }
}

}  // namespace tessera
