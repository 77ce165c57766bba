// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How long messages take that set out at once and share links.
///
///     detail::LinkUse use(network);
///     const std::vector<double> seconds = detail::SharedLinks(network).times_of(messages, use);
///
/// Laws: no link carries more than it can at any moment, and every message has a link that is full
/// and on which none is faster (max-min fairness); a message takes the latencies of its links, and
/// after that its bytes. Source: Bertsekas and Gallager, "Data Networks" (1992), section 6.5.2; as
/// a model of networks Velho et al. (2013).
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/network/network.hpp>

namespace tessera::detail {

/// A message from one process to another, by their places on the network.
struct NetworkMessage {
  int from = 0, to = 0;
  double bytes = 0;
};

/// Seconds that each link was busy for, and bytes that it carried.
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

  /// Returns the seconds of each message of a round, until the next round. Adds to `use` what the
  /// links carry when it is made `times` times.
  TESSERA_FUNCTION const std::vector<double>& times_of(const std::vector<NetworkMessage>& messages,
                                                       LinkUse& use, double times = 1);

  /// Takes in messages of a call that are all under way at once.
  TESSERA_FUNCTION void add_at_once(const std::vector<NetworkMessage>& messages);
  /// Returns the seconds of those that have been taken in, if they keep that link busy all the time
  /// which has most to carry. Adds to `use` as above.
  TESSERA_FUNCTION double take_at_once(LinkUse& use, double times = 1);

 private:
  double add_way(const NetworkMessage& message);
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
  std::vector<int> links_;            ///< that messages go through, one message after the other
  std::vector<std::size_t> begins_;   ///< of each message in links_; and where the last one ends
  std::vector<double> left_, rates_;  ///< of each message: bytes, bytes a second
  std::vector<double> seconds_;  ///< of each message: until it sets out, then until it is there
  std::vector<int> waiting_, going_;  ///< messages whose latencies are not over, and are
  std::vector<int> unshared_;         ///< messages that have no rate yet
  std::vector<double> room_;          ///< of each link: bytes a second that no message has yet
  std::vector<int> open_;             ///< of each link: its messages that have no rate yet
  std::vector<int> in_use_;           ///< the links of the messages in going_
  std::vector<double> load_;          ///< of each link: bytes of messages that go at once
  double farthest_ = 0;               ///< seconds of the longest latency among these, or on a host
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/program/network/detail/sharing.hpp>
#endif
