// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kinds of operators and of the steps of their plans (plan/plan.hpp), and their names.
///
///     name_of(OperatorKind::one_hot) == "one-hot"
#include <cstdint>
#include <string_view>

namespace tessera {

enum class OperatorKind : std::uint8_t {
  reshard,
  einsum,
  reduce,
  map,
  transpose,
  arg,
  scan,
  sort,
  top_k,
  from_root,
  to_root,
  from_boxes,
  to_boxes,
  slice,
  pad,
  reverse,
  roll,
  shift,
  concatenate,
  update,
  reshape,
  halo,
  halo_adjoint,
  convolve,
  reduce_window,
  select_and_scatter,
  select_and_gather,
  take,
  scatter,
  one_hot,
  dynamic_slice,
  dynamic_update_slice,
  softmax,
  moments,
  normalize,
  create,
  broadcast
};
/// Returns the name as plans print it: "einsum".
constexpr std::string_view name_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::reshard:
      return "reshard";
    case OperatorKind::einsum:
      return "einsum";
    case OperatorKind::reduce:
      return "reduce";
    case OperatorKind::map:
      return "map";
    case OperatorKind::transpose:
      return "transpose";
    case OperatorKind::arg:
      return "arg";
    case OperatorKind::scan:
      return "scan";
    case OperatorKind::sort:
      return "sort";
    case OperatorKind::top_k:
      return "top-k";
    case OperatorKind::from_root:
      return "from root";
    case OperatorKind::to_root:
      return "to root";
    case OperatorKind::from_boxes:
      return "from boxes";
    case OperatorKind::to_boxes:
      return "to boxes";
    case OperatorKind::slice:
      return "slice";
    case OperatorKind::pad:
      return "pad";
    case OperatorKind::reverse:
      return "reverse";
    case OperatorKind::roll:
      return "roll";
    case OperatorKind::shift:
      return "shift";
    case OperatorKind::concatenate:
      return "concatenate";
    case OperatorKind::update:
      return "update";
    case OperatorKind::reshape:
      return "reshape";
    case OperatorKind::halo:
      return "halo exchange";
    case OperatorKind::halo_adjoint:
      return "halo adjoint";
    case OperatorKind::convolve:
      return "convolve";
    case OperatorKind::reduce_window:
      return "reduce-window";
    case OperatorKind::select_and_scatter:
      return "select and scatter";
    case OperatorKind::select_and_gather:
      return "select and gather";
    case OperatorKind::take:
      return "take";
    case OperatorKind::scatter:
      return "scatter";
    case OperatorKind::one_hot:
      return "one-hot";
    case OperatorKind::dynamic_slice:
      return "dynamic slice";
    case OperatorKind::dynamic_update_slice:
      return "dynamic update slice";
    case OperatorKind::softmax:
      return "softmax";
    case OperatorKind::moments:
      return "moments";
    case OperatorKind::normalize:
      return "normalize";
    case OperatorKind::create:
      return "create";
    case OperatorKind::broadcast:
      return "broadcast";
  }
  return "?";
}

enum class StepKind : std::uint8_t {
  slice,
  copy,
  communicate,
  permute,
  diagonal,
  contract,
  reduce,
  map,
  find,      ///< the position of a row's largest or least element
  scan,      ///< for each element, the sum (or other join) of all elements up to it
  fold,      ///< all elements of a part of a line joined in order by the user's function
  sort,      ///< of each line
  order,     ///< the positions of each line's elements in order
  arrange,   ///< a line in the order given by positions
  exponent,  ///< of a row's largest magnitude
  bins,      ///< a row's sum as integers, exactly
  unbin,     ///< integers back to an element
  convolve,
  reduce_window,
  select_and_scatter,
  select_and_gather,
  take,     ///< rows of a table at indices
  scatter,  ///< updates into rows of a table
  one_hot,  ///< one at the position given by an index
  slide,    ///< a slice whose start the call gives
  put,      ///< the same, written
  round,    ///< float sums to their half type
  widen,    ///< positions to int64, half types to float
  exp_sum,  ///< of a line, the sum of the exponentials of what its elements are below its largest
  softmax,  ///< of each line
  log_softmax,
  moments,    ///< of each row, the sum of squared distances to its mean, and the mean
  normalize,  ///< of each row, by its mean and variance, which may be given
  create      ///< a block of no other tensor
};
/// Returns the name as plans print it: "contract".
constexpr std::string_view name_of(StepKind kind) {
  switch (kind) {
    case StepKind::slice:
      return "slice";
    case StepKind::copy:
      return "copy";
    case StepKind::communicate:
      return "communicate";
    case StepKind::permute:
      return "permute";
    case StepKind::diagonal:
      return "diagonal";
    case StepKind::contract:
      return "contract";
    case StepKind::reduce:
      return "reduce";
    case StepKind::map:
      return "map";
    case StepKind::find:
      return "find";
    case StepKind::scan:
      return "scan";
    case StepKind::fold:
      return "fold";
    case StepKind::sort:
      return "sort";
    case StepKind::order:
      return "order";
    case StepKind::arrange:
      return "arrange";
    case StepKind::exponent:
      return "exponent";
    case StepKind::bins:
      return "bins";
    case StepKind::unbin:
      return "unbin";
    case StepKind::convolve:
      return "convolve";
    case StepKind::reduce_window:
      return "reduce-window";
    case StepKind::select_and_scatter:
      return "select and scatter";
    case StepKind::select_and_gather:
      return "select and gather";
    case StepKind::take:
      return "take";
    case StepKind::scatter:
      return "scatter";
    case StepKind::one_hot:
      return "one-hot";
    case StepKind::slide:
      return "slide";
    case StepKind::put:
      return "put";
    case StepKind::round:
      return "round";
    case StepKind::widen:
      return "widen";
    case StepKind::exp_sum:
      return "sum of exponentials";
    case StepKind::softmax:
      return "softmax";
    case StepKind::log_softmax:
      return "log-softmax";
    case StepKind::moments:
      return "moments";
    case StepKind::normalize:
      return "normalize";
    case StepKind::create:
      return "create";
  }
  return "?";
}

}  // namespace tessera
