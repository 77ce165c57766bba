// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The text of the example that translates: what is read, and what losses are compared on.
#include <cstdint>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <doctest/doctest.h>

#include "../../examples/translate/text.hpp"

using namespace translation;

TEST_CASE("as many sentences of each language and length as another text has, the first ones") {
  const auto rows = [](Index length, Index count, Id first) {
    Rows made{length, {}, {}};
    for (Index i = 0; i < length * count; ++i) {
      made.source.push_back(first + static_cast<Id>(i));
      made.english.push_back(-first - static_cast<Id>(i));
    }
    return made;
  };
  const Text learned{{{"de", 9, {rows(2, 5, 10), rows(4, 3, 50), rows(8, 2, 90)}},
                      {"is", 7, {rows(4, 1, 200)}},
                      {"lb", 5, {rows(2, 2, 300)}}}};
  const Text held_out{{{"is", 0, {rows(4, 6, 0)}}, {"de", 0, {rows(4, 2, 0), rows(2, 3, 0)}}}};
  const Text some = as_many_as(held_out, learned);
  REQUIRE(some.languages.size() == 3);
  CHECK(some.languages[0].rows[0].source == std::vector<Id>{10, 11, 12, 13, 14, 15});
  CHECK(some.languages[0].rows[0].english == std::vector<Id>{-10, -11, -12, -13, -14, -15});
  CHECK(some.languages[0].rows[1].count() == 2);
  CHECK(some.languages[0].rows[2].count() == 0);
  CHECK(some.languages[1].rows[0].source == std::vector<Id>{200, 201, 202, 203});
  CHECK(some.languages[2].sentences() == 0);
}

TEST_CASE("a file of text whose lengths are no numbers is refused, with what it says") {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("tessera_text" + std::to_string(::getpid()) + ".safetensors");
  const auto read = [&](const std::string& lengths) {
    const std::string header =
        R"({"__metadata__":{"source_vocabulary":"9","english_vocabulary":"9","padding":"0",)"
        R"("begin":"1","end":"2","languages":" de  is ","characters.de":"5","characters.is":"6",)"
        R"("lengths":")" +
        lengths + "\"}}";
    const std::uint64_t size = header.size();
    std::ofstream to(path, std::ios::binary);
    to.write(reinterpret_cast<const char*>(&size), sizeof size);
    to << header;
    to.close();
    return read_text(path, {});
  };
  const Text text = read("8 16");
  REQUIRE(text.languages.size() == 2);
  CHECK(text.languages[1].name == "is");
  CHECK(text.languages[1].characters == 6);
  for (const char* bad : {"8 16x", "eight", "99999999999999999999"})
    CHECK_THROWS_WITH_AS((void)read(bad), doctest::Contains("of its \"lengths\"; give"),
                         UsageError);
  std::filesystem::remove(path);
}
