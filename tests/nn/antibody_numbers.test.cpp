// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rules of examples/number_antibodies: numbers from tokens against anarcii's own answers,
// windows of long sequences, and the table's order.
#include <doctest/doctest.h>

#include "../../examples/number_antibodies/numbering.hpp"
#include "../../examples/number_antibodies/table.hpp"
#include "../../examples/number_antibodies/windows.hpp"

namespace {
using namespace number_antibodies;

struct Case {
  std::string text;
  std::vector<Id> tokens;
  std::string wanted;
};
const Case cases[] = {
#include "antibody_numbers/cases.inc"
};

std::string text_of(const Answer& answer) {
  if (!answer.error.empty()) return answer.error;
  std::string text =
      answer.chain + " " + std::to_string(answer.start) + " " + std::to_string(answer.end) + " ";
  for (const auto& [number, residue] : answer.residues) {
    if (!number.insertion.empty()) text += std::to_string(number.number) + number.insertion;
    text += residue;
  }
  return text;
}
}  // namespace

TEST_CASE("numbers of antibodies are anarcii's, of the same tokens") {
  for (const Case& c : cases) {
    // Of each token but the first, and of one more: the tokens stand here up to the source's
    // length.
    const std::vector<float> scores(c.tokens.size(), 20), low(c.tokens.size(), 14);
    CHECK(text_of(numbered(source_tokens(c.text), c.tokens, scores)) == c.wanted);
    const Answer refused = numbered(source_tokens(c.text), c.tokens, low);
    CHECK(refused.chain == "F");
    CHECK(refused.error ==
          (c.wanted.find("Less than") == 0 ? c.wanted : "Score less than cut off."));
  }
  CHECK(source_tokens("EVa").empty());
  CHECK(source_tokens("BY") == std::vector<Id>{1, 23, 24, 2});
}

TEST_CASE("windows of long sequences begin up to 40 letters before the pattern of a domain") {
  const std::string domain =
      "C" + std::string(12, 'A') + "W" + std::string(60, 'G') + "C" + std::string(300, 'T');
  const auto found = pattern_windows(std::string(100, 'S') + domain);
  REQUIRE(found.size() == 1);
  CHECK(found[0].begin == 60);
  CHECK(found[0].letters.size() == 200);
  CHECK(found[0].scored == domain.substr(0, 75));
  CHECK(pattern_windows(std::string(300, 'C')).empty());
  CHECK(all_windows(std::string(210, 'A')).size() == 40);
  CHECK(first_above({14, 16, 26}) == 2);
  CHECK(first_above({14, 16, 17}) == 1);
  CHECK(first_above({14}) == -1);
  CHECK(first_or_best({2, 14, 14}) == 1);
}

TEST_CASE("the table of numbers has insertions in IMGT's order, and names in quotes") {
  Answer answer;
  answer.chain = "H";
  answer.residues = {{{111, "A"}, 'D'}, {{112, "A"}, 'E'}, {{112, ""}, 'F'}};
  const std::string text = table_of({"a, b"}, {answer});
  CHECK(text.find(",111,111A,112A,112,113") != std::string::npos);
  CHECK(text.find("\n\"a, b\",H,0,0,0,-") != std::string::npos);
  CHECK(text.find(",-,D,E,F,-") != std::string::npos);
}
