// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "../../examples/support/learning_log.hpp"

using support::LearningLog;

namespace {
/// Returns the points of a drawing's curves, by their number.
std::vector<int> points_of(const std::string& svg) {
  std::vector<int> counts;
  const std::regex line("<polyline points=\"([^\"]*)\"");
  for (std::sregex_iterator i(svg.begin(), svg.end(), line), end; i != end; ++i) {
    const std::string points = (*i)[1];
    counts.push_back(static_cast<int>(std::count(points.begin(), points.end(), ',')));
  }
  return counts;
}
}  // namespace

TEST_CASE("a log of training has a line for each step, and columns for all that is counted") {
  LearningLog log({"step", "tokens"}, {"held_out_de", "held_out_hu"});
  log.level("letters", "by letters", 2.5);
  log.add({1, 100}, 4);
  log.add({2, 250}, 3);
  log.measure({3.5, 2.5});
  CHECK(log.recent_loss() == doctest::Approx(3.5));
  const std::string csv = std::regex_replace(log.csv(), std::regex(",\\d\\.\\d{3},"), ",T,");
  CHECK(csv ==
        "step,tokens,seconds,loss,held_out_de,held_out_hu,letters\n"
        "1,100,T,4.000000,,,2.500000\n"
        "2,250,T,3.000000,3.500000,2.500000,2.500000\n");
  const std::string svg = log.svg("tokens", "nats");
  CHECK(points_of(svg) == std::vector<int>{2, 1, 2});
  for (const char* name : {"training", "held out, mean of 2", "by letters", "tokens", "nats"})
    CHECK(svg.find(std::string(">") + name + "<") != std::string::npos);
}

TEST_CASE("a long log's curve is of means, in the middle of their windows") {
  LearningLog log({"step"});
  for (int step = 1; step <= 101; ++step) log.add({double(step)}, step <= 100 ? 1 : 50);
  const std::string svg = log.svg("steps", "nats");
  CHECK(points_of(svg) == std::vector<int>{50, 0});  // the last step fills no window of two
  CHECK(svg.find("mean of 2 steps") != std::string::npos);
  CHECK(LearningLog({"step"}).csv() == "step,seconds,loss,held_out\n");
  CHECK_FALSE(LearningLog({"step"}).svg("steps", "nats").empty());
}
