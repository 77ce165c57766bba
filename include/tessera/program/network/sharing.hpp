// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How long messages take that set out at once and share links.
///
///     detail::LinkUse use(network);
///     const std::vector<double> seconds = detail::times_of(network, messages, use);
///
/// Laws: no link carries more than it can at any moment, and every message has a link that is full
/// and on which none is faster (max-min fairness); a message takes the latencies of its links, and
/// after that its bytes. Source: Bertsekas and Gallager, "Data Networks" (1992), section 6.5.2; as
/// a model of networks Velho et al. (2013).
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/network/network.hpp>

namespace tessera::detail {

/// A message from one process to another.
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

/// Returns the seconds of each message, and adds to `use` what the links carried.
TESSERA_FUNCTION std::vector<double> times_of(const Network& network,
                                              const std::vector<NetworkMessage>& messages,
                                              LinkUse& use);

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/program/network/detail/sharing.hpp>
#endif
