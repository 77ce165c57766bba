// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Takes, scatters, one-hots and windows that begin anywhere, on erased tensors: what
/// op/operators.hpp is for the others.
///
///     TensorCore y = detail::take(parse("vm,bs->bsm"), {&table, &ids}, OutOfRange::clamp, out,
///                                 {"vm,bs->bsm", where});
#include <tessera/op/operators.hpp>
#include <tessera/plan/indexed_verdict.hpp>

namespace tessera::detail {

/// Throws unless operands first to last - 1 are of int32 or int64.
inline void require_index_types(const OperandList& operands, int first, int last, CallSite site) {
  for (int t = first; t < last; ++t)
    require(check_index_type(operands[t]->type(), t), operands.size(), site);
}
/// Throws where a result has elements and a clamped index has nowhere to go.
inline void require_somewhere(const Extents& extents, const Term& labels, const Term& indexed,
                              Index elements, OutOfRange out_of_range, CallSite site) {
  if (elements == 0 || out_of_range == OutOfRange::drop) return;
  for (char letter : indexed)
    if (extents[labels.find(letter)] == 0)
      throw ShapeError(std::string(site.label) + ": the dimension " + letter +
                           " that is indexed has extent 0, and " + std::to_string(elements) +
                           " elements are asked of it; there is none to clamp an index to; make "
                           "it longer, or let such indices be dropped (OutOfRange::drop)",
                       site.where);
}

/// operands: the table, then the indices.
inline TensorCore take(const Terms& terms, const OperandList& operands, OutOfRange out_of_range,
                       const Sharding& out, CallSite site, const Extras& extras = {}) {
  MeshCore& mesh = mesh_of(*operands[0], site);
  PlanKey key(OperatorKind::take, Reduction::none, operands[0]->type());
  key.add(terms);
  for (const TensorCore* operand : operands) key.add(operand->desc());
  key.add(out);
  key.add(static_cast<std::uint64_t>(out_of_range));
  return run_operator(key, operands, site, extras, [&](const PlanOptions& options) {
    const TensorDescs descs = descs_of(operands);
    require(check_take(terms, shardings_of(operands), out), terms, mesh, site);
    require_extents(terms, descs, false, mesh, site);
    require_index_types(operands, 1, operands.size(), site);
    require_sharding(out, operands[0]->type(), mesh, site);
    const Term indexed = letters_without(terms.operands[0], terms.result);
    require_somewhere(descs[0].extents, terms.operands[0], indexed,
                      volume(extents_of(terms.result, terms, descs)), out_of_range, site);
    return plan_take(terms, descs, out_of_range, out, mesh.shape(), mesh.process(), options);
  });
}

/// operands: the table (or none), the indices, the updates. `indexed`: without a table, the extents
/// of the indexed letters.
inline TensorCore scatter(const Terms& terms, Reduction reduction, const OperandList& operands,
                          const Extents& indexed, OutOfRange out_of_range, const Sharding& out,
                          CallSite site, const Extras& extras = {}) {
  MeshCore& mesh = mesh_of(*operands[0], site);
  const TensorCore& updates = *operands.back();
  PlanKey key(OperatorKind::scatter, reduction, updates.type());
  key.add(terms);
  for (const TensorCore* operand : operands) key.add(operand->desc());
  key.add(out);
  key.add(static_cast<std::uint64_t>(out_of_range));
  for (Index extent : indexed) key.add(static_cast<std::uint64_t>(extent));
  OperandList in_order = operands;
  if (extras.destination == Destination::accumulated) {  // the table comes last
    in_order = {};
    for (int t = 1; t <= operands.size(); ++t) in_order.push_back(operands[t % operands.size()]);
  }
  return run_operator(key, in_order, site, extras, [&](const PlanOptions& options) {
    const TensorDescs descs = descs_of(operands);
    require(check_scatter(terms, reduction, shardings_of(operands), out), terms, mesh, site);
    require_extents(terms, descs, false, mesh, site);
    const int first = has_operand(terms) ? 1 : 0;
    require_index_types(operands, first, operands.size() - 1, site);
    if (first == 1)
      require(check_one_type(Rule::update_types_alike, operands[0]->type(), updates.type(),
                             operands.size() - 1),
              operands.size(), site);
    if (reduction != Reduction::none)
      require_elements(check_reduce_type(reduction, false, updates.type()), site);
    require_sharding(out, updates.type(), mesh, site);
    const Term letters = letters_without(terms.result, terms.operands.back());
    if (first == 0 && indexed.size() != letters.size())
      throw ShapeError(std::string(site.label) + ": the indexed letters " + to_text(letters) +
                           " of the result are " + std::to_string(letters.size()) + " and " +
                           std::to_string(indexed.size()) +
                           " extents are given; give one for each of them",
                       site.where);
    for (Index extent : indexed)
      if (extent < 0)
        throw ShapeError(std::string(site.label) + ": the result is to have an extent of " +
                             std::to_string(extent) + "; extents are not negative",
                         site.where);
    const Extents extents = extents_of(terms.result, terms, descs, indexed);
    require_somewhere(extents, terms.result, letters, volume(updates.extents()), out_of_range,
                      site);
    return plan_scatter(terms, reduction, descs, indexed, out_of_range, out, mesh.shape(),
                        mesh.process(), options);
  });
}

inline TensorCore one_hot(const Terms& labels, char along, DType type, const TensorCore& indices,
                          Index extent, const Sharding& out, CallSite site) {
  MeshCore& mesh = mesh_of(indices, site);
  PlanKey key(OperatorKind::one_hot, Reduction::none, type);
  key.add(labels);
  key.add(indices.desc());
  key.add(out);
  key.add(static_cast<std::uint64_t>(along));
  key.add(static_cast<std::uint64_t>(extent));
  return run_operator(key, {&indices}, site, {}, [&](const PlanOptions& options) {
    require(check_one_hot(labels, along, {indices.sharding()}, out), labels, mesh, site);
    require_index_types({&indices}, 0, 1, site);
    require_sharding(out, mesh, site);
    if (extent < 0)
      throw ShapeError(std::string(site.label) + ": the new dimension " + along +
                           " is to have an extent of " + std::to_string(extent) +
                           "; extents are not negative",
                       site.where);
    return plan_one_hot(labels.result, along, type, indices.desc(), extent, out, mesh.shape(),
                        mesh.process(), options);
  });
}

/// Throws unless a window has, and begins in, as many numbers as letters, and fits.
inline void require_window(const Terms& terms, const Terms& along, const Extents& extents,
                           const Extents& start, const Extents& size, CallSite site) {
  const auto numbers = [&](const Extents& given, const char* what) {
    if (given.size() != along.result.size())
      throw ShapeError(std::string(site.label) + ": the window moves along " +
                           to_text(along.result) + ", " + std::to_string(along.result.size()) +
                           " letters, and " + std::to_string(given.size()) + " " + what +
                           " are given; give one for each letter",
                       site.where);
  };
  numbers(start, "starts");
  numbers(size, "sizes");
  for (int k = 0; k < size.size(); ++k) {
    const Index extent = extents[terms.result.find(along.result[k])];
    if (size[k] < 0 || size[k] > extent)
      throw ShapeError(std::string(site.label) + ": the window has " + std::to_string(size[k]) +
                           " elements along " + along.result[k] + ", of which the tensor has " +
                           std::to_string(extent) + "; a window has 0 to that many",
                       site.where);
  }
}
/// Returns where a window begins in each dimension.
inline Extents starts_of(const Terms& terms, const Terms& along, const Extents& start) {
  Extents starts(terms.result.size(), 0);
  for (int k = 0; k < along.result.size() && k < start.size(); ++k)
    if (const int d = terms.result.find(along.result[k]); d >= 0) starts[d] = start[k];
  return starts;
}

/// `terms` and `along` are same_terms of letters; `size` has an element a letter of `along`.
inline TensorCore dynamic_slice(const Terms& terms, const Terms& along, const TensorCore& x,
                                const Extents& start, const Extents& size, const Sharding& out,
                                CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  PlanKey key(OperatorKind::dynamic_slice, Reduction::none, x.type());
  key.add(terms);
  key.add(along);
  key.add(x.desc());
  for (Index n : size) key.add(static_cast<std::uint64_t>(n));
  key.add(static_cast<std::uint64_t>(start.size()));
  key.add(out);
  Extras extras;
  const Extents starts = starts_of(terms, along, start);
  extras.starts = &starts;
  return run_operator(key, {&x}, site, extras, [&](const PlanOptions& options) {
    require(check_dynamic_slice(terms, along, {x.sharding()}, out), terms, mesh, site);
    require_sharding(out, x.type(), mesh, site);
    require_window(terms, along, x.extents(), start, size, site);
    return plan_dynamic_slice(terms.result, along.result, x.desc(), size, out, mesh.shape(),
                              mesh.process(), options);
  });
}

inline TensorCore dynamic_update_slice(const Terms& terms, const Terms& along, const TensorCore& x,
                                       const TensorCore& update, const Extents& start,
                                       const Sharding& out, CallSite site, Extras extras = {}) {
  MeshCore& mesh = mesh_of(x, site);
  PlanKey key(OperatorKind::dynamic_update_slice, Reduction::none, x.type());
  key.add(terms);
  key.add(along);
  key.add(x.desc());
  key.add(update.desc());
  key.add(static_cast<std::uint64_t>(start.size()));
  key.add(out);
  const Extents starts = starts_of(terms, along, start);
  extras.starts = &starts;
  const bool in_place = extras.destination == Destination::accumulated;
  const OperandList operands = in_place ? OperandList{&update, &x} : OperandList{&x, &update};
  return run_operator(key, operands, site, extras, [&](const PlanOptions& options) {
    require(check_dynamic_update(terms, along, {x.sharding(), update.sharding()}, out), terms, mesh,
            site);
    require(check_one_type(Rule::update_types_alike, x.type(), update.type(), 1), 2, site);
    require_sharding(out, x.type(), mesh, site);
    Extents size;
    for (char letter : along.result) size.push_back(update.extents()[terms.result.find(letter)]);
    require_window(terms, along, x.extents(), start, size, site);
    for (int d = 0; d < x.rank(); ++d)
      if (!along.result.contains(terms.result[d]) && x.extents()[d] != update.extents()[d])
        throw ShapeError(std::string(site.label) + ": along " + terms.result[d] +
                             " the tensor has " + std::to_string(x.extents()[d]) +
                             " elements and the update " + std::to_string(update.extents()[d]) +
                             "; they agree in all dimensions along which the window does not move; "
                             "name the letter among those, or make the extents equal",
                         site.where);
    return plan_dynamic_update(terms.result, along.result, x.desc(), update.desc(), out,
                               mesh.shape(), mesh.process(), options);
  });
}

}  // namespace tessera::detail
