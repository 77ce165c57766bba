// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: types
// Elementwise operators on tensors of every element type, and what may act on unfinished values.
#include "op/elementwise_cases.hpp"

using namespace elementwise;

TEST_CASE("elements of every type, and casts between them") {
  const auto check = [](const ProcessMesh<Grid>& mesh, auto zero) -> std::string {
    using T = decltype(zero);
    const auto x = make<Tensor<T, data, model>>(mesh, {5, 3}, 1);
    const auto y = make<Tensor<T, model, _>>(mesh, {5, 3}, 2);
    if (auto s = differs(
            "equal", equal(x, y), [](T a, T b) { return a == b; }, x, y);
        !s.empty())
      return s;
    if (auto s = differs(
            "bool", cast<bool>(x), [](T a) { return fn::Cast<bool>{}(a); }, x);
        !s.empty())
      return s;
    if constexpr (NumberElement<T>)
      if (auto s = differs(
              "x * y + x", x * y + x, [](T a, T b) { return fn::Add{}(fn::Multiply{}(a, b), a); },
              x, y);
          !s.empty())
        return s;
    if constexpr (OrderedElement<T>)
      if (auto s = differs(
              "less", less(x, y), [](T a, T b) { return a < b; }, x, y);
          !s.empty())
        return s;
    if constexpr (IntegerElement<T>) {
      if (auto s = differs(
              "bits", bitwise_xor(bitwise_left_shift(x, 2), bitwise_not(y)),
              [](T a, T b) { return static_cast<T>(static_cast<T>(a * 4) ^ static_cast<T>(~b)); },
              x, y);
          !s.empty())
        return s;
      if (auto s = differs(
              "bits 2", bitwise_or(bitwise_and(x, 5), bitwise_right_shift(y, 1)),
              [](T a, T b) { return static_cast<T>((a & 5) | (b >> 1)); }, x, y);
          !s.empty())
        return s;
    }
    if constexpr (!ComplexElement<T>) {
      if (auto s = differs(
              "double", cast<double>(x), [](T a) { return static_cast<double>(a); }, x);
          !s.empty())
        return s;
      if (auto s = differs(
              "int8", cast<std::int8_t>(x), [](T a) { return fn::Cast<std::int8_t>{}(a); }, x);
          !s.empty())
        return s;
      if (auto s = differs(
              "half", cast<half>(x), [](T a) { return fn::Cast<half>{}(a); }, x);
          !s.empty())
        return s;
    }
    return differs(
        "complex", cast<complex<double>>(x), [](T a) { return fn::Cast<complex<double>>{}(a); }, x);
  };
  on_meshes([&](const ProcessMesh<Grid>& mesh) -> std::string {
    for (const std::string& text :
         {check(mesh, half{}), check(mesh, tessera::bfloat16{}), check(mesh, float{}),
          check(mesh, double{}), check(mesh, complex<float>{}), check(mesh, complex<double>{}),
          check(mesh, std::int8_t{}), check(mesh, std::int16_t{}), check(mesh, std::int32_t{}),
          check(mesh, std::int64_t{}), check(mesh, std::uint8_t{}), check(mesh, std::uint16_t{}),
          check(mesh, std::uint32_t{}), check(mesh, std::uint64_t{}), check(mesh, bool{})})
      if (!text.empty()) return text;
    const auto z = make<Tensor<complex<float>, data, model>>(mesh, {5, 3}, 1);
    if (auto s = differs(
            "real", real(z), [](complex<float> a) { return a.re; }, z);
        !s.empty())
      return s;
    if (auto s = differs(
            "imag", imag(z), [](complex<float> a) { return a.im; }, z);
        !s.empty())
      return s;
    if (auto s = differs(
            "conj", conj(z),
            [](complex<float> a) {
              return complex<float>{a.re, -a.im};
            },
            z);
        !s.empty())
      return s;
    if (auto s = differs(
            "abs", abs(z), [](complex<float> a) { return std::hypot(a.re, a.im); }, z);
        !s.empty())
      return s;
    if (auto s = differs(
            "arg", arg(z), [](complex<float> a) { return std::atan2(a.im, a.re); }, z);
        !s.empty())
      return s;
    return differs(
        "make_complex", make_complex(real(z), imag(z)), [](complex<float> a) { return a; }, z);
  });
}

TEST_CASE("what may act on unfinished values gives what it gives on finished ones") {
  on_meshes([](const ProcessMesh<Grid>& mesh) -> std::string {
    const auto x = make<Float<data, _>>(mesh, {5, 3}, 1);  // empty blocks where data is 4
    const auto close = [](const auto& a, const auto& b) {
      const auto p = to_host(a), q = to_host(b);
      for (std::size_t i = 0; i < p.values.size(); ++i)
        if (!same(p.values[i], q.values[i])) return false;
      return true;
    };
    const auto top = reduce<Max, "ij->j", P<_, Unreduced<Max, data>>>(x);
    const auto low = reduce<Min, "ij->j", P<_, Unreduced<Min, data>>>(x);
    const auto top_done = max<"ij->j">(x), low_done = min<"ij->j">(x);
    const auto check = [&](const char* name, const auto& f) -> std::string {
      static_assert(std::remove_cvref_t<decltype(f(top))>::unfinished);
      return close(f(top), f(top_done)) && close(f(low), f(low_done)) ? "" : name;
    };
    for (const std::string& text :
         {check("floor", [](const auto& v) { return floor(v); }),
          check("ceil", [](const auto& v) { return ceil(v); }),
          check("round", [](const auto& v) { return round(v); }),
          check("trunc", [](const auto& v) { return trunc(v); }),
          check("sign", [](const auto& v) { return sign(v); }),
          check("clamp", [](const auto& v) { return clamp(v, -0.5, 0.5); }),
          check("sigmoid", [](const auto& v) { return sigmoid(v); }),
          check("erf", [](const auto& v) { return erf(v); }),
          check("atan", [](const auto& v) { return atan(v); }),
          check("sinh", [](const auto& v) { return sinh(v); }),
          check("cast", [](const auto& v) { return cast<double>(v); }),
          check("maximum", [](const auto& v) { return maximum(v, 0.25f); }),
          check("minimum", [](const auto& v) { return minimum(0.25f, v); })})
      if (!text.empty()) return text;

    const auto sum = reduce<Sum, "ij->j", P<_, Unreduced<Sum, data>>>(x);
    const auto sum_done = reduce<Sum, "ij->j">(x);
    if (!close(cast<double>(sum), cast<double>(sum_done))) return "cast of a sum";
    const auto flags = make<Tensor<bool, model>>(mesh, {3}, 1);
    if (!close(where(flags, sum, -sum), where(flags, sum_done, -sum_done))) return "where of sums";
    if (!close(where(flags, top, top), top_done)) return "where of maxima";
    const auto n = make<Tensor<std::int64_t, data, _>>(mesh, {5, 3}, 1) * (std::int64_t{1} << 33);
    const auto open = reduce<Sum, "ij->j", P<_, Unreduced<Sum, data>>>(n + 7);
    if (!close(cast<std::int32_t>(open), cast<std::int32_t>(reduce<Sum, "ij->j">(n + 7))))
      return "a wrapping cast of a sum";
    const auto z = make<Tensor<complex<double>, data, _>>(mesh, {5, 3}, 1);
    const auto parts = reduce<Sum, "ij->j", P<_, Unreduced<Sum, data>>>(z);
    const auto parts_done = reduce<Sum, "ij->j">(z);
    if (!close(real(parts), real(parts_done)) || !close(imag(conj(parts)), imag(conj(parts_done))))
      return "parts of a complex sum";
    return "";
  });
}
