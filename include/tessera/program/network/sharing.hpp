// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How long messages take that set out at once and share links.
///
///     detail::LinkUse use(network);
///     const std::vector<double> seconds = detail::SharedLinks(network).times_of(messages, use);
///
/// Laws: no link carries more than it can at any moment, and every message has a link that is full
/// and on which no other message is faster (max-min fairness); a message waits for the latencies of
/// its links, and then its bytes go. Sources: Bertsekas and Gallager, "Data Networks" (1992),
/// section 6.5.2; Velho et al. (2013) use it as a model of networks.
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/network/network.hpp>

namespace tessera::detail {

/// A message from one process to another, by their places on the network.
struct NetworkMessage {
  int from = 0, to = 0;
  double bytes = 0;
  bool other_way = false;  ///< round the dimensions of a torus in which two ways are as short
};

/// How many seconds each link was busy, and how many bytes it carried.
struct LinkUse {
  std::vector<double> seconds, bytes;
  explicit LinkUse(const Network& network)
      : seconds(static_cast<std::size_t>(network.links())),
        bytes(static_cast<std::size_t>(network.links())) {}
};

/// Lets messages go through the links of a network, round after round.
class SharedLinks {
 public:
  explicit SharedLinks(const Network& network)
      : network_(network),
        room_(static_cast<std::size_t>(network.links())),
        open_(static_cast<std::size_t>(network.links())) {}

  /// Returns how many seconds each message of a round takes; the list is valid until the next call.
  /// Adds to `use` what the links carry when the round is made `times` times.
  TESSERA_FUNCTION const std::vector<double>& times_of(const std::vector<NetworkMessage>& messages,
                                                       LinkUse& use, double times = 1);

  /// Takes in messages of a call that are all under way at once.
  TESSERA_FUNCTION void add_at_once(const std::vector<NetworkMessage>& messages);
  /// Returns how many seconds the messages that have been taken in need, if the link that has most
  /// to carry is busy all the time. Adds to `use` what the links carry.
  TESSERA_FUNCTION double take_at_once(LinkUse& use, double times = 1);
  /// Returns how many seconds each message takes of those that are all under way at once: until the
  /// fullest of its own links has carried all that goes through it. The list is valid until the
  /// next call. Adds to `use` as above.
  TESSERA_FUNCTION const std::vector<double>& times_at_once(
      const std::vector<NetworkMessage>& messages, LinkUse& use, double times = 1);

 private:
  double add_way(const NetworkMessage& message);
  double busy(std::size_t link) const {
    return load_[link] / network_.link(static_cast<int>(link)).bytes_per_second;
  }
  void set_out(const std::vector<NetworkMessage>& messages, LinkUse& use, double times);
  void share();
  template <class T> static T& at(std::vector<T>& of, int link) {
    return of[static_cast<std::size_t>(link)];
  }
  /// Calls visit for each link that a message goes through.
  template <class Visit> void visit_links(int message, const Visit& visit) const {
    const auto m = static_cast<std::size_t>(message);
    for (std::size_t i = begins_[m]; i < begins_[m + 1]; ++i) visit(links_[i]);
  }

  const Network& network_;
  std::vector<int> links_;            ///< the links of the messages, one message after the other
  std::vector<std::size_t> begins_;   ///< where each message's links begin; then where the last end
  std::vector<double> left_, rates_;  ///< bytes of each message that are left; bytes a second
  std::vector<double> seconds_;  ///< until each message sets out; in the end, until it has arrived
  std::vector<int> waiting_, going_;  ///< messages before and after the end of their latencies
  std::vector<int> unshared_;         ///< messages that have no rate yet
  std::vector<double> room_;          ///< bytes a second of each link that no message has yet
  std::vector<int> open_;             ///< how many messages of each link have no rate yet
  std::vector<int> in_use_;           ///< the links of the messages in going_
  std::vector<double> load_;          ///< bytes of each link, where messages go at once
  double farthest_ = 0;  ///< seconds of their longest latency, or of their slowest within a host
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/program/network/detail/sharing.hpp>
#endif
