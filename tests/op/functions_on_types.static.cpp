// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise functions x element types x partial kinds, as verdicts, against a table written by
// hand.
#include <tessera/kernel/functions.hpp>
#include <tessera/op/elements/map.hpp>

using namespace tessera;

namespace {

constexpr std::string_view letters = " spxnyl";  // by Reduction: sum, product, max, min, any, all

/// The kinds by which all operands of f may be unfinished, with elements T; "-" where f does not
/// take T.
template <class T, class F, int Operands> consteval bool kinds_are(std::string_view expected) {
  const auto verdict = [&]<class... A>(std::type_identity<A>...) {
    if constexpr (!detail::check_function<F, detail::Elements, A...>().ok()) {
      return expected == "-";
    } else {
      using R = typename detail::FunctionResult<F, detail::Elements, A...>::type;
      for (int r = 1; r < reductions; ++r) {
        const Reduction kind = static_cast<Reduction>(r);
        const bool wanted =
            expected.find(letters[static_cast<std::size_t>(r)]) != std::string_view::npos;
        const Sharding open = Sharding{{}}.with_partial(AxisSet{0}, kind);
        Terms terms = parse(Operands == 1 ? "i->i" : Operands == 2 ? "i,i->i" : "i,i,i->i");
        Shardings operands(Operands, open);
        if (Operands == 3) operands[0] = Sharding{{}};  // a condition
        const bool may = defined(kind, dtype_of<T>) && defined(kind, dtype_of<R>) &&
                         detail::check_map(terms, operands, open, detail::linearity<F, A...>).ok();
        if (may != wanted) return false;
      }
      return true;
    }
  };
  if constexpr (Operands == 1) return verdict(std::type_identity<T>{});
  if constexpr (Operands == 2) return verdict(std::type_identity<T>{}, std::type_identity<T>{});
  if constexpr (Operands == 3)
    return verdict(std::type_identity<bool>{}, std::type_identity<T>{}, std::type_identity<T>{});
}

/// A row: what f takes of real numbers, integers, complex numbers and bool.
template <class F, int Operands>
consteval bool row(std::string_view real, std::string_view integer,
                   std::string_view complex_numbers, std::string_view boolean) {
  return kinds_are<half, F, Operands>(real) && kinds_are<bfloat16, F, Operands>(real) &&
         kinds_are<float, F, Operands>(real) && kinds_are<double, F, Operands>(real) &&
         kinds_are<std::int8_t, F, Operands>(integer) &&
         kinds_are<std::int16_t, F, Operands>(integer) &&
         kinds_are<std::int32_t, F, Operands>(integer) &&
         kinds_are<std::int64_t, F, Operands>(integer) &&
         kinds_are<std::uint8_t, F, Operands>(integer) &&
         kinds_are<complex<float>, F, Operands>(complex_numbers) &&
         kinds_are<complex<double>, F, Operands>(complex_numbers) &&
         kinds_are<bool, F, Operands>(boolean);
}

//                                real    integer  complex bool
static_assert(row<fn::Add, 2>("s", "s", "s", "-"));
static_assert(row<fn::Subtract, 2>("s", "s", "s", "-"));
static_assert(row<fn::Multiply, 2>("p", "p", "p", "-"));
static_assert(row<fn::Divide, 2>("p", "", "p", "-"));
static_assert(row<fn::Maximum, 2>("x", "x", "-", "-"));
static_assert(row<fn::Minimum, 2>("n", "n", "-", "-"));
static_assert(row<fn::Remainder, 2>("", "", "-", "-"));
static_assert(row<fn::LogAddExp, 2>("", "-", "-", "-"));
static_assert(row<fn::Negate, 1>("s", "s", "s", "-"));
static_assert(row<fn::Abs, 1>("p", "", "p", "-"));
static_assert(row<fn::Square, 1>("p", "p", "p", "-"));
static_assert(row<fn::Reciprocal, 1>("p", "", "p", "-"));
static_assert(row<fn::Exp, 1>("xn", "-", "-", "-"));
static_assert(row<fn::Log, 1>("", "-", "-", "-"));
static_assert(row<fn::Sin, 1>("", "-", "-", "-"));
static_assert(row<fn::Tanh, 1>("xn", "-", "-", "-"));
static_assert(row<fn::Floor, 1>("xn", "xn", "-", "-"));
static_assert(row<fn::Relu, 1>("xn", "xn", "-", "-"));
static_assert(row<fn::Conj, 1>("-", "-", "sp", "-"));
static_assert(row<fn::Real, 1>("-", "-", "s", "-"));
static_assert(row<fn::Less, 2>("", "", "-", "-"));
static_assert(row<fn::Equal, 2>("", "", "", ""));
static_assert(row<fn::LogicalOr, 2>("-", "-", "-", "y"));
static_assert(row<fn::LogicalAnd, 2>("-", "-", "-", "l"));
static_assert(row<fn::LogicalXor, 2>("-", "-", "-", ""));
static_assert(row<fn::LogicalNot, 1>("-", "-", "-", ""));
static_assert(row<fn::BitwiseOr, 2>("-", "", "-", "-"));
static_assert(row<fn::Select, 3>("spxn", "spxn", "sp", "yl"));

// With a number beside the tensor: 2 x is linear and not multiplicative, x or true keeps both
// kinds.
static_assert(row<fn::Fixed<fn::LogicalOr, 1, bool>, 1>("-", "-", "-", "yl"));
static_assert(kinds_are<float, fn::Fixed<fn::Multiply, 1, float>, 1>("s"));
static_assert(kinds_are<float, fn::Fixed<fn::Divide, 1, float>, 1>("s"));
static_assert(kinds_are<float, fn::Fixed<fn::Divide, 0, float>, 1>(""));
static_assert(kinds_are<float, fn::Fixed<fn::Maximum, 1, float>, 1>("xn"));
// Casts: what the result's type has, too.
static_assert(kinds_are<float, fn::Cast<double>, 1>("sxn"));
static_assert(kinds_are<float, fn::Cast<complex<double>>, 1>("s"));
static_assert(kinds_are<std::int32_t, fn::Cast<std::int64_t>, 1>("xn"));
static_assert(kinds_are<bool, fn::Cast<std::int32_t>, 1>(""));

}  // namespace
