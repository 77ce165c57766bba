// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Runs a case on every process of a loopback run, and looks at what they say: nothing, where all
/// is well.
///
///     CHECK(support::quiet(support::texts_of(4, [&](auto world) -> std::string {
///       REQUIRE_THAT(world->size() == 4);
///       return "";
///     })));
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include <tessera/comm/complaint.hpp>
#include <tessera/comm/loopback/loopback.hpp>

/// Ends a case that does not hold with its text.
#define REQUIRE_THAT(...) \
  if (!(__VA_ARGS__)) return std::string(#__VA_ARGS__)

namespace support {
using namespace tessera;

/// Runs f(world) on `processes` processes; returns what it returns or throws, by process.
template <class F> std::vector<std::string> texts_of(int processes, F f) {
  std::vector<std::string> texts(static_cast<std::size_t>(processes));
  run_loopback(processes, [&](std::shared_ptr<Transport> world) {
    const auto here = static_cast<std::size_t>(world->process());
    texts[here] = complaint_of([&] { texts[here] = f(world); }) + texts[here];
  });
  return texts;
}
inline bool all_say(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts)
    if (text.find(part) == std::string::npos) {
      MESSAGE(text);
      return false;
    }
  return true;
}
inline bool quiet(const std::vector<std::string>& texts) {
  bool all = true;
  for (const std::string& text : texts)
    if (!text.empty()) {
      MESSAGE(text);
      all = false;
    }
  return all;
}

}  // namespace support
