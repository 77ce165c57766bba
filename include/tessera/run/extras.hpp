// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A call of an operator as a value: operator, operands, place, and what it has beside them.
///
///     detail::run({ops::Reshard{to}, {&x}, {"reshard", where}, detail::into(y)});
///
/// Laws: nothing here but the destination is part of the call's plan.
#include <memory>
#include <vector>

#include <tessera/base/box.hpp>
#include <tessera/base/local_work.hpp>
#include <tessera/run/call_site.hpp>
#include <tessera/run/plan_cache.hpp>
#include <tessera/run/told_numbers.hpp>

namespace tessera::detail {

struct PullBack;

/// The type-erased kernels of a function that the user gives: run(context, map, out, inputs) for a
/// map step, fold and scan for a running join, make for the block of a tensor of these extents;
/// keep(context, nullptr) returns a copy of the function, and keep(nullptr, copy) ends that.
struct MapKernel {
  void (*run)(const void* context, const LocalMap& map, void* out, const void* const* in) = nullptr;
  const void* context = nullptr;
  void (*fold)(const void* context, const LocalScan& work, const void* from, void* to) = nullptr;
  void (*scan)(const void* context, const LocalScan& work, const void* from, const void* earlier,
               void* to) = nullptr;
  void* (*keep)(const void* context, void* copy) = nullptr;
  void (*make)(const void* context, const Box& block, const Extents& whole, void* out) = nullptr;
  /// Tells functions apart: one address for each type of function on elements of given types.
  const void* identity = nullptr;
  /// The derivative that the function brings (run/pull_back.hpp) by an operand of a map, or a
  /// function that the adjoint of a norm asks for (NormPull); null: it brings none.
  PullBack (*pull)(const void* context, int asked) = nullptr;
  /// Tells the function's numbers, which processes compare; null: it has none.
  TellNumbers numbers = nullptr;
  /// As run, where the first input is float: a product of half types, in its epilogue.
  void (*run_wide)(const void* context, const LocalMap& map, void* out,
                   const void* const* in) = nullptr;
  bool given_infinity = false;  ///< the caller gave the function an infinite number
  bool reads_index = false;     ///< the function knows the place of the result's block
};

class Started;

/// The storage of each result of a call, before there is one.
using Promises = FixedVector<std::shared_ptr<Storage>, max_operands + 1>;

/// MapKernel::keep of a function of type F.
template <class F> void* keep_function(const void* function, void* copy) {
  if (function != nullptr) return new F(*static_cast<const F*>(function));
  delete static_cast<F*>(copy);
  return nullptr;
}

/// MapKernel::keep of a function that lives as long as the program: it is its own copy.
inline void* keep_as_it_is(const void* function, void*) { return const_cast<void*>(function); }

/// What a call has beside its operator and operands, and what is no part of its plan but for the
/// destination.
struct Extras {
  double scale = 1;       ///< by which its sum is multiplied
  MapKernel kernel = {};  ///< the function of its elementwise step
  /// The tensor that it writes; or memory of the application's, or of a tensor on another mesh.
  const TensorCore* into = nullptr;
  bool portable = false;       ///< convolve by Tessera's own kernel
  const void* fill = nullptr;  ///< one element: what lies outside a tensor; null: zero
  Destination destination = Destination::fresh;
  Started* started = nullptr;  ///< where the operator is left under way, instead of being finished
  std::vector<TensorCore>* also = nullptr;  ///< where the results after the first go
  const Extents* starts = nullptr;          ///< where a window begins in each dimension
  /// The storage that its results were promised, one for each; where null, they get their own.
  const Promises* promised = nullptr;
  const std::shared_ptr<MeshCore>* mesh = nullptr;  ///< of a call without operands
};

/// Tells the numbers of a call on elements of a type, but for where its window begins.
inline void tell_numbers(const Extras& extras, DType type, ToldNumbers& told) {
  if (extras.scale != 1) told.add(extras.scale);
  if (extras.fill != nullptr) told.add_bytes(extras.fill, size_of(type), false);
  if (extras.kernel.numbers != nullptr) extras.kernel.numbers(extras.kernel.context, told);
}

/// Returns the mesh of a call.
inline const std::shared_ptr<MeshCore>& mesh_under(const OperandList& operands,
                                                   const Extras& extras) {
  return operands.empty() ? *extras.mesh : operands[0]->mesh();
}

/// One call.
struct Request {
  OperationView operation;
  OperandList operands;
  CallSite site;
  Extras extras = {};

  const std::shared_ptr<MeshCore>& mesh() const { return mesh_under(operands, extras); }
};

/// Returns the extras of a call that writes a tensor that is there.
inline Extras into(const TensorCore& destination) {
  Extras extras;
  extras.into = &destination;
  extras.destination = Destination::given;
  return extras;
}

/// Returns the extras of a call that changes a tensor where it lies, its last operand.
inline Extras changing(const TensorCore& x) {
  Extras extras;
  extras.into = &x;
  extras.destination = Destination::accumulated;
  return extras;
}

}  // namespace tessera::detail
