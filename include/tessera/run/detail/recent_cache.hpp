// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Values by key, up to a number of bytes: the least recently used go first.
///
///     RecentCache<PlannedCall, detail::Prepared> cache;
///     const detail::Prepared& p = cache.get(key, 64 << 20, [&] { return detail::Prepared{...}; });
///
/// Laws: equal keys give the same object as long as it is kept; a look-up that finds its value
/// allocates nothing; the value used last is kept, however large. A reference holds until the next
/// get() that makes a value; to keep a value longer, keep its shared_from_this().
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/base/math.hpp>

namespace tessera::detail {

/// Open addressing over powers of two, and a list in order of the last use. A look-up may pass a
/// view of a `Key`: both have digest() and compare, and a Key is made from the view. `Value`
/// derives from std::enable_shared_from_this, and heap_bytes(value) returns its bytes outside the
/// object.
template <class Key, class Value> class RecentCache {
 public:
  RecentCache() = default;
  RecentCache(const RecentCache&) = delete;
  RecentCache& operator=(const RecentCache&) = delete;

  /// Returns the value for `key`, made by `make` when it is not there; then older ones go until all
  /// are within `limit` bytes, or it alone is left.
  template <class Asked, class Make>
  const Value& get(const Asked& key, Index limit, const Make& make) {
    if (slots_.empty()) slots_.resize(64);
    if (Entry* known = slots_[find(key)].get()) {
      ++found_;
      if (known != newest_) {
        unlink(*known);
        link(*known);
      }
      return *known;
    }
    auto entry = std::make_shared<Entry>(make(), key);
    entry->bytes = saturating_add(static_cast<Index>(sizeof(Entry)), heap_bytes(*entry));
    while (oldest_ != nullptr && saturating_add(bytes_, entry->bytes) > limit) evict();
    if (2 * (count_ + 1) > slots_.size()) grow();
    link(*entry);
    bytes_ = saturating_add(bytes_, entry->bytes);
    ++count_;
    ++made_;
    return *(slots_[find(key)] = std::move(entry));
  }

  std::size_t size() const { return count_; }
  Index bytes() const { return bytes_; }
  Index found() const { return found_; }
  Index made() const { return made_; }
  Index evicted() const { return made_ - static_cast<Index>(count_); }

 private:
  struct Entry : Value {
    template <class Asked>
    Entry(Value&& made_of, const Asked& by) : Value(std::move(made_of)), key(by) {}
    Key key;
    Index bytes = 0;
    Entry* older = nullptr;
    Entry* newer = nullptr;
  };
  template <class Asked> std::size_t home(const Asked& key) const {
    return static_cast<std::size_t>(key.digest()) & (slots_.size() - 1);
  }
  template <class Asked> std::size_t find(const Asked& key) const {
    std::size_t at = home(key);
    while (slots_[at] != nullptr && !(slots_[at]->key == key)) at = next(at);
    return at;
  }
  std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }
  void link(Entry& entry) {
    entry.older = newest_;
    entry.newer = nullptr;
    (newest_ != nullptr ? newest_->newer : oldest_) = &entry;
    newest_ = &entry;
  }
  void unlink(Entry& entry) {
    (entry.older != nullptr ? entry.older->newer : oldest_) = entry.newer;
    (entry.newer != nullptr ? entry.newer->older : newest_) = entry.older;
  }
  void evict() {
    Entry& entry = *oldest_;
    unlink(entry);
    bytes_ -= entry.bytes;
    --count_;
    std::size_t hole = find(entry.key);
    slots_[hole].reset();
    // An entry behind a hole moves into it, unless its home is behind the hole.
    for (std::size_t at = next(hole); slots_[at] != nullptr; at = next(at)) {
      const std::size_t mask = slots_.size() - 1;
      if (((at - home(slots_[at]->key)) & mask) < ((at - hole) & mask)) continue;
      slots_[hole] = std::move(slots_[at]);
      hole = at;
    }
  }
  void grow() {
    std::vector<std::shared_ptr<Entry>> old(2 * slots_.size());
    old.swap(slots_);
    for (auto& entry : old)
      if (entry != nullptr) {
        const std::size_t at = find(entry->key);
        slots_[at] = std::move(entry);
      }
  }

  std::vector<std::shared_ptr<Entry>> slots_;
  Entry* newest_ = nullptr;
  Entry* oldest_ = nullptr;
  std::size_t count_ = 0;
  Index bytes_ = 0;
  Index found_ = 0;
  Index made_ = 0;
};

}  // namespace tessera::detail
