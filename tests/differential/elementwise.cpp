// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Elementwise functions and casts, by the names of cases.txt.
#include "case.hpp"

namespace differential {
namespace {

/// F of as many operands as the case has, all of elements T.
template <class F, class T> Results mapped(const Run& r) {
  const detail::PlacedText equation(r.c.text("eq"));
  if constexpr (std::is_invocable_v<F, T>)
    return {map_dynamic<T>(equation, F{}, r.out(), r.in[0])};
  else if constexpr (std::is_invocable_v<F, T, T>)
    return {map_dynamic<T>(equation, F{}, r.out(), r.in[0], r.in[1])};
  else
    return {map_dynamic<T>(equation, F{}, r.out(), r.in[0], r.in[1], r.in[2])};
}
template <class F, class... T> void add(Table& table, const char* name) {
  (table.add(name, dtype_of<T>, &mapped<F, T>), ...);
}

template <class F> void real(Table& table, const char* name) { add<F, half, float>(table, name); }
template <class F> void integer(Table& table, const char* name) {
  add<F, std::int8_t, std::int64_t, std::uint64_t>(table, name);
}
template <class F> void ordered(Table& table, const char* name) {
  real<F>(table, name);
  add<F, double>(table, name);
  integer<F>(table, name);
}
template <class F> void number(Table& table, const char* name) {
  ordered<F>(table, name);
  add<F, complex<float>>(table, name);
}

void add_functions(Table& t) {
  real<fn::Exp>(t, "exp");
  real<fn::Exp2>(t, "exp2");
  real<fn::Expm1>(t, "expm1");
  real<fn::Log>(t, "log");
  real<fn::Log1p>(t, "log1p");
  real<fn::Log2>(t, "log2");
  real<fn::Log10>(t, "log10");
  real<fn::Sqrt>(t, "sqrt");
  real<fn::Rsqrt>(t, "rsqrt");
  real<fn::Cbrt>(t, "cbrt");
  real<fn::Sin>(t, "sin");
  real<fn::Cos>(t, "cos");
  real<fn::Tan>(t, "tan");
  real<fn::Asin>(t, "asin");
  real<fn::Acos>(t, "acos");
  real<fn::Atan>(t, "atan");
  real<fn::Sinh>(t, "sinh");
  real<fn::Cosh>(t, "cosh");
  real<fn::Tanh>(t, "tanh");
  real<fn::Asinh>(t, "asinh");
  real<fn::Acosh>(t, "acosh");
  real<fn::Atanh>(t, "atanh");
  real<fn::Erf>(t, "erf");
  real<fn::Sigmoid>(t, "sigmoid");
  real<fn::Silu>(t, "silu");
  real<fn::Gelu>(t, "gelu");
  add<fn::Exp, double>(t, "exp");
  add<fn::Log, double>(t, "log");
  add<fn::Sqrt, double>(t, "sqrt");
  add<fn::Sin, double>(t, "sin");
  add<fn::Tanh, double>(t, "tanh");
  add<fn::Erf, double>(t, "erf");
  real<fn::Reciprocal>(t, "reciprocal");
  real<fn::Atan2>(t, "atan2");
  real<fn::IsNan>(t, "is_nan");
  real<fn::IsInf>(t, "is_inf");
  real<fn::IsFinite>(t, "is_finite");
  ordered<fn::Floor>(t, "floor");
  ordered<fn::Ceil>(t, "ceil");
  ordered<fn::Round>(t, "round");
  ordered<fn::Trunc>(t, "trunc");
  ordered<fn::Abs>(t, "abs");
  ordered<fn::Negate>(t, "negate");
  ordered<fn::Square>(t, "square");
  ordered<fn::Relu>(t, "relu");
  ordered<fn::Sign>(t, "sign");
}

void add_operations(Table& t) {
  number<fn::Add>(t, "add");
  number<fn::Subtract>(t, "subtract");
  number<fn::Multiply>(t, "multiply");
  number<fn::Divide>(t, "divide");
  ordered<fn::Remainder>(t, "remainder");
  ordered<fn::Maximum>(t, "maximum");
  ordered<fn::Minimum>(t, "minimum");
  ordered<fn::Pow>(t, "power");
  ordered<fn::Equal>(t, "equal");
  ordered<fn::NotEqual>(t, "not_equal");
  ordered<fn::Less>(t, "less");
  ordered<fn::LessEqual>(t, "less_equal");
  ordered<fn::Greater>(t, "greater");
  ordered<fn::GreaterEqual>(t, "greater_equal");
  add<fn::Equal, bool>(t, "equal");
  add<fn::NotEqual, bool>(t, "not_equal");
  add<fn::LogicalAnd, bool>(t, "logical_and");
  add<fn::LogicalOr, bool>(t, "logical_or");
  add<fn::LogicalXor, bool>(t, "logical_xor");
  add<fn::LogicalNot, bool>(t, "logical_not");
  integer<fn::BitwiseAnd>(t, "bitwise_and");
  integer<fn::BitwiseOr>(t, "bitwise_or");
  integer<fn::BitwiseXor>(t, "bitwise_xor");
  integer<fn::BitwiseNot>(t, "bitwise_not");
  integer<fn::ShiftLeft>(t, "bitwise_left_shift");
  integer<fn::ShiftRight>(t, "bitwise_right_shift");
  add<fn::Clamp, half, float>(t, "clamp");
  add<fn::Real, complex<float>, complex<double>>(t, "real");
  add<fn::Imag, complex<float>, complex<double>>(t, "imag");
  add<fn::Conj, complex<float>, complex<double>>(t, "conj");
  add<fn::Arg, complex<float>, complex<double>>(t, "angle");
  add<fn::Abs, complex<float>, complex<double>>(t, "abs");
  add<fn::MakeComplex, float, double>(t, "make_complex");
}

template <class T> Results cast_of(const Run& r) {
  return detail::with_type(
      r.c.out[0].type, [&](auto to) -> Results { return mapped<fn::Cast<decltype(to)>, T>(r); });
}

}  // namespace

void add_elementwise(Table& table) {
  add_functions(table);
  add_operations(table);
  table.add("cast", DType::f32, &cast_of<float>);
  table.add("cast", DType::i32, &cast_of<std::int32_t>);
  table.add("cast", DType::u64, &cast_of<std::uint64_t>);
  table.add("cast", DType::boolean, &cast_of<bool>);
}

}  // namespace differential
