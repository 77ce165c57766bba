// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Every kind of call in every shape, with what it must give: shared by the tests of all
/// transports.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tessera/comm/transport.hpp>
#include <tessera/kernel/use_element.hpp>

#include "support/special_values.hpp"

namespace cases {

using namespace tessera;

/// How many elements go from one member to another.
enum class Shape { even, ragged, sparse, none };
inline constexpr Shape shapes[] = {Shape::even, Shape::ragged, Shape::sparse, Shape::none};
inline constexpr Collective kinds[] = {Collective::all_gather,         Collective::all_to_all,
                                       Collective::reduce_scatter,     Collective::all_reduce,
                                       Collective::collective_permute, Collective::exchange,
                                       Collective::broadcast};

inline Index amount(Shape shape, int from, int to, Index scale) {
  switch (shape) {
    case Shape::even:
      return 3 * scale;
    case Shape::ragged:
      return (1 + (2 * from + 3 * to) % 5) * scale;
    case Shape::sparse:
      return (from + 2 * to) % 3 == 0 ? (1 + to) * scale : 0;
    case Shape::none:
      return 0;
  }
  return 0;
}

/// Small integers, so that sums are exact in every type.
template <class T> T value(int from, int to, Index i) {
  return static_cast<T>((from * 31 + to * 7 + i * 3) % 101 - 50);
}

/// A call together with its buffers and what the receive buffer must be; gaps are left untouched.
template <class T> struct Case {
  Call call;
  std::vector<T> send;
  std::vector<T> receive;
  std::vector<T> expected;
};

template <class T> T reduced(Reduction reduction, int members, int to, Index i) {
  T result = value<T>(0, to, i);
  for (int from = 1; from < members; ++from) {
    const T next = value<T>(from, to, i);
    result = reduction == Reduction::max   ? (result < next ? next : result)
             : reduction == Reduction::min ? (next < result ? next : result)
                                           : static_cast<T>(result + next);
  }
  return result;
}

template <class T>
Case<T> make_case(Collective kind, Shape shape, Reduction reduction, int own, int members,
                  Index scale, bool in_place = false) {
  detail::use_tensor_of<T>();
  constexpr T gap = T(-77);
  Case<T> c;
  Call& call = c.call;
  call.kind = kind;
  call.type = dtype_of<T>;
  call.even = shape == Shape::even;
  call.own = own;
  call.members = members;
  call.bound = (8 + members) * members * scale + 2 * members;
  const bool packed = call.even || kind == Collective::reduce_scatter;
  const auto add_send = [&](int to, Index count, int seed_from, int seed_to) {
    if (!packed) c.send.resize(c.send.size() + 2, gap);
    call.send.push_back({to, static_cast<Index>(c.send.size()), count});
    for (Index i = 0; i < count; ++i) c.send.push_back(value<T>(seed_from, seed_to, i));
  };
  const auto add_receive = [&](int from, Index count, auto element) {
    if (!packed) c.expected.resize(c.expected.size() + 1, gap);
    call.receive.push_back({from, static_cast<Index>(c.expected.size()), count});
    for (Index i = 0; i < count; ++i) c.expected.push_back(element(i));
  };
  switch (kind) {
    case Collective::all_gather:
      add_send(own, amount(shape, own, 0, scale), own, 0);
      for (int from = 0; from < members; ++from)
        add_receive(from, amount(shape, from, 0, scale),
                    [&](Index i) { return value<T>(from, 0, i); });
      break;
    case Collective::all_to_all:
      for (int to = 0; to < members; ++to) add_send(to, amount(shape, own, to, scale), own, to);
      for (int from = 0; from < members; ++from)
        add_receive(from, amount(shape, from, own, scale),
                    [&](Index i) { return value<T>(from, own, i); });
      break;
    case Collective::reduce_scatter:
      call.reduction = reduction;
      for (int to = 0; to < members; ++to) add_send(to, amount(shape, 0, to, scale), own, to);
      add_receive(own, amount(shape, 0, own, scale),
                  [&](Index i) { return reduced<T>(reduction, members, own, i); });
      break;
    case Collective::all_reduce: {
      call.reduction = reduction;
      call.even = true;
      call.in_place = in_place;
      const Index n = amount(shape, 0, 0, scale);
      add_send(own, n, own, 0);
      add_receive(own, n, [&](Index i) { return reduced<T>(reduction, members, 0, i); });
      break;
    }
    case Collective::collective_permute: {
      call.even = false;
      const int to = (own + 1) % members;
      const int from = (own + members - 1) % members;
      if (const Index n = amount(shape, own, to, scale); n > 0 && to != own)
        add_send(to, n, own, to);
      if (const Index n = amount(shape, from, own, scale); n > 0 && from != own)
        add_receive(from, n, [&](Index i) { return value<T>(from, own, i); });
      break;
    }
    case Collective::exchange:
      call.even = false;
      for (int to = 0; to < members; ++to)
        if (const Index n = amount(shape, own, to, scale); n > 0 && to != own)
          add_send(to, n, own, to);
      for (int from = 0; from < members; ++from)
        if (const Index n = amount(shape, from, own, scale); n > 0 && from != own)
          add_receive(from, n, [&](Index i) { return value<T>(from, own, i); });
      break;
    case Collective::broadcast: {  // of the member in the middle; none sends where there is nothing
      call.even = false;
      const int root = members / 2;
      const Index n = amount(shape, root, root, scale);
      if (n > 0 && own == root) add_send(own, n, root, 0);
      if (n > 0 && own != root) add_receive(root, n, [&](Index i) { return value<T>(root, 0, i); });
      break;
    }
  }
  c.receive.assign(c.expected.size(), gap);
  if (call.in_place) {
    const auto at = static_cast<std::size_t>(call.receive.front().offset);
    for (Index i = 0; i < call.send.front().count; ++i)
      c.receive[at + static_cast<std::size_t>(i)] =
          c.send[static_cast<std::size_t>(call.send.front().offset + i)];
  }
  return c;
}

/// Runs one case and returns an empty text, or what is wrong. (doctest's assertions are slow and
/// lock, so the loops use few.)
template <class T> std::string wrong(detail::Group& group, Case<T>& c) {
  group.run(c.call, c.call.in_place ? c.receive.data() : c.send.data(), c.receive.data());
  for (std::size_t i = 0; i < c.expected.size(); ++i)
    if (c.receive[i] != c.expected[i])
      return std::string(name_of(c.call.kind)) + " of " + std::string(name_of(c.call.type)) + ", " +
             std::string(name_of(c.call.reduction)) + ", even=" + std::to_string(c.call.even) +
             " in_place=" + std::to_string(c.call.in_place) + ", member " +
             std::to_string(c.call.own) + "/" + std::to_string(c.call.members) + ", element " +
             std::to_string(i) + " is " + std::to_string(c.receive[i]) + ", not " +
             std::to_string(c.expected[i]);
  return {};
}

/// Runs every kind, shape and reduction of one type; returns the first thing that is wrong.
template <class T> std::string all_wrong(detail::Group& group, Index scale) {
  for (const Collective kind : kinds)
    for (const Shape shape : shapes)
      for (const Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min})
        for (const bool in_place : {false, true}) {
          const bool reduces = kind == Collective::reduce_scatter || kind == Collective::all_reduce;
          if ((!reduces && reduction != Reduction::sum) ||
              (in_place && kind != Collective::all_reduce))
            continue;
          Case<T> c =
              make_case<T>(kind, shape, reduction, group.own(), group.size(), scale, in_place);
          if (std::string text = wrong(group, c); !text.empty()) return text;
        }
  return {};
}

/// Reduces the sets of special values by everything that is defined on elements T, by both
/// reducing kinds; each member compares with plain rules, bit for bit, so that all agree.
template <class T> std::string special_wrong(detail::Group& group) {
  detail::use_tensor_of<T>();
  const int members = group.size(), own = group.own();
  for (int k = 1; k < reductions; ++k) {
    const auto reduction = static_cast<Reduction>(k);
    if (!defined(reduction, dtype_of<T>)) continue;
    // A member alone joins nothing.
    const bool any_nan =
        members == 1 || reduction == Reduction::sum || reduction == Reduction::product;
    for (const std::vector<T>& set : support::special_sets<T>(reduction)) {
      const Index n = support::pairs_of(set) * members;
      std::vector<T> expected;
      for (Index i = 0; i < n; ++i) {
        std::vector<T> parts;
        for (int part = 0; part < members; ++part)
          parts.push_back(support::special_element<T>(set, i, part, members));
        expected.push_back(support::plain_reduce<T>(reduction, parts));
      }
      for (const int way : {0, 1, 2}) {  // all-reduce, in place, reduce-scatter
        Call call;
        call.kind = way == 2 ? Collective::reduce_scatter : Collective::all_reduce;
        call.type = dtype_of<T>;
        call.reduction = reduction;
        call.even = true;
        call.in_place = way == 1;
        call.own = own;
        call.members = members;
        call.bound = n;
        const Index each = way == 2 ? n / members : n;
        for (int to = 0; to < (way == 2 ? members : 1); ++to)
          call.send.push_back({way == 2 ? to : own, to * each, each});
        call.receive.push_back({own, 0, each});
        const auto send = std::make_unique<T[]>(static_cast<std::size_t>(n));
        const auto receive = std::make_unique<T[]>(static_cast<std::size_t>(n));
        for (Index i = 0; i < n; ++i)
          send[static_cast<std::size_t>(i)] = support::special_element<T>(set, i, own, members);
        T* const to = way == 1 ? send.get() : receive.get();
        group.run(call, send.get(), to);
        const Index first = way == 2 ? own * each : 0;
        for (Index i = 0; i < each; ++i) {
          const auto at = static_cast<std::size_t>(first + i);
          if (!support::same_bits<T>(to[i], expected[at], any_nan))
            return std::string(name_of(call.kind)) + " of " + std::string(name_of(call.type)) +
                   ", " + std::string(name_of(reduction)) +
                   " of special values, in_place=" + std::to_string(call.in_place) + ", member " +
                   std::to_string(own) + "/" + std::to_string(members) + ", element " +
                   std::to_string(first + i) + " is " + std::to_string(static_cast<double>(to[i])) +
                   ", not " + std::to_string(static_cast<double>(expected[at]));
        }
      }
    }
  }
  return {};
}
// Templates, so that only a test that calls them compiles the kernels of all these types.
template <class Group> std::string all_special_wrong(Group& group) {
  std::string text = special_wrong<float>(group);
  if (text.empty()) text = special_wrong<double>(group);
  if (text.empty()) text = special_wrong<half>(group);
  if (text.empty()) text = special_wrong<bfloat16>(group);
  if (text.empty()) text = special_wrong<std::int8_t>(group);
  if (text.empty()) text = special_wrong<std::int16_t>(group);
  if (text.empty()) text = special_wrong<std::int32_t>(group);
  if (text.empty()) text = special_wrong<std::int64_t>(group);
  if (text.empty()) text = special_wrong<std::uint8_t>(group);
  if (text.empty()) text = special_wrong<std::uint16_t>(group);
  if (text.empty()) text = special_wrong<std::uint32_t>(group);
  if (text.empty()) text = special_wrong<std::uint64_t>(group);
  if (text.empty()) text = special_wrong<bool>(group);
  return text;
}

template <class Group> std::string all_types_wrong(Group& group, Index scale = 1) {
  std::string text = all_wrong<float>(group, scale);
  if (text.empty()) text = all_wrong<double>(group, scale);
  if (text.empty()) text = all_wrong<std::int32_t>(group, scale);
  if (text.empty()) text = all_wrong<std::int64_t>(group, scale);
  return text;
}

}  // namespace cases
