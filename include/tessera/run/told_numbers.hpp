// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The numbers that a call has beside its tensors and its operator, as the processes compare them:
/// a scalar, what lies outside a tensor, the state of a function of elements.
///
///     struct Scaled {                                                 // a functor may name its own
///       double factor;
///       template <class Told> void numbers(Told& told) const { told.add(factor); }
///       …
///     };
///
/// A function that does not name its numbers is compared by its bytes where it is trivially
/// copyable and at most 64 bytes long. Padding is left out (a compiler without
/// __builtin_clear_padding, as clang 14, compares functions that have neither padding nor pointers,
/// nvcc those of one number), and so is each aligned word of eight bytes that may be a pointer,
/// since addresses differ between processes: a number from 2^16 on whose upper twelve bits are
/// zero, which no double is. Other functions are told apart by their types alone.
///
/// Laws: the same numbers have the same digest on every process; a function without numbers costs
/// nothing.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#include <tessera/base/digest.hpp>
#include <tessera/base/dtype.hpp>

namespace tessera::detail {

class ToldNumbers {
 public:
  /// `text`: where the numbers are written too, as in " with 2, 0.5"; null: nowhere.
  explicit ToldNumbers(std::string* text = nullptr) : text_(text) {}

  template <class T> void add(const T& number) {
    if constexpr (ComplexElement<T>) {
      add(number.re);
      add(number.im);
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      word(static_cast<std::uint64_t>(number));
      if (text_ != nullptr) write(std::to_string(static_cast<std::int64_t>(number)));
    } else {
      const double wide = static_cast<double>(number);
      std::uint64_t bits = 0;
      std::memcpy(&bits, &wide, sizeof bits);
      word(bits);
      if (text_ != nullptr) write(text_of(wide));
    }
  }
  /// Adds bytes without padding; `pointers`: words of eight bytes among them may be pointers.
  void add_bytes(const void* from, std::size_t size, bool pointers) {
    const char* const bytes = static_cast<const char*>(from);
    for (std::size_t i = 0; i < size; i += 8) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, bytes + i, size - i < 8 ? size - i : 8);
      if (pointers && bits >> 52 == 0 && bits >> 16 != 0) bits = 0;
      word(bits);
      if (text_ != nullptr) write("bytes " + hexadecimal(bits));
    }
  }
  bool any() const { return any_; }
  std::uint64_t digest() const { return digest_.value(); }

 private:
  void word(std::uint64_t bits) {
    any_ = true;
    digest_.add(bits);
  }
  void write(const std::string& number) { *text_ += (text_->empty() ? " with " : ", ") + number; }
  static std::string text_of(double x) {
    std::string text(32, '\0');
    text.resize(static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.17g", x)));
    std::string shorter(32, '\0');
    shorter.resize(static_cast<std::size_t>(std::snprintf(shorter.data(), 32, "%.6g", x)));
    return std::strtod(shorter.c_str(), nullptr) == x ? shorter : text;  // denormals too
  }
  static std::string hexadecimal(std::uint64_t bits) {
    char text[20];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(bits));
    return text;
  }

  std::string* text_;
  Digest digest_;
  bool any_ = false;
};

/// F names its numbers.
template <class F>
concept NamesNumbers = requires(const F& f, ToldNumbers& told) {
  f.numbers(told);
};
#if defined(__has_builtin) && !defined(__CUDACC__)
#if __has_builtin(__builtin_clear_padding)
#define TESSERA_CLEARS_PADDING 1
#endif
#endif
#ifndef TESSERA_CLEARS_PADDING
#define TESSERA_CLEARS_PADDING 0
#endif
/// Whether each byte of an F has a value. It is no constant, and no F is copied in a constant,
/// where one has none, being padding; nor where one is a pointer's.
template <class F> consteval bool bytes_have_values() {
  using Bytes = std::array<unsigned char, sizeof(F)>;
  int sum = 0;
  for (const unsigned char byte : std::bit_cast<Bytes>(std::bit_cast<F>(Bytes{}))) sum += byte;
  return sum >= 0;
}
template <class F>
concept HasNoPadding = requires {
  typename std::bool_constant<bytes_have_values<F>()>;
}
#if defined(__CUDACC__)  // to which padding has a value: functions of one number alone
&&(std::has_unique_object_representations_v<F> || (sizeof(F) > 1 && sizeof(F) == alignof(F)))
#endif
    ;
template <class F> consteval bool are_bytes_told() {
  if constexpr (std::is_empty_v<F> || !std::is_trivially_copyable_v<F> || sizeof(F) > 64)
    return false;
  else
    return TESSERA_CLEARS_PADDING || HasNoPadding<F>;
}
template <class F> inline constexpr bool has_bytes = are_bytes_told<F>();

template <class F> void tell_numbers(const void* function, ToldNumbers& told) {
  const F& f = *static_cast<const F*>(function);
  if constexpr (NamesNumbers<F>) {
    f.numbers(told);
  } else if constexpr (Element<F>) {
    told.add(f);
  } else if constexpr (has_bytes<F>) {
    F copy(f);
#if TESSERA_CLEARS_PADDING
    __builtin_clear_padding(&copy);
#endif
    told.add_bytes(&copy, sizeof(F), alignof(F) >= alignof(void*));
  }
}
using TellNumbers = void (*)(const void* function, ToldNumbers& told);
template <class F>
concept TellsNumbers = NamesNumbers<F> || has_bytes<F>;
/// Returns what tells the numbers of a function of type F, or of an element; null where it has none
/// to tell.
template <class F> constexpr TellNumbers numbers_of() {
  if constexpr (TellsNumbers<F>)
    return &tell_numbers<F>;
  else
    return nullptr;
}

}  // namespace tessera::detail
