// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A pointer to what its holder owns, of a type that the holder's header need not know. It does
/// what std::unique_ptr does in a class that is not copied, with 3 instantiations in place of 190.
///
///     Owned<State> state_;            // struct State is declared
///     state_.reset(new State);        // where it is defined, as the holder's destructor is
///
/// Laws: what it points to ends with it, once.

namespace tessera::detail {

template <class T> class Owned {
 public:
  Owned() = default;
  explicit Owned(T* owned) : owned_(owned) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { reset(); }

  void reset(T* owned = nullptr) {
    static_assert(sizeof(T) > 0, "[tessera] what ends here must be defined here");
    delete owned_;
    owned_ = owned;
  }
  T* operator->() const { return owned_; }
  T& operator*() const { return *owned_; }

 private:
  T* owned_ = nullptr;
};

}  // namespace tessera::detail
