// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A process's block of a tensor, to and from a file that has the tensor row-major: in pieces of
/// the file, in host memory, with sums that stand for the bytes.
///
///     save_pieces(block, progress, [&](Index offset, Index bytes, const char* piece) { file.write(piece, bytes, begin + offset); });
///     fill_pieces(block, progress, [&](Index offset, Index bytes, char* piece) { file.read(piece, bytes, begin + offset); });
///
/// Laws: the pieces of the blocks of all processes that write are disjoint and cover the tensor;
/// the sums of the processes add up to those of the whole tensor, however it is split.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <tessera/base/dtype.hpp>
#include <tessera/comm/complaint.hpp>
#include <tessera/plan/op/move/file_blocks.hpp>
#include <tessera/run/call_site.hpp>
#include <tessera/tensor/host_copy.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

using FileProgress = std::function<void(Index done, Index total)>;
inline constexpr Index file_piece_bytes = Index{16} << 20;

/// Calls move(offset in the file's tensor, block memory, bytes) piece by piece.
template <class Move>
void for_each_piece(const TensorCore& block, const FileProgress& progress, const Move& move) {
  const Index unit = static_cast<Index>(size_of(block.type()));
  const Index total = block.local_size() * unit;
  Index done = 0;
  if (progress) progress(0, total);
  for_each_run(block.extents(), block.box(), [&](Index in_file, Index in_block, Index count) {
    for (Index first = 0; first < count * unit; first += file_piece_bytes) {
      const Index bytes = min_of(file_piece_bytes, count * unit - first);
      move(in_file * unit + first, static_cast<char*>(block.data()) + in_block * unit + first,
           bytes);
      done += bytes;
      if (progress) progress(done, total);
    }
  });
}

/// Fills a block: read(offset, bytes, memory) gets host memory, which it fills.
template <class Read>
void fill_pieces(const TensorCore& block, const FileProgress& progress, const Read& read) {
  std::vector<char> piece;
  for_each_piece(block, progress, [&](Index offset, char* data, Index bytes) {
    char* to = data;
    if constexpr (!kernels_on_host) {
      piece.resize(static_cast<std::size_t>(bytes));
      to = piece.data();
    }
    read(offset, bytes, to);
    if constexpr (!kernels_on_host) copy_from_host(data, to, bytes);
  });
}

/// Gives a block's elements to write(offset, bytes, memory), in host memory.
template <class Write>
void save_pieces(const TensorCore& block, const FileProgress& progress, const Write& write) {
  std::vector<char> piece;
  for_each_piece(block, progress, [&](Index offset, char* data, Index bytes) {
    const char* from = data;
    if constexpr (!kernels_on_host) {
      piece.resize(static_cast<std::size_t>(bytes));
      copy_to_host(piece.data(), data, bytes);
      from = piece.data();
    }
    write(offset, bytes, from);
  });
}

/// Gives elements the machine's byte order, and makes bools 0 or 1.
inline void adapt_elements(DType type, bool big_endian, char* data, Index bytes) {
  if (is_boolean(type))
    for (Index i = 0; i < bytes; ++i) data[i] = data[i] != 0 ? 1 : 0;
  if (!big_endian) return;
  const Index unit = static_cast<Index>(size_of(type)) / (is_complex(type) ? 2 : 1);
  for (Index i = 0; i < bytes; i += unit) std::reverse(data + i, data + i + unit);
}

/// Sums over pieces of a tensor's bytes. A sum is over each element together with its place, so
/// that an element that changes, or trades places, changes its piece's sum, and that processes may
/// add theirs. An element of a complex type counts as two.
class PieceSums {
 public:
  PieceSums(DType type, Index bytes, Index piece_bytes)
      : unit_(static_cast<Index>(size_of(type)) / (is_complex(type) ? 2 : 1)),
        piece_(piece_bytes),
        sums_(static_cast<std::size_t>(bytes / piece_bytes + (bytes % piece_bytes != 0 ? 1 : 0))) {}

  /// Adds the elements at `offset` bytes into the tensor.
  void add(Index offset, Index bytes, const char* data) {
    for (Index first = 0; first < bytes;) {
      const Index begin = offset + first;
      const Index piece = begin / piece_;
      const Index end = min_of(offset + bytes, (piece + 1) * piece_);
      sums_[static_cast<std::size_t>(piece)] +=
          sum(begin / unit_, (end - begin) / unit_, data + first);
      first = end - offset;
    }
  }
  std::vector<std::uint64_t>& values() { return sums_; }

 private:
  template <class Word> static std::uint64_t sum_of(Index first, Index count, const char* data) {
    std::uint64_t total = 0;
    for (Index i = 0; i < count; ++i) {
      Word word;
      std::memcpy(&word, data + i * static_cast<Index>(sizeof(Word)), sizeof(Word));
      // As in splitmix64: a bijection of the word for each place.
      std::uint64_t x = word + static_cast<std::uint64_t>(first + i + 1) * 0x9E37'79B9'7F4A'7C15u;
      x = (x ^ x >> 30) * 0xBF58'476D'1CE4'E5B9u;
      x = (x ^ x >> 27) * 0x94D0'49BB'1331'11EBu;
      total += x ^ x >> 31;
    }
    return total;
  }
  std::uint64_t sum(Index first, Index count, const char* data) const {
    return unit_ == 1   ? sum_of<std::uint8_t>(first, count, data)
           : unit_ == 2 ? sum_of<std::uint16_t>(first, count, data)
           : unit_ == 4 ? sum_of<std::uint32_t>(first, count, data)
                        : sum_of<std::uint64_t>(first, count, data);
  }

  Index unit_;
  Index piece_;
  std::vector<std::uint64_t> sums_;
};

/// Throws FileError on every process unless `digest`, which stands for what a process has read of a
/// file, is the same on all. Communication: two all-reduces of an integer, in no ledger.
inline void require_one_file(MeshCore& mesh, std::uint64_t digest, const std::string& path,
                             CallSite site) {
  const auto fact = static_cast<std::int64_t>(digest >> 1);
  const bool alike = mesh.least(fact, site.where) == -mesh.least(-fact, site.where);
  fail_together<FileError>(mesh,
                           alike ? ""
                                 : std::string(site.label) + ": \"" + path +
                                       "\" is another file on some processes; name one on a file "
                                       "system that all share",
                           site.where);
}

}  // namespace tessera::detail
