// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How messages share links.
///
///     times_of(network, messages, use)
///
/// Laws: those of program/network/sharing.hpp.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/math.hpp>
#include <tessera/program/network/sharing.hpp>

namespace tessera::detail {

/// The messages that are on their way, and at which rates.
class SharedLinks {
 public:
  SharedLinks(const Network& network, const std::vector<NetworkMessage>& messages)
      : network_(network), load_(static_cast<std::size_t>(network.links())), room_(load_.size()) {
    for (const NetworkMessage& m : messages) {
      routes_.push_back(network.route(network.host_of(m.from), network.host_of(m.to)));
      left_.push_back(m.bytes);
      rates_.push_back(0);
      for (const int link : routes_.back()) touch(link);
    }
  }

  std::vector<double> run(LinkUse& use) {
    std::vector<double> seconds(left_.size());
    std::vector<std::size_t> waiting, going;  // for their latencies to be over; on their way
    for (std::size_t m = 0; m < left_.size(); ++m) {
      for (const int link : routes_[m]) seconds[m] += network_.link(link).seconds;
      if (routes_[m].empty())
        seconds[m] = network_.inside().seconds + left_[m] / network_.inside().bytes_per_second;
      else if (left_[m] > 0)
        waiting.push_back(m);
    }
    for (const int link : touched_) at(use.bytes, link) += at(load_, link);
    std::stable_sort(waiting.begin(), waiting.end(),
                     [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
    for (double now = 0; !waiting.empty() || !going.empty();) {
      if (going.empty()) now = seconds[waiting.back()];
      while (!waiting.empty() && seconds[waiting.back()] <= now * (1 + 1e-12)) {
        going.push_back(waiting.back());
        waiting.pop_back();
      }
      share(going);
      double next =
          waiting.empty() ? std::numeric_limits<double>::infinity() : seconds[waiting.back()] - now;
      for (const std::size_t m : going) next = std::min(next, left_[m] / rates_[m]);
      for (const int link : touched_)
        if (at(load_, link) > 0) at(use.seconds, link) += next;
      now += next;
      std::vector<std::size_t> still;
      for (const std::size_t m : going) {
        left_[m] -= next * rates_[m];
        // What is left of rounding counts as nothing.
        if (left_[m] > 1e-9 * next * rates_[m])
          still.push_back(m);
        else
          seconds[m] = now;
      }
      going = std::move(still);
    }
    return seconds;
  }

 private:
  template <class T> static T& at(std::vector<T>& of, int link) {
    return of[static_cast<std::size_t>(link)];
  }
  void touch(int link) {
    const double bytes = left_.back();
    if (at(load_, link) == 0 && bytes > 0) touched_.push_back(link);
    at(load_, link) += bytes;
  }

  /// Gives every message its rate: fills the links in turn whose share for each message is least.
  void share(const std::vector<std::size_t>& going) {
    for (const int link : touched_) at(load_, link) = 0, at(room_, link) = capacity(link);
    for (const std::size_t m : going)
      for (const int link : routes_[m]) at(load_, link) += 1;
    std::vector<std::size_t> open = going, rest;
    while (!open.empty()) {
      double least = std::numeric_limits<double>::infinity();
      for (const int link : touched_)
        if (at(load_, link) > 0) least = std::min(least, at(room_, link) / at(load_, link));
      const auto is_full = [&](int link) {
        return at(room_, link) <= (least * (1 + 1e-9)) * at(load_, link);
      };
      rest.clear();
      std::vector<std::size_t> filled;
      for (const std::size_t m : open) {
        bool full = false;
        for (const int link : routes_[m]) full = full || is_full(link);
        (full ? filled : rest).push_back(m);
      }
      for (const std::size_t m : filled) {
        rates_[m] = least;
        for (const int link : routes_[m]) {
          at(room_, link) -= least;
          at(load_, link) -= 1;
        }
      }
      std::swap(open, rest);
    }
    for (const int link : touched_) at(load_, link) = 0;
    for (const std::size_t m : going)
      for (const int link : routes_[m]) at(load_, link) += 1;
  }
  double capacity(int link) const { return network_.link(link).bytes_per_second; }

  const Network& network_;
  std::vector<std::vector<int>> routes_;
  std::vector<double> left_, rates_;  ///< of each message
  std::vector<double> load_, room_;   ///< of each link: messages (before: bytes), bytes a second
  std::vector<int> touched_;          ///< links that messages go through
};

TESSERA_FUNCTION std::vector<double> times_of(const Network& network,
                                              const std::vector<NetworkMessage>& messages,
                                              LinkUse& use) {
  return SharedLinks(network, messages).run(use);
}

}  // namespace tessera::detail
