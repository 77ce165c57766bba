// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators that move elements and compute nothing, on erased tensors: what op/operators.hpp
/// is for the others. Slice, pad and their siblings end here.
///
///     TensorCore y = detail::slice(x, {0, 2}, {4, 6}, {}, out, {"slice", where});
#include <string>
#include <utility>
#include <vector>

#include <tessera/op/operators.hpp>
#include <tessera/op/outside.hpp>
#include <tessera/plan/reshape.hpp>
#include <tessera/plan/shape_text.hpp>
#include <tessera/plan/shape_verdict.hpp>

namespace tessera::detail {

/// Throws ShapeError with a text of plan/shape_text.hpp, if there is one.
inline void require_no(const std::string& text, CallSite site) {
  if (!text.empty()) throw ShapeError(std::string(site.label) + ": " + text, site.where);
}
/// Throws unless unfinished values may have this value beside them.
inline void require_fill(const FillValue& fill, const TensorCore& x, CallSite site) {
  const Sharding& s = x.sharding();
  if (s.partial.empty() || fill.stays_under(s.reduction)) return;
  throw ShardingError(std::string(site.label) + ": the operand is " +
                          to_string(s, x.mesh()->names()) +
                          ", and the value that lies outside it would be joined once for each part "
                          "of the unfinished values; a sum takes 0 there, a product 0 or 1; "
                          "reshard the operand to a finished spec first",
                      site.where);
}

/// Carries out what `make` says is taken, once it is checked; `key` has all that this depends on
/// but the operands and `out`.
template <class Make>
TensorCore take(PlanKey& key, const OperandList& operands, const Sharding& out, CallSite site,
                const FillValue& fill, const Make& make) {
  MeshCore& mesh = mesh_of(*operands[0], site);
  for (const TensorCore* operand : operands) key.add(operand->desc());
  key.add(out);
  Extras extras;
  extras.fill = fill.data();
  return run_operator(key, operands, site, extras, [&](const PlanOptions& options) {
    const Taking taken = make();
    require(check_shape(shardings_of(operands), taken.extents.size(), out), operands.size(), site);
    require_sharding(out, mesh, site);
    return plan_regions(taken, descs_of(operands), out, mesh.shape(), mesh.process(), options);
  });
}

/// Throws unless tensors that are put together have one element type and one number of dimensions.
inline void require_alike(const OperandList& operands, CallSite site) {
  const TensorCore& x = *operands[0];
  for (int k = 1; k < operands.size(); ++k) {
    const TensorCore& y = *operands[k];
    if (y.rank() != x.rank())
      require({.rule = Rule::ranks_alike, .operand = k, .left = x.rank(), .right = y.rank()},
              operands.size(), site);
    require(check_one_type(Rule::joined_types_alike, x.type(), y.type(), k), operands.size(), site);
  }
}

inline TensorCore slice(const TensorCore& x, const Extents& start, const Extents& limit,
                        const Extents& stride, const Sharding& out, CallSite site) {
  mesh_of(x, site);
  PlanKey key(OperatorKind::slice);
  key.add("start", start);
  key.add("limit", limit);
  key.add("stride", stride);
  return take(key, {&x}, out, site, {}, [&] {
    require_no(slice_text(x.extents(), start, limit, stride), site);
    return slice_of(x.extents(), start, limit, stride);
  });
}

/// Several slices, eight at a time by one exchange.
inline std::vector<TensorCore> slices(const TensorCore& x, const std::vector<Extents>& starts,
                                      const std::vector<Extents>& limits, const Extents& stride,
                                      const Sharding& out, CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  if (starts.size() != limits.size())
    throw UsageError(std::string(site.label) + ": there are " + std::to_string(starts.size()) +
                         " starts and " + std::to_string(limits.size()) +
                         " limits; give one of each for each slice",
                     site.where);
  std::vector<TensorCore> results;
  for (std::size_t first = 0; first < starts.size(); first += max_operands) {
    const std::size_t end =
        min_of(static_cast<Index>(starts.size()), static_cast<Index>(first) + max_operands);
    PlanKey key(OperatorKind::slice);
    key.add("stride", stride);
    Shardings targets;
    for (std::size_t k = first; k < end; ++k) {
      key.add("start", starts[k]);
      key.add("limit", limits[k]);
      targets.push_back(out);
    }
    key.add(x.desc());
    key.add(out);
    std::vector<TensorCore> also;
    Extras extras;
    extras.targets = &targets;
    extras.also = &also;
    results.push_back(run_operator(key, {&x}, site, extras, [&](const PlanOptions& options) {
      FixedVector<Taking, max_operands> takings;
      for (std::size_t k = first; k < end; ++k) {
        require_no(slice_text(x.extents(), starts[k], limits[k], stride), site);
        takings.push_back(slice_of(x.extents(), starts[k], limits[k], stride));
      }
      require(check_shape({x.sharding()}, x.rank(), out), 1, site);
      require_sharding(out, mesh, site);
      return plan_regions_each(takings, x.desc(), out, mesh.shape(), mesh.process(), options);
    }));
    for (TensorCore& one : also) results.push_back(std::move(one));
  }
  return results;
}

inline TensorCore pad(const TensorCore& x, const Extents& low, const Extents& high,
                      const Extents& interior, const FillValue& value, const Sharding& out,
                      CallSite site) {
  mesh_of(x, site);
  require_fill(value, x, site);
  PlanKey key(OperatorKind::pad);
  key.add("low", low);
  key.add("high", high);
  key.add("interior", interior);
  return take(key, {&x}, out, site, value, [&] {
    require_no(pad_text(x.extents(), low, high, interior), site);
    return pad_of(x.extents(), low, high, interior);
  });
}

inline Extents as_numbers(const Dimensions& dims) {
  Extents numbers;
  for (int d : dims) numbers.push_back(d);
  return numbers;
}
inline TensorCore reverse(const TensorCore& x, const Dimensions& dims, const Sharding& out,
                          CallSite site) {
  mesh_of(x, site);
  PlanKey key(OperatorKind::reverse);
  key.add("dimensions", as_numbers(dims));
  return take(key, {&x}, out, site, {}, [&] {
    require(check_dimensions(dims, x.rank()), 1, site);
    return reverse_of(x.extents(), dims);
  });
}

inline TensorCore roll(const TensorCore& x, Index by, int dim, const Sharding& out, CallSite site) {
  mesh_of(x, site);
  PlanKey key(OperatorKind::roll);
  key.add("by", {by});
  key.add("dimension", {dim});
  return take(key, {&x}, out, site, {}, [&] {
    require(check_dimensions({dim}, x.rank()), 1, site);
    return roll_of(x.extents(), by, dim);
  });
}

inline TensorCore shift(const TensorCore& x, Index by, int dim, const FillValue& value,
                        const Sharding& out, CallSite site) {
  mesh_of(x, site);
  require_fill(value, x, site);
  PlanKey key(OperatorKind::shift);
  key.add("by", {by});
  key.add("dimension", {dim});
  return take(key, {&x}, out, site, value, [&] {
    require(check_dimensions({dim}, x.rank()), 1, site);
    return shift_of(x.extents(), by, dim);
  });
}

/// Adds the slices that are taken of operands.
inline void add_slices(PlanKey& key, const Slices& slices) {
  for (int k = 0; k < slices.size(); ++k) {
    if (!slices[k]) continue;
    key.add(static_cast<std::uint64_t>(k));
    key.add("start", slices[k]->start);
    key.add("limit", slices[k]->limit);
    key.add("stride", slices[k]->stride);
  }
}
/// Returns the extents of operands, or of what is taken of them.
inline FixedVector<Extents, max_operands> extents_of(const OperandList& operands,
                                                     const Slices& slices, CallSite site) {
  FixedVector<Extents, max_operands> extents;
  for (const TensorCore* operand : operands) extents.push_back(operand->extents());
  require_no(slices_text(extents, slices), site);
  for (int k = 0; k < slices.size(); ++k)
    if (slices[k]) extents[k] = slices[k]->extents();
  return extents;
}

inline TensorCore concatenate(int dim, const OperandList& operands, const Slices& slices,
                              const Sharding& out, CallSite site) {
  for (const TensorCore* operand : operands) mesh_of(*operand, site);
  PlanKey key(OperatorKind::concatenate);
  key.add("dimension", {dim});
  add_slices(key, slices);
  return take(key, operands, out, site, {}, [&] {
    require(check_dimensions({dim}, operands[0]->rank()), 1, site);
    require_alike(operands, site);
    require_no(concatenate_text(extents_of(operands, slices, site), dim), site);
    return concatenate_of(extents_of(operands, {}, site), dim, slices);
  });
}

inline TensorCore update(const TensorCore& x, const TensorCore& block, const Extents& start,
                         const Slices& slices, const Sharding& out, CallSite site) {
  mesh_of(x, site);
  mesh_of(block, site);
  PlanKey key(OperatorKind::update);
  key.add("start", start);
  add_slices(key, slices);
  return take(key, {&x, &block}, out, site, {}, [&] {
    require_alike({&x, &block}, site);
    const auto parts = extents_of({&x, &block}, slices, site);
    require_no(update_text(parts[0], parts[1], start), site);
    return update_of(x.extents(), block.extents(), start, slices);
  });
}

inline TensorCore reshape(const TensorCore& x, const Extents& extents, const Sharding& out,
                          CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  PlanKey key(OperatorKind::reshape);
  key.add(x.desc());
  key.add("extents", extents);
  key.add(out);
  return run_operator(key, {&x}, site, {}, [&](const PlanOptions& options) {
    require_no(reshape_text(x.extents(), extents), site);
    require(check_shape({x.sharding()}, extents.size(), out), 1, site);
    require_sharding(out, mesh, site);
    return plan_reshape(x.desc(), {x.type(), extents, out}, mesh.shape(), mesh.process(), options);
  });
}

}  // namespace tessera::detail
