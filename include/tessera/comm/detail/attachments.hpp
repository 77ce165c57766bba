// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One object of each type, made at the first request.
///
///     attachments.get<PlanCache>()
///
/// Laws: get<T>() is always the same object, until clear(), which ends them in reverse order.
#include <memory>
#include <utility>
#include <vector>

namespace tessera::detail {

class Attachments {
 public:
  Attachments() = default;
  Attachments(const Attachments&) = delete;
  Attachments& operator=(const Attachments&) = delete;
  ~Attachments() { clear(); }

  template <class T> T& get() {
    for (const auto& [tag, holder] : slots_)
      if (tag == &tag_of<T>) return static_cast<Holder<T>&>(*holder).value;
    auto* const holder = new Holder<T>;  // one type of pointer for all
    slots_.emplace_back(&tag_of<T>, std::unique_ptr<HolderBase>(holder));
    return holder->value;
  }

  /// Returns the T, or null where none has been made.
  template <class T> const T* find() const {
    for (const auto& [tag, holder] : slots_)
      if (tag == &tag_of<T>) return &static_cast<const Holder<T>&>(*holder).value;
    return nullptr;
  }

  void clear() {
    while (!slots_.empty()) slots_.pop_back();
  }

 private:
  struct HolderBase {
    virtual ~HolderBase() = default;
  };
  template <class T> struct Holder final : HolderBase { T value{}; };
  template <class T> static constexpr char tag_of = 0;  // its address is the type's key

  std::vector<std::pair<const void*, std::unique_ptr<HolderBase>>> slots_;
};

}  // namespace tessera::detail
