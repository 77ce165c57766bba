// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The functions of elements that nn/gating.hpp and nn/mixture_of_experts.hpp need.
///
///     map<"gs,e->gse">(fn::OneWhereSame{}, choices, numbers)
///
/// Laws: a position of -1 says that a token is not sent.
#include <cstdint>

#include <tessera/kernel/fill_index.hpp>
#include <tessera/kernel/functions/derivative.hpp>
#include <tessera/kernel/functions/number.hpp>
#include <tessera/kernel/random.hpp>

namespace tessera {

/// What the random numbers of second choices depend on, beside the token.
struct RoutingDraw {
  std::uint64_t seed = 0;  ///< one for each layer
  std::int64_t step = 0;   ///< of the training
  std::int64_t first = 0;  ///< the first token's number, where the groups are some of a batch's
  bool operator==(const RoutingDraw&) const = default;
};

namespace detail {
/// Returns a number in [0, 1) for the token that is number `token` of all groups' tokens.
KOKKOS_INLINE_FUNCTION double routing_number(const RoutingDraw& draw, Index token) {
  const PhiloxWords of_step = random_words(draw.step, 3, draw.seed);
  const PhiloxWords words =
      random_words(draw.first + token, 4, join_words(of_step.word[0], of_step.word[1]));
  return unit_interval(join_words(words.word[0], words.word[1]));
}
}  // namespace detail

namespace fn {

struct RowMajorNumber {
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& i) const { return i.linear(); }
};
/// 1 where a choice is this expert, else 0.
struct OneWhereSame {
  KOKKOS_FUNCTION std::int32_t operator()(std::int64_t choice, std::int64_t expert) const {
    return choice == expert ? 1 : 0;
  }
};
/// A gate, and -1 in place of a chosen expert's.
struct WithoutChosen {
  static constexpr Slope slope = Slope::zero;  // it is compared only
  template <RealElement T>
  KOKKOS_FUNCTION T operator()(T gate, std::int64_t choice, std::int64_t expert) const {
    return choice == expert ? T(-1) : gate;
  }
};
/// A place in an expert's buffer, or -1 where that is full.
struct FirstPosition {
  Index capacity;
  KOKKOS_FUNCTION std::int64_t operator()(std::int32_t before) const {
    return before < capacity ? before : -1;
  }
};
/// The same after all first choices, where the weight is drawn.
struct SecondPosition {
  Index capacity;
  RoutingDraw draw;
  template <RealElement T>
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& token, std::int32_t before,
                                          std::int32_t first_choices, T weight) const {
    const std::int64_t place = std::int64_t{before} + first_choices;
    const bool drawn =
        2 * static_cast<double>(weight) > detail::routing_number(draw, token.linear());
    return place < capacity && drawn ? place : -1;
  }
};
/// c_e m_e of a group, of E experts and S tokens in each of G groups, as a part of the mean over
/// groups of sum c_e m_e / (E S).
struct BalanceTerm {
  double scale;
  template <int I, class T> KOKKOS_FUNCTION double derivative(std::int32_t choices, T) const {
    return scale * choices;
  }
  template <RealElement T> KOKKOS_FUNCTION T operator()(std::int32_t choices, T gates) const {
    return static_cast<T>(scale * choices) * gates;
  }
};

/// Where a token lies in the buffers of all experts of its group, one after the other; -1: nowhere.
struct Slot {
  Index capacity;
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t expert, std::int64_t position) const {
    return position < 0 ? -1 : expert * capacity + position;
  }
};
/// Whether a choice lies in a slot.
struct InSlot {
  KOKKOS_FUNCTION bool operator()(std::int64_t choice, std::int64_t slot) const {
    return choice == slot;
  }
};
/// The weight of the choice that lies in a slot, else 0, as elements T.
template <class T> struct WeightInSlot {
  template <int I> using slope_by = SlopeBy<InSlot, I - 1, 4>;
  template <RealElement W>
  KOKKOS_FUNCTION T operator()(std::int64_t first, W first_weight, std::int64_t second,
                               W second_weight, std::int64_t slot) const {
    return slot == first    ? static_cast<T>(first_weight)
           : slot == second ? static_cast<T>(second_weight)
                            : T{};
  }
};
/// 1 where one of the choices lies in a slot, else 0.
template <class T> struct OneInSlot {
  KOKKOS_FUNCTION T operator()(std::int64_t first, std::int64_t second, std::int64_t slot) const {
    return first == slot || second == slot ? T(1) : T{};
  }
};

/// The number of a token in its group, from 1 on.
struct NumberInGroup {
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& token, std::int64_t) const {
    return token[1] + 1;
  }
};
/// The number of the token in a place from 0 on, of first and second choices, of which at most one
/// is there; -1 where none is.
struct TokenOfPlace {
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t first, std::int64_t second) const {
    return first + second - 1;
  }
};
/// u a + v b of weights u, v, which may be wider than the elements.
struct WeighedSum {
  template <int I> using slope_by = SlopeBy<Same, I % 2 == 0 ? I + 1 : I - 1>;
  template <RealElement W, RealElement T> KOKKOS_FUNCTION T operator()(W u, T a, W v, T b) const {
    using C = ComputeType<T>;
    return static_cast<T>(static_cast<C>(u) * static_cast<C>(a) +
                          static_cast<C>(v) * static_cast<C>(b));
  }
};

/// Of statistics: 1 where a token is sent, where it is sent to nobody, and the least difference
/// that decides where a token goes.
struct Sent {
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t position) const {
    return position < 0 ? 0 : 1;
  }
};
struct SentNowhere {
  KOKKOS_FUNCTION std::int64_t operator()(std::int64_t first, std::int64_t second) const {
    return first < 0 && second < 0 ? 1 : 0;
  }
};
struct WithoutBoth {
  static constexpr Slope slope = Slope::zero;
  template <RealElement T>
  KOKKOS_FUNCTION T operator()(T gate, std::int64_t first, std::int64_t second,
                               std::int64_t expert) const {
    return expert == first || expert == second ? T(-1) : gate;
  }
};
struct Margin {
  RoutingDraw draw;
  template <RealElement T>
  KOKKOS_FUNCTION double operator()(const GlobalIndex& token, T first, T second, T third,
                                    T weight) const {
    const double a = static_cast<double>(first), b = static_cast<double>(second);
    const double c = static_cast<double>(third);
    const double drawn =
        2 * static_cast<double>(weight) - detail::routing_number(draw, token.linear());
    const double between = a - b < b - c ? a - b : b - c, size = drawn < 0 ? -drawn : drawn;
    return between < size ? between : size;
  }
};
}  // namespace fn

}  // namespace tessera
