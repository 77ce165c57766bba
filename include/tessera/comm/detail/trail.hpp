// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The latest operators that a process has begun, in memory that the others of its node can read:
/// each can compare its own with theirs, and name both in words when they differ
/// (comm/detail/mesh_history.hpp compares). The words of equal calls are written once.
///
///     trail.write({mesh, 7, digest, text}, [&] { return "sum ij->j of float 6x6"; });
///     if (trail.find(mesh, 7, other)) ...  trail.text(other.text)
///
/// Laws: writing never waits; the result of find() was written in one piece; operators that are too
/// old are not found, but how far the process is in the latest meshes is known without them.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace tessera::detail {

/// An operator that a process has begun.
struct Called {
  std::uint64_t mesh = 0;     ///< the same number on all processes of the mesh; not 0
  std::uint64_t ordinal = 0;  ///< counts the operators of its mesh that communicate, from 1
  std::uint64_t digest = 0;   ///< of this and all earlier operators
  std::uint64_t text = 0;     ///< of its words
  std::uint64_t operands =
      0;  ///< the numbers of its first tensors, 16 bits each, to tell them apart
};

/// Lies in memory shared by processes: words are atomic and hold no addresses. All zero is a valid
/// start. Written by one process.
class alignas(64) Trail {
 public:
  static constexpr std::uint64_t length = 64;     ///< operators that are remembered
  static constexpr std::size_t text_bytes = 256;  ///< of the words of one, with the last zero
  static constexpr std::uint64_t meshes = 32;     ///< whose latest operators are remembered

  /// `make()` returns the words; it is called when they are not known yet.
  template <class Make> void write(const Called& called, const Make& make) {
    note_text(called.text, called.ordinal, make);
    note_latest(called);
    Entry& to = entry(called.mesh, called.ordinal);
    to.ordinal.store(0, std::memory_order_release);
    to.mesh.store(called.mesh, std::memory_order_release);
    to.digest.store(called.digest, std::memory_order_release);
    to.text.store(called.text, std::memory_order_release);
    to.operands.store(called.operands, std::memory_order_release);
    // When two processes write and then read each other's, at least one sees the other's.
    to.ordinal.store(called.ordinal, std::memory_order_seq_cst);
  }

  /// Returns whether operator `ordinal` of `mesh` is recorded now: begun, and not overwritten.
  bool find(std::uint64_t mesh, std::uint64_t ordinal, Called& called) const {
    const Entry& from = entry(mesh, ordinal);
    if (from.ordinal.load(std::memory_order_seq_cst) != ordinal) return false;
    called = {from.mesh.load(std::memory_order_acquire), ordinal,
              from.digest.load(std::memory_order_acquire),
              from.text.load(std::memory_order_acquire),
              from.operands.load(std::memory_order_acquire)};
    return called.mesh == mesh && from.ordinal.load(std::memory_order_acquire) == ordinal;
  }

  /// Returns whether the process has begun operator `ordinal` of `mesh`, or may have: of a mesh to
  /// which `meshes` newer ones have come nobody knows. A newer mesh has a greater number.
  bool may_have_reached(std::uint64_t mesh, std::uint64_t ordinal) const {
    for (const Latest& one : latest_) {
      if (one.mesh.load(std::memory_order_acquire) != mesh) continue;
      const std::uint64_t reached = one.ordinal.load(std::memory_order_acquire);
      if (one.mesh.load(std::memory_order_acquire) == mesh) return reached >= ordinal;
    }
    return mesh <= forgotten_.load(std::memory_order_acquire);
  }

  /// Returns the words for which `text` stands, or nothing when they have been overwritten.
  std::string text(std::uint64_t text) const {
    for (std::size_t way = 0; way < ways; ++way) {
      const std::size_t at = first_of(text) + way;
      if (known_[at].load(std::memory_order_acquire) != text) continue;
      char words[text_bytes];
      for (std::size_t i = 0; i < text_bytes / 8; ++i) {
        const std::uint64_t word = texts_[at].words[i].load(std::memory_order_acquire);
        std::memcpy(words + 8 * i, &word, 8);
      }
      words[text_bytes - 1] = '\0';
      if (known_[at].load(std::memory_order_acquire) == text) return words;
    }
    return {};
  }

 private:
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> ordinal;  ///< 0 while the other fields are being written
    std::atomic<std::uint64_t> mesh;
    std::atomic<std::uint64_t> digest;
    std::atomic<std::uint64_t> text;
    std::atomic<std::uint64_t> operands;
  };
  struct Text {
    std::atomic<std::uint64_t> words[text_bytes / 8];
  };
  /// How far the process is in a mesh.
  struct Latest {
    std::atomic<std::uint64_t> mesh;  ///< 0 while the other field is being written
    std::atomic<std::uint64_t> ordinal;
  };
  static constexpr std::size_t ways = 4;
  static constexpr std::size_t texts = 256;

  static std::size_t first_of(std::uint64_t text) {
    return static_cast<std::size_t>(text % (texts / ways)) * ways;
  }
  static std::size_t place(std::uint64_t mesh, std::uint64_t ordinal) {
    return static_cast<std::size_t>((mesh * 21 + ordinal) % length);
  }
  Entry& entry(std::uint64_t mesh, std::uint64_t ordinal) { return entries_[place(mesh, ordinal)]; }
  const Entry& entry(std::uint64_t mesh, std::uint64_t ordinal) const {
    return entries_[place(mesh, ordinal)];
  }

  std::uint64_t number(std::size_t i) const {
    return latest_[i].mesh.load(std::memory_order_relaxed);
  }
  void note_latest(const Called& called) {
    std::size_t at = 0;
    for (; at < meshes; ++at) {
      if (number(at) == called.mesh || number(at) == 0) break;
    }
    if (at == meshes) {  // in place of the oldest one, which has the least number
      at = 0;
      for (std::size_t i = 1; i < meshes; ++i)
        if (number(i) < number(at)) at = i;
      if (number(at) > forgotten_.load(std::memory_order_relaxed))
        forgotten_.store(number(at), std::memory_order_release);
      latest_[at].mesh.store(0, std::memory_order_release);
    }
    latest_[at].ordinal.store(called.ordinal, std::memory_order_release);
    latest_[at].mesh.store(called.mesh, std::memory_order_release);
  }

  template <class Make>
  void note_text(std::uint64_t text, std::uint64_t ordinal, const Make& make) {
    const std::size_t first = first_of(text);
    for (std::size_t way = 0; way < ways; ++way)
      if (known_[first + way].load(std::memory_order_relaxed) == text) return;
    std::size_t at = first + static_cast<std::size_t>(ordinal % ways);
    for (std::size_t way = 0; way < ways; ++way)
      if (known_[first + way].load(std::memory_order_relaxed) == 0) at = first + way;
    const std::string made = make();
    char words[text_bytes] = {};
    std::memcpy(words, made.data(), made.size() < text_bytes ? made.size() : text_bytes - 1);
    known_[at].store(0, std::memory_order_release);
    for (std::size_t i = 0; i < text_bytes / 8; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, words + 8 * i, 8);
      texts_[at].words[i].store(word, std::memory_order_release);
    }
    known_[at].store(text, std::memory_order_release);
  }

  Entry entries_[length];
  Latest latest_[meshes];
  std::atomic<std::uint64_t> forgotten_;     ///< the newest mesh whose place another has taken
  std::atomic<std::uint64_t> known_[texts];  ///< the digest of each text; 0: none
  Text texts_[texts];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace tessera::detail
