// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Headers of .safetensors files: what is made, what is read, what is refused, and whatever bytes
// may come.
#include <doctest/doctest.h>

#include <tessera/io/safetensors_header.hpp>

#include "support/enumerate.hpp"

using namespace tessera;
using namespace support;

namespace {
std::string file_with(const std::string& json, Index data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return bytes + json + std::string(static_cast<std::size_t>(data), '\0');
}
std::string fault(const std::string& json, Index data) {
  SafetensorsHeader header;
  const std::string bytes = file_with(json, data);
  return detail::parse_safetensors(bytes, static_cast<Index>(bytes.size()), header);
}
std::string tensor(const std::string& name, const std::string& rest) {
  return "\"" + name + "\":{" + rest + "}";
}
const std::string floats = R"("dtype":"F32","shape":[2,3],"data_offsets":[0,24])";
}  // namespace

TEST_CASE("safetensors: what was made is read, with every element type and odd names") {
  SafetensorsHeader header;
  header.metadata = {{"step", "12"}, {"quoted \"name\"", "line\nand \\ and \x01"}, {"", "ä"}};
  Index end = 0;
  for (int i = 0; i < dtypes; ++i) {
    const DType type = static_cast<DType>(i);
    if (is_complex(type)) continue;
    for (const std::vector<Index>& shape :
         {std::vector<Index>{}, {7}, {3, 0, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
      const Index bytes = detail::safetensors_bytes(type, shape);
      header.tensors.push_back({"layers." + std::to_string(header.tensors.size()) + "\t.weight",
                                type, shape, end, end + bytes});
      end += bytes;
    }
  }
  const std::string text = detail::safetensors_text(header);
  CHECK(text.size() % 64 == 0);
  header.data_offset = static_cast<Index>(text.size());
  SafetensorsHeader read;
  CHECK(detail::parse_safetensors(text, header.data_offset + end, read) == "");
  CHECK(read == header);
  REQUIRE(read.find("layers.3\t.weight") != nullptr);
  CHECK(read.find("layers.3\t.weight")->shape.size() == 9);
  CHECK(read.find("layers.3") == nullptr);
}

TEST_CASE("safetensors: escapes, spaces, and tensors in any order") {
  SafetensorsHeader header;
  const std::string text = file_with(
      " { \"b\\u00e4\\ud83d\\ude00\\/\" : { \"shape\" : [ ] , \"data_offsets\" : [ 1 , 2 ] ,\n"
      "\"dtype\":\"U8\" } , \"a\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}, "
      "\"__metadata__\" : {} }  \n",
      2);
  REQUIRE(detail::parse_safetensors(text, static_cast<Index>(text.size()), header) == "");
  REQUIRE(header.tensors.size() == 2);
  CHECK(header.tensors[0].name == "a");
  CHECK(header.tensors[1].name == "bä😀/");
  CHECK(header.tensors[1].shape.empty());
}

TEST_CASE("safetensors: what is not sound is refused with the reason") {
  CHECK(fault("{" + tensor("x", floats) + "}", 24) == "");
  CHECK(fault("{}", 0) == "");
  const std::pair<std::string, std::string> wrong[] = {
      {"[]", "where an object should begin"},
      {"{" + tensor("x", floats) + "", "where a comma should stand"},
      {"{" + tensor("x", floats) + "} x", "goes on after"},
      {"{" + tensor("x", floats) + "," +
           tensor("x", R"("dtype":"F32","shape":[0],"data_offsets":[24,24])") + "}",
       "\"x\" stands twice"},
      {"{" + tensor("x", R"("dtype":"F32","shape":[2,3])") + "}", "lacks one of"},
      {"{" + tensor("x", R"("dtype":"F32","dtype":"F32","shape":[2,3],"data_offsets":[0,24])") +
           "}",
       "has the key \"dtype\" twice"},
      {"{" + tensor("x", R"("dtype":"F32","shape":[2,3],"data_offsets":[0,24],"more":[1,{"a":})") +
           "}",
       "has a broken value of \"more\""},
      {"{" +
           tensor("x", R"("dtype":"F32","shape":[2,3],"data_offsets":[0,24],"more":)" +
                           std::string(1000, '[')) +
           "}",
       "has a broken value of \"more\""},
      {"{" + tensor("x", R"("dtype":"","shape":[24],"data_offsets":[0,24])") + "}",
       "has a dtype without a name"},
      {"{" + tensor("x", R"("dtype":"F8_E4M3","shape":[24],"data_offsets":[0,23])") + "}",
       "promises 23 bytes of elements and 24 are there"},
      {"{\"__metadata__\":nul," + tensor("x", floats) + "}", "value of \"__metadata__\" is broken"},
      {"{" + tensor("x", R"("dtype":"F32","shape":[2,-3],"data_offsets":[0,24])") + "}",
       "not a list of sizes"},
      {"{" + tensor("x", R"("dtype":"F32","shape":[9999999999,9999999999],"data_offsets":[0,24])") +
           "}",
       "its shape and type take"},
      {"{" + tensor("x", R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,24])") +
           "}",
       "not a list of sizes"},
      {"{" + tensor("x", R"("dtype":"F32","shape":[2,3],"data_offsets":[0,24,48])") + "}",
       "no pair"},
      {"{" + tensor("x", R"("dtype":"F32","shape":[2,3],"data_offsets":[24,0])") + "}",
       "one after the other"},
      {"{" + tensor("x", R"("dtype":"U8","shape":[23],"data_offsets":[1,24])") + "}",
       "the tensor before it ends at 0"},
      {"{" + tensor("x", R"("dtype":"U8","shape":[23],"data_offsets":[0,23])") + "}",
       "promises 23 bytes of elements and 24 are there"},
      {"{\"__metadata__\":{\"a\":+1}," + tensor("x", floats) + "}", "value of \"a\" is broken"},
      {"{\"version\":[1," + tensor("x", floats) + "}", "value of \"version\" is broken"},
      {"{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}," + tensor("x", floats) + "}",
       "metadata \"a\" stands twice"},
      {"{\"\\ud83d\":{" + floats + "}}", "where a name should stand"},
      {"{\"a\nb\":{" + floats + "}}", "where a name should stand"},
      {"{\"a\\x\":{" + floats + "}}", "where a name should stand"},
  };
  for (const auto& pair : wrong) {
    const std::string said = fault(pair.first, 24);
    CHECK_MESSAGE(said.find(pair.second) != std::string::npos, pair.first << ": " << said);
  }
  SafetensorsHeader header;
  CHECK(detail::parse_safetensors("", 0, header) != "");
  CHECK(detail::parse_safetensors("1234567", 7, header) != "");
  CHECK(detail::parse_safetensors(std::string(64, '\xff'), 64, header) != "");
}

TEST_CASE("safetensors: what other writers put there is passed by") {
  const auto header = [](const std::string& json, Index data) {
    SafetensorsHeader read;
    const std::string bytes = file_with(json, data);
    CHECK(detail::parse_safetensors(bytes, static_cast<Index>(bytes.size()), read) == "");
    return read;
  };
  CHECK(header("{\"__metadata__\":null," + tensor("x", floats) + "}", 24).metadata.empty());
  CHECK(header("{\"version\":2,\"tags\":[\"a\"]," + tensor("x", floats) + "}", 24).find("x") !=
        nullptr);
  const SafetensorsHeader facts = header(
      "{\"__metadata__\":{\"a\":null,\"b\":1.5,\"c\":\"d\",\"e\":{}}," + tensor("x", floats) + "}",
      24);
  CHECK(facts.metadata == std::map<std::string, std::string>{{"c", "d"}});
  const std::string more =
      R"(,"more":{"a":[1,-2.5e-3,0,1E+9,true,false,null,{}],"b":"]}","c":[]},"less":0.5)";
  CHECK(header("{" + tensor("x", floats + more) + "}", 24).find("x")->shape ==
        std::vector<Index>{2, 3});
  const SafetensorsHeader narrow =
      header("{" + tensor("q", R"("dtype":"F4","shape":[4,4],"data_offsets":[24,32])") + "," +
                 tensor("x", floats) + "}",
             32);
  CHECK(narrow.find("q")->other_type == "F4");
  CHECK(narrow.find("x")->other_type == "");
}

TEST_CASE("UTF-8 is told from other bytes, and printed") {
  using detail::is_utf8, detail::printable;
  for (const char* text : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    CHECK(is_utf8(text));
  for (const char* text :
       {"\x80", "\xc1\xbf", "\xc2", "\xc2z", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82"})
    CHECK_FALSE(is_utf8(text));
  CHECK(printable("Gewichte für Käse €😀") == "Gewichte für Käse €😀");
  CHECK(printable("a\nb\xff\x7f") == "a?b??");
  CHECK(printable(std::string(61, 'x')) == std::string(60, 'x') + "...");
}

TEST_CASE("safetensors: any bytes give a header or a fault") {
  Random random(seed_for("safetensors headers", 90));
  const std::string sound = "{\"__metadata__\":{\"k\":\"\\u00e4\"}," + tensor("x", floats) + "," +
                            tensor("y", R"("dtype":"I64","shape":[1],"data_offsets":[24,32])") +
                            "}";
  int accepted = 0;
  for (int i = 0; i < 20000 / share; ++i) {
    std::string json = sound;
    for (int k = 0, changes = 1 + random.below(3); k < changes; ++k) {
      const auto at = static_cast<std::size_t>(random.below(static_cast<int>(json.size())));
      if (random.chance(30))
        json.erase(at, 1);
      else if (random.chance(50))
        json[at] = "{}[]\",:\\u0189eE -"[random.below(17)];
      else
        json[at] = static_cast<char>(random.below(256));
    }
    SafetensorsHeader header;
    const std::string bytes = file_with(json, 32);
    if (detail::parse_safetensors(bytes, static_cast<Index>(bytes.size()), header) != "") continue;
    ++accepted;
    Index end = 0;
    for (const SafetensorsEntry& entry : header.tensors) {
      if (entry.begin != end) end = -1;
      end = entry.end;
    }
    CHECK(end == 32);
  }
  CHECK(accepted > 100 / share);
}
