// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The pins of tensors that have no number yet (op/constrain.hpp).
///
///     pins.add(x, to, where);   pins.tell(x.storage(), number);   pins.put_into(program);
///
/// Laws: a pin keeps no tensor alive; a tensor that no operator has is not pinned.
#include <memory>
#include <utility>
#include <vector>

#include <tessera/program/program.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

class Pins {
 public:
  /// `opens`: the tensor's type says so, and leaves what is open to the choice.
  void add(const TensorCore& x, const OpenSharding& to, Where where, bool opens = false) {
    for (const Pin& pin : pins_)
      if (is(pin, x.storage()) && pin.pin.to == to && pin.pin.opens == opens) return;
    pins_.push_back({x.storage(), {-1, to, where, opens}});
  }
  bool empty() const { return pins_.empty(); }
  /// Says which number a tensor has.
  void tell(const std::weak_ptr<const Storage>& storage, int number) {
    for (Pin& pin : pins_)
      if (pin.pin.tensor < 0 && is(pin, storage)) pin.pin.tensor = number;
  }
  void put_into(Program& program) const {
    for (const Pin& pin : pins_)
      if (pin.pin.tensor >= 0) program.pin(pin.pin);
  }

 private:
  struct Pin {
    std::weak_ptr<const Storage> storage;  ///< so that no other has its address
    TensorPin pin;
  };
  static bool is(const Pin& pin, const std::weak_ptr<const Storage>& storage) {
    return !pin.storage.owner_before(storage) && !storage.owner_before(pin.storage);
  }

  std::vector<Pin> pins_;
};

}  // namespace tessera::detail
