// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Headers of .npy files: what is made, what is read, what is refused, and whatever bytes may come.
#include <doctest/doctest.h>

#include <tessera/io/npy_header.hpp>
#include <tessera/plan/op/move/file_blocks.hpp>

#include "support/enumerate.hpp"
#include "support/reference.hpp"

using namespace tessera;
using namespace support;

namespace {
/// A file's beginning with the given dictionary.
std::string file_with(const std::string& dictionary, int major = 1) {
  std::string bytes("\x93NUMPY", 6);
  bytes += static_cast<char>(major);
  bytes += '\0';
  const std::string text = dictionary + "\n";
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return bytes + text;
}
NpyHeader read(const std::string& bytes, Index file_size = Index{1} << 40) {
  NpyHeader header;
  const std::string fault = detail::parse_npy_header(bytes, file_size, header);
  CHECK_MESSAGE(fault == "", fault);
  return header;
}
std::string fault(const std::string& bytes, Index file_size = Index{1} << 40) {
  NpyHeader header;
  return detail::parse_npy_header(bytes, file_size, header);
}
}  // namespace

TEST_CASE("a header is made as NumPy makes it") {
  // numpy.save of numpy.zeros((3, 4), "float32"), as NumPy 1.24 wrote it
  std::string golden(
      "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }",
      10 + 59);
  golden.resize(127, ' ');
  golden += '\n';
  std::string made = detail::npy_header_text(DType::f32, {3, 4});
  CHECK(made.size() % 64 == 0);
  CHECK(made.substr(10, 59) == golden.substr(10, 59));
  CHECK(made.back() == '\n');
  CHECK(read(golden) == NpyHeader{DType::f32, false, false, {3, 4}, 128});
}

TEST_CASE("what was made is read, for every element type and rank") {
  for (int i = 0; i < dtypes; ++i)
    for (const Extents& extents : {Extents{}, Extents{7}, Extents{0}, Extents{3, 0, 2},
                                   Extents{1, 2, 3, 4, 5, 6, 7, 8}, Extents{Index{1} << 33, 3}}) {
      const std::string text = detail::npy_header_text(static_cast<DType>(i), extents);
      CHECK(read(text) == NpyHeader{static_cast<DType>(i), false, false, extents,
                                    static_cast<Index>(text.size())});
    }
}

TEST_CASE("versions, orders, and spellings that are read") {
  for (const int major : {1, 2, 3}) {
    const NpyHeader header =
        read(file_with("{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3)}", major));
    CHECK(header.type == DType::f64);
    CHECK(header.big_endian);
    CHECK(header.fortran_order);
    CHECK(header.extents == Extents{2, 3});
  }
  CHECK(read(file_with("{\"shape\":(5L,),\"fortran_order\":False,\"descr\":\"|i1\",}")).extents ==
        Extents{5});
  CHECK(read(file_with("{'descr': '|V2', 'fortran_order': False, 'shape': ()}")).type ==
        DType::bf16);
  const auto of = [](const char* descr) {
    const std::string dictionary =
        "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': ()}";
    return read(file_with(dictionary)).type;
  };
  CHECK(of("|u1") == DType::u8);
  CHECK(of("<u2") == DType::u16);
  CHECK(of("<u4") == DType::u32);
  CHECK(of("<u8") == DType::u64);
  CHECK(detail::npy_header_text(DType::u64, {3}).find("'descr': '<u8'") != std::string::npos);
  CHECK(!read(file_with("{'descr': '>u1', 'fortran_order': False, 'shape': ()}")).big_endian);
  CHECK(read(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}"), 66).extents ==
        Extents{0, 3});
}

TEST_CASE("what is refused, and why") {
  const auto says = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(says(fault(""), "does not begin"));
  CHECK(says(fault("PK\x03\x04 an archive of arrays"), "npz"));
  CHECK(says(fault(std::string("\x93NUMPY\x01", 7)), "cut off"));
  CHECK(says(fault(file_with("{}", 4)), "format version"));
  CHECK(says(fault(file_with("{}")), "lacks"));
  CHECK(says(fault(file_with("")), "not a dictionary"));
  CHECK(says(fault(file_with("{'descr': '<f4'")), "broken off"));
  CHECK(says(fault(file_with("{'descr': '|O', 'fortran_order': False, 'shape': ()}")),
             "Python objects"));
  CHECK(says(fault(file_with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}")),
             "records"));
  CHECK(says(fault(file_with("{'descr': '<U7', 'fortran_order': False, 'shape': ()}")), "<U7"));
  CHECK(says(fault(file_with("{'descr': '<f16', 'fortran_order': False, 'shape': ()}")), "astype"));
  CHECK(says(fault(file_with("{'descr': '|f4', 'fortran_order': False, 'shape': ()}")), "|f4"));
  CHECK(
      says(fault(file_with("{'descr': '', 'fortran_order': False, 'shape': ()}")), "elements are"));
  CHECK(
      says(fault(file_with("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}")), "fortran_order"));
  CHECK(says(fault(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': 3}")), "tuple"));
  CHECK(
      says(fault(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}")), "tuple"));
  CHECK(
      says(fault(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}")), "tuple"));
  CHECK(says(
      fault(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}")),
      "8 dimensions"));
  CHECK(says(fault(file_with(
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}")),
             "64 bits"));
  CHECK(says(fault(file_with(
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}")),
             "2^63"));
  CHECK(says(fault(file_with(
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}")),
             "2^63"));
  CHECK(says(fault(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x")),
             "goes on"));
  CHECK(says(fault(file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}")),
             "more"));
  CHECK(says(fault(detail::npy_header_text(DType::f32, {3, 4}), 128 + 47),
             "promises 48 bytes of elements and"));
  std::string long_header = file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 2);
  long_header[11] = '\x7f';
  CHECK(says(fault(long_header), "too long"));
}

TEST_CASE("any bytes give a header that fits the file, or a fault") {
  Random random(seed_for("npy headers", 70));
  const std::string sound =
      file_with("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }");
  static constexpr char alphabet[] =
      "{}()[]'\",:<>|=0123456789 LTrueFalsefVOdescrshape\n\0\x93\xff";
  int accepted = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string bytes = random.chance(50) ? sound : detail::npy_header_text(DType::c128, {5, 1, 2});
    for (int k = 1 + random.below(4); k > 0; --k) {
      const auto at = static_cast<std::size_t>(random.below(static_cast<int>(bytes.size())));
      const char c = random.chance(70) ? alphabet[random.below(sizeof alphabet - 1)]
                                       : static_cast<char>(random.below(256));
      if (random.chance(60))
        bytes[at] = c;
      else if (random.chance(50))
        bytes.insert(at, 1, c);
      else
        bytes.erase(at, 1 + static_cast<std::size_t>(random.below(20)));
      if (bytes.empty()) bytes = "x";
    }
    NpyHeader header;
    const Index file_size = static_cast<Index>(bytes.size()) + random.below(1000);
    if (!detail::parse_npy_header(bytes, file_size, header).empty()) continue;
    ++accepted;
    CHECK(header.data_offset <= file_size);
    CHECK(volume(header.extents) * static_cast<Index>(size_of(header.type)) <=
          file_size - header.data_offset);
  }
  CHECK(accepted > 1000);
}

TEST_CASE("the runs of a box are its elements, in order; those of all writers cover the file") {
  for (const MeshShape& mesh : meshes(6, 2))
    for (const Extents& extents :
         {Extents{}, Extents{7}, Extents{5, 7}, Extents{3, 1, 4}, Extents{0, 3}, Extents{2, 3, 5}})
      for (const Sharding& s : shardings(extents.size(), mesh.rank())) {
        const TensorDesc desc{DType::f32, extents, s};
        for (const Sharding& way : {s, detail::file_sharding(desc, mesh)}) {
          std::vector<int> written(static_cast<std::size_t>(volume(extents)));
          for (int p = 0; p < mesh.processes(); ++p) {
            const Box box = block(extents, way, mesh, mesh.coordinates(p));
            Index next = 0;
            detail::for_each_run(extents, box, [&](Index in_file, Index in_block, Index count) {
              CHECK(in_block == next);
              next += count;
              if (!detail::writes_file(way, mesh, mesh.coordinates(p))) return;
              for (Index i = 0; i < count; ++i) ++written[static_cast<std::size_t>(in_file + i)];
            });
            CHECK(next == box.size());
          }
          CHECK(written == std::vector<int>(written.size(), 1));
        }
      }
}

TEST_CASE("files are read and written in long runs") {
  const MeshShape mesh{2, 4};
  CHECK(detail::file_sharding({DType::f32, {1000, 600}, Sharding{{}, {1}}}, mesh) ==
        Sharding{{0, 1}, {}});
  CHECK(detail::file_sharding({DType::f32, {1000, 600000}, Sharding{{0}, {1}}}, mesh) ==
        Sharding{{0}, {1}});
  CHECK(detail::file_sharding({DType::f32, {1000, 600000}, Sharding{{}, {1}}}, mesh) ==
        Sharding{{0}, {1}});
}
