// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How messages share links.
///
///     SharedLinks(network).times_of(messages, use)
///
/// Laws: those of program/network/sharing.hpp.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/network/sharing.hpp>

namespace tessera::detail {

/// Appends the links that a message goes through to links_. Returns the sum of their latencies; for
/// a message within a host, which goes through none, all the seconds that it takes.
TESSERA_FUNCTION double SharedLinks::add_way(const NetworkMessage& message) {
  const std::size_t first = links_.size();
  network_.add_route(network_.host_of(message.from), network_.host_of(message.to), links_,
                     message.other_way);
  const NetworkLink& inside = network_.inside();
  if (links_.size() == first) return inside.seconds + message.bytes / inside.bytes_per_second;
  double seconds = 0;
  for (std::size_t i = first; i < links_.size(); ++i) seconds += network_.link(links_[i]).seconds;
  return seconds;
}

/// Notes the links of all messages, and when each message begins to share its links.
TESSERA_FUNCTION void SharedLinks::set_out(const std::vector<NetworkMessage>& messages,
                                           LinkUse& use, double times) {
  links_.clear();
  begins_.assign(1, 0);
  left_.clear();
  seconds_.clear();
  waiting_.clear();
  rates_.resize(messages.size());
  for (const NetworkMessage& message : messages) {
    const int m = static_cast<int>(left_.size());
    seconds_.push_back(add_way(message));
    if (links_.size() > begins_.back() && message.bytes > 0) waiting_.push_back(m);
    begins_.push_back(links_.size());
    left_.push_back(message.bytes);
    visit_links(m, [&](int link) { at(use.bytes, link) += times * message.bytes; });
  }
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [&](int a, int b) { return at(seconds_, a) > at(seconds_, b); });
}

TESSERA_FUNCTION const std::vector<double>& SharedLinks::times_of(
    const std::vector<NetworkMessage>& messages, LinkUse& use, double times) {
  set_out(messages, use, times);
  for (double now = 0; !waiting_.empty() || !going_.empty();) {
    if (going_.empty()) now = at(seconds_, waiting_.back());
    while (!waiting_.empty() && at(seconds_, waiting_.back()) <= now * (1 + 1e-12)) {
      going_.push_back(waiting_.back());
      waiting_.pop_back();
    }
    share();
    double next = waiting_.empty() ? std::numeric_limits<double>::infinity()
                                   : at(seconds_, waiting_.back()) - now;
    for (const int m : going_) next = std::min(next, at(left_, m) / at(rates_, m));
    for (const int link : in_use_) at(use.seconds, link) += times * next;
    now += next;
    std::size_t still = 0;
    for (const int m : going_) {
      const double went = next * at(rates_, m);
      at(left_, m) -= went;
      if (at(left_, m) > 1e-9 * went)
        going_[still++] = m;
      else  // what is left of rounding counts as nothing
        at(seconds_, m) = now;
    }
    going_.resize(still);
  }
  return seconds_;
}

TESSERA_FUNCTION void SharedLinks::add_at_once(const std::vector<NetworkMessage>& messages) {
  load_.resize(room_.size());
  for (const NetworkMessage& message : messages) {
    links_.clear();
    farthest_ = std::max(farthest_, add_way(message));
    for (const int link : links_) at(load_, link) += message.bytes;
  }
}

TESSERA_FUNCTION double SharedLinks::take_at_once(LinkUse& use, double times) {
  double fullest = 0;
  for (std::size_t l = 0; l < load_.size(); ++l) {
    use.seconds[l] += times * busy(l);
    use.bytes[l] += times * load_[l];
    fullest = std::max(fullest, busy(l));
  }
  load_.clear();
  return std::exchange(farthest_, 0) + fullest;
}

TESSERA_FUNCTION const std::vector<double>& SharedLinks::times_at_once(
    const std::vector<NetworkMessage>& messages, LinkUse& use, double times) {
  add_at_once(messages);
  seconds_.clear();
  for (const NetworkMessage& message : messages) {
    links_.clear();
    const double latency = add_way(message);
    double fullest = 0;
    for (const int link : links_) fullest = std::max(fullest, busy(static_cast<std::size_t>(link)));
    seconds_.push_back(latency + fullest);
  }
  (void)take_at_once(use, times);
  return seconds_;
}

/// Gives every message on its way a rate. The links are filled one after the other, first the one
/// that has least for each of its messages.
TESSERA_FUNCTION void SharedLinks::share() {
  in_use_.clear();
  for (const int m : going_)
    visit_links(m, [&](int link) {
      if (at(open_, link)++ > 0) return;
      in_use_.push_back(link);
      at(room_, link) = network_.link(link).bytes_per_second;
    });
  unshared_ = going_;
  auto links = in_use_.end();  // of messages without a rate: those before it
  while (!unshared_.empty()) {
    links = std::partition(in_use_.begin(), links, [&](int link) { return at(open_, link) > 0; });
    double least = std::numeric_limits<double>::infinity();
    for (auto link = in_use_.begin(); link != links; ++link)
      least = std::min(least, at(room_, *link) / at(open_, *link));
    // Messages through a full link get the rate. They leave their links once all of them are found.
    const auto filled = std::partition(unshared_.begin(), unshared_.end(), [&](int m) {
      bool full = false;
      visit_links(m, [&](int link) {
        full = full || at(room_, link) <= least * (1 + 1e-9) * at(open_, link);
      });
      return !full;
    });
    for (auto m = filled; m != unshared_.end(); ++m) {
      at(rates_, *m) = least;
      visit_links(*m, [&](int link) {
        at(room_, link) -= least;
        --at(open_, link);
      });
    }
    unshared_.erase(filled, unshared_.end());
  }
}

}  // namespace tessera::detail
