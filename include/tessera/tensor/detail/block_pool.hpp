// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Small objects of one size, kept for reuse: they hold the reference counts of tensors' storage,
/// so that a repeated operator does not allocate from the heap.
///
///     auto s = std::allocate_shared<detail::Storage>(PoolAllocator<detail::Storage>(pool), ...);
///
/// Laws: a pool lives as long as its owner or its last object, whichever is longer. It is not for
/// several threads at once; neither is the arena of the tensors' blocks.
#include <cstddef>
#include <new>

namespace tessera::detail {

class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  void* take(std::size_t bytes) {
    void* block = nullptr;
    if (bytes == bytes_ && free_ != nullptr) {
      block = free_;
      free_ = free_->next;
    } else {
      if (bytes_ == 0) bytes_ = bytes;
      block = ::operator new(bytes);
    }
    ++out_;
    return block;
  }
  void give(void* block, std::size_t bytes) {
    if (bytes == bytes_)
      free_ = new (block) Free{free_};
    else
      ::operator delete(block);
    --out_;
    end_if_over();
  }
  /// Releases the owner's hold; the pool ends with its last object.
  void abandon() {
    owned_ = false;
    end_if_over();
  }

 private:
  struct Free {
    Free* next;
  };
  ~BlockPool() {
    while (free_ != nullptr) {
      Free* next = free_->next;
      ::operator delete(free_);
      free_ = next;
    }
  }
  void end_if_over() {
    if (!owned_ && out_ == 0) delete this;
  }

  Free* free_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t out_ = 0;
  bool owned_ = true;
};

/// The owner's hold on a pool.
class PoolOwner {
 public:
  PoolOwner() : pool_(new BlockPool) {}
  PoolOwner(const PoolOwner&) = delete;
  PoolOwner& operator=(const PoolOwner&) = delete;
  ~PoolOwner() { pool_->abandon(); }
  BlockPool& pool() { return *pool_; }

 private:
  BlockPool* pool_;
};

template <class T> class PoolAllocator {
 public:
  using value_type = T;
  explicit PoolAllocator(BlockPool& pool) : pool_(&pool) {}
  template <class U>
  PoolAllocator(const PoolAllocator<U>& other) : pool_(&other.pool()) {}  // NOLINT

  T* allocate(std::size_t n) { return static_cast<T*>(pool_->take(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) { pool_->give(block, n * sizeof(T)); }
  BlockPool& pool() const { return *pool_; }
  template <class U> bool operator==(const PoolAllocator<U>& other) const {
    return pool_ == &other.pool();
  }

 private:
  BlockPool* pool_;
};

}  // namespace tessera::detail
