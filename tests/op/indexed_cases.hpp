// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Single random cases of takes, scatters, one-hots and windows that begin anywhere, run and
/// compared as those of cases.hpp are.
///
///     std::string wrong = support::some_indexed_case(mesh, random);
#include "cases.hpp"
#include "support/indexed.hpp"

namespace support {

/// Indices from -2 to 6, so that of a dimension of 3 to 5 some lie outside on either side.
inline std::int64_t index_element(std::uint64_t seed, Index i) { return element(seed, i, 0) + 2; }
inline WholeIndices whole_indices(const Extents& extents, std::uint64_t seed) {
  WholeIndices x(extents);
  for (Index i = 0; i < x.size(); ++i) x[i] = index_element(seed, i);
  return x;
}
template <class I>
DynamicTensor make_indices_of(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                              std::uint64_t seed) {
  use_element<I>();
  const TensorCore core = TensorCore::make(mesh, desc);
  const WholeIndices whole = whole_indices(desc.extents, seed);
  std::vector<I> values;
  for (std::int64_t i : block_of(whole, core.box())) values.push_back(static_cast<I>(i));
  tessera::detail::copy_from_host(core.data(), values.data(),
                                  static_cast<Index>(values.size() * sizeof(I)));
  return DynamicTensor(core);
}
inline DynamicTensor make_indices(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                                  std::uint64_t seed) {
  return desc.type == DType::i32 ? make_indices_of<std::int32_t>(mesh, desc, seed)
                                 : make_indices_of<std::int64_t>(mesh, desc, seed);
}

inline constexpr const char* some_takes[] = {
    "vm,bs->bsm",  "v,a->a",       "vm,b->mb",   "bv,bs->bs",      "bvm,bs->bsm",
    "xyc,n,n->nc", "xyc,a,b->abc", "mv,bs->mbs", "xyz,n,mn,m->mn", "abvc,bs->sabc",
    "xyc,nk->nc",  "vm,bs->bVms",  "bv,bs->Vbs", "xyc,n,n->nXcY",  "xyc,nk->nYc"};
inline constexpr const char* some_scatters[] = {
    "vm,bs,bsm->vm",     "v,a,a->v",           "mv,b,mb->mv",    "bv,bs,bs->bv", "xyc,n,n,nc->xyc",
    "xyc,a,b,abc->xyc",  "v,a,ab->v",          "bs,bsm->vm",     "n,n->v",       "n,n,nc->xcy",
    "xyc,bn,n,ncb->cxy", "abvc,bs,sabc->abvc", "xyc,kn,nc->xyc", "nk,nc->xcy",   "vm,bs,bVms->vm",
    "bv,bs,Vbs->bv",     "n,n,nXcY->xyc",      "xyc,nk,nYc->xyc"};

template <class T> class IndexedCases {
 public:
  IndexedCases(std::shared_ptr<MeshCore> mesh, Random& random)
      : mesh_(std::move(mesh)), shape_(mesh_->shape()), random_(random) {}

  std::string take() {
    const Terms terms = parse(some_takes[random_.below(static_cast<int>(std::size(some_takes)))]);
    const Reduction kind = random_.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min});
    OutOfRange out_of_range = random_.chance(50) ? OutOfRange::clamp : OutOfRange::drop;
    columns(detail::indices_of_take(terms));
    const Extents sizes = windows(detail::indices_of_take(terms), out_of_range);
    TensorDescs descs{operand(terms.operands[0], dtype_of<T>, random_.chance(30) ? 40 : 0, kind)};
    const DynamicTensor x = make_input<T>(mesh_, descs[0], 1);
    std::vector<DynamicTensor> given;
    const std::vector<WholeIndices> indices =
        index_operands(terms, 1, terms.operands.size(), descs, given);
    Index elements = 1;
    for (char letter : terms.result) elements *= extent(letter);
    for (char letter : detail::letters_without(terms.operands[0], terms.result))
      if (extent(letter) == 0 && elements > 0)
        out_of_range = OutOfRange::drop;  // there is nothing to clamp to
    Sharding out = some_sharding(random_, terms.result.size(), shape_.rank(), 40, kind);
    if (!ops::Take{terms, out_of_range, out, sizes}.check(descs).ok())
      out = some_sharding(random_, terms.result.size(), shape_.rank());
    const bool deduced = random_.chance(20);
    if (deduced) out = ops::Take{terms}.deduced(descs);
    const std::string equation = to_text(terms);
    const Whole<T> expected =
        support::take(terms, whole_input<T>(descs[0], shape_, 1), indices, out_of_range, sizes);
    return trial<T>("take " + equation, descs, out)(
        [&] {
          if (!sizes.empty()) {
            const WindowSizes of(sizes);
            if (deduced && given.size() == 1)
              return tessera::take(equation, x, given[0], {of, out_of_range});
            if (deduced)
              return tessera::take(equation, x, {given[0], given[1]}, {of, out_of_range});
            if (given.size() == 1)
              return tessera::take(equation, x, given[0], {of, out_of_range}, out);
            return tessera::take(equation, x, {given[0], given[1]}, {of, out_of_range}, out);
          }
          if (deduced && given.size() == 1)
            return tessera::take(equation, x, given[0], out_of_range);
          if (deduced && given.size() == 2)
            return tessera::take(equation, x, {given[0], given[1]}, out_of_range);
          if (given.size() == 1) return tessera::take(equation, x, given[0], out_of_range, out);
          if (given.size() == 2)
            return tessera::take(equation, x, {given[0], given[1]}, out_of_range, out);
          return tessera::take(equation, x, {given[0], given[1], given[2]}, out_of_range, out);
        },
        counted(plan_options(*mesh_),
                [&](const PlanOptions& options) {
                  return ops::Take{terms, out_of_range, out, sizes}.plan(
                      descs, {shape_, mesh_->process(), options});
                }),
        expected, descs[0].sharding.partial.empty() ? 0 : tolerance(shape_.processes()));
  }

  /// Lines of a tensor at indices of the same lines.
  std::string along_axis() {
    const Term labels = some_labels();
    const char along = labels[random_.below(labels.size())];
    const std::string letters = to_text(labels);
    const Terms terms = detail::take_along_terms(letters, along);
    OutOfRange out_of_range = random_.chance(50) ? OutOfRange::clamp : OutOfRange::drop;
    TensorDescs descs{operand(terms.operands[0], dtype_of<T>, random_.chance(30) ? 40 : 0)};
    const DynamicTensor x = make_input<T>(mesh_, descs[0], 1);
    std::vector<DynamicTensor> given;
    const std::vector<WholeIndices> indices = index_operands(terms, 1, 2, descs, given);
    if (extent(along) == 0) out_of_range = OutOfRange::drop;  // there is nothing to clamp to
    Sharding out = some_sharding(random_, labels.size(), shape_.rank(), 40);
    if (!ops::Take{terms, out_of_range, out}.check(descs).ok())
      out = some_sharding(random_, labels.size(), shape_.rank());
    const bool deduced = random_.chance(30);
    if (deduced) out = ops::Take{terms}.deduced(descs);
    return trial<T>("take_along_axis " + letters + " along " + along, descs, out)(
        [&] {
          if (deduced) return take_along_axis(letters, along, x, given[0], out_of_range);
          return take_along_axis(letters, along, x, given[0], out_of_range, out);
        },
        ops::Take{terms, out_of_range, out}.plan(descs,
                                                 {shape_, mesh_->process(), plan_options(*mesh_)}),
        support::take(terms, whole_input<T>(descs[0], shape_, 1), indices, out_of_range),
        descs[0].sharding.partial.empty() ? 0 : tolerance(shape_.processes()));
  }

  std::string scatter() {
    const Terms terms =
        parse(some_scatters[random_.below(static_cast<int>(std::size(some_scatters)))]);
    const Reduction kind = random_.of<Reduction>(
        {Reduction::sum, Reduction::sum, Reduction::max, Reduction::min, Reduction::none});
    OutOfRange out_of_range = random_.chance(50) ? OutOfRange::clamp : OutOfRange::drop;
    const int open = kind != Reduction::none && random_.chance(40) ? 40 : 0;
    const int last = terms.operands.size() - 1, first = detail::has_operand(terms) ? 1 : 0;
    columns(detail::indices_of_scatter(terms));
    windows(detail::indices_of_scatter(terms), out_of_range);
    TensorDescs descs;
    std::vector<DynamicTensor> given;
    if (first == 1) {
      descs.push_back(operand(terms.operands[0], dtype_of<T>, open, kind));
      given.push_back(make_input<T>(mesh_, descs[0], 1));
    }
    const std::vector<WholeIndices> indices = index_operands(terms, first, last, descs, given);
    descs.push_back(operand(terms.operands[last], dtype_of<T>, open, kind));
    given.push_back(make_input<T>(mesh_, descs.back(), 2));
    Extents result, indexed;
    for (char letter : terms.result) result.push_back(extent(letter));
    for (char letter : detail::letters_without(terms.result, terms.operands[last])) {
      indexed.push_back(extent(letter));
      if (indexed.back() == 0) out_of_range = OutOfRange::drop;
    }
    Sharding out = some_sharding(random_, terms.result.size(), shape_.rank(), 40, kind);
    const ops::Scatter operation{terms, kind, out_of_range, indexed, false, out};
    if (!operation.check(descs).ok())
      out = some_sharding(random_, terms.result.size(), shape_.rank());
    const bool deduced = random_.chance(20);
    if (deduced) out = operation.deduced(descs);
    const Sharding* const asked = deduced ? nullptr : &out;
    Whole<T> begin(result, start_of<T>(kind));
    if (first == 1)
      begin = support::transpose(Terms{{terms.operands[0]}, terms.result},
                                 whole_input<T>(descs[0], shape_, 1));
    const Whole<T> updates = whole_input<T>(descs[last], shape_, 2);
    const Whole<T> expected = support::scatter(terms, kind, begin, indices, updates, out_of_range);
    const std::string equation = to_text(terms);
    return trial<T>("scatter " + std::string(name_of(kind)) + " " + equation, descs, out)(
        [&] {
          if (kind == Reduction::max)
            return scatter_of<Max>(equation, given, indexed, asked, out_of_range);
          if (kind == Reduction::min)
            return scatter_of<Min>(equation, given, indexed, asked, out_of_range);
          if (kind == Reduction::none)
            return scatter_of<Set>(equation, given, indexed, asked, out_of_range);
          return scatter_of<Sum>(equation, given, indexed, asked, out_of_range);
        },
        counted(plan_options(*mesh_),
                [&](const PlanOptions& options) {
                  return ops::Scatter{terms, kind, out_of_range, indexed, false, out}.plan(
                      descs, {shape_, mesh_->process(), options});
                }),
        expected, kind == Reduction::sum ? tolerance(updates.size() + shape_.processes()) : 0);
  }

  std::string one_hot() {
    const Term labels = some_labels();
    const char along = labels[random_.below(labels.size())];
    const TensorDesc desc = operand(detail::letters_without(labels, Term{along}),
                                    random_.chance(50) ? DType::i32 : DType::i64);
    const DynamicTensor indices = make_indices(mesh_, desc, 3);
    const Sharding out = some_sharding(random_, labels.size(), shape_.rank());
    const Index n = extent(along);
    return trial<T>("one-hot", {desc}, out)(
        [&] { return tessera::one_hot<T>(to_text(labels), along, indices, n, out); },
        detail::plan_one_hot(labels, along, dtype_of<T>, desc, n, out, shape_, mesh_->process(),
                             plan_options(*mesh_)),
        support::one_hot<T>(labels, along, whole_indices(desc.extents, 3), n), 0);
  }

  std::string window(bool written) {
    const Reduction kind = random_.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min});
    const Term labels = some_labels();
    Term along;
    for (char letter : labels)
      if (along.empty() || random_.chance(50)) along.push_back(letter);
    const TensorDesc x = operand(labels, dtype_of<T>, random_.chance(30) ? 40 : 0, kind);
    const bool open = !x.sharding.partial.empty();
    Extents size = x.extents, start, starts, sizes;
    for (int d = 0; d < labels.size(); ++d) {
      const bool moves = along.contains(labels[d]);
      if (moves) size[d] = random_.below(static_cast<int>(x.extents[d]) + 1);
      if (moves) sizes.push_back(size[d]);
      start.push_back(moves ? random_.below(13) - 3 : 0);
      if (moves) starts.push_back(start.back());
    }
    const DynamicTensor whole = make_input<T>(mesh_, x, 1);
    const std::string letters = to_text(labels), moving = to_text(along);
    if (!written) {
      Terms terms, moved;
      terms.operands = {labels};
      terms.result = labels;
      moved.result = along;
      Sharding out = some_sharding(random_, labels.size(), shape_.rank(), 40, kind);
      if (!ops::DynamicSlice{terms, moved, sizes, out}.check({x}).ok())
        out = some_sharding(random_, labels.size(), shape_.rank());
      return trial<T>("dynamic slice along " + moving, {x}, out)(
          [&] { return tessera::dynamic_slice(letters, moving, whole, starts, sizes, out); },
          counted(plan_options(*mesh_),
                  [&](const PlanOptions& options) {
                    return detail::plan_dynamic_slice(labels, along, x, sizes, out, shape_,
                                                      mesh_->process(), options);
                  }),
          support::dynamic_slice(whole_input<T>(x, shape_, 1), start, size),
          open ? tolerance(shape_.processes()) : 0);
    }
    TensorDesc update{dtype_of<T>, size, some_sharding(random_, labels.size(), shape_.rank())};
    for (int d = 0; d < labels.size(); ++d)
      update.sharding[d] = update.sharding[d].without(x.sharding.partial);
    update.sharding = update.sharding.with_partial(x.sharding.partial, x.sharding.reduction);
    const DynamicTensor fresh = make_input<T>(mesh_, update, 2);
    const Sharding out =
        random_.chance(40) ? x.sharding : some_sharding(random_, labels.size(), shape_.rank());
    return trial<T>("dynamic update slice along " + moving, {x, update}, out)(
        [&] { return tessera::dynamic_update_slice(letters, moving, whole, fresh, starts, out); },
        detail::plan_dynamic_update(labels, along, x, update, out, shape_, mesh_->process(),
                                    plan_options(*mesh_)),
        support::dynamic_update(whole_input<T>(x, shape_, 1), whole_input<T>(update, shape_, 2),
                                start),
        open ? tolerance(shape_.processes()) : 0);
  }

 private:
  template <class Kind>
  static DynamicTensor scatter_of(const std::string& equation, const std::vector<DynamicTensor>& t,
                                  const Extents& extents, const Sharding* out,
                                  OutOfRange out_of_range) {
    const auto of = [&](std::initializer_list<DynamicTensor> tensors) {
      return out == nullptr
                 ? tessera::scatter<Kind>(equation, tensors, extents, out_of_range)
                 : tessera::scatter<Kind>(equation, tensors, extents, out_of_range, *out);
    };
    if (t.size() == 2) return of({t[0], t[1]});
    if (t.size() == 3) return of({t[0], t[1], t[2]});
    return of({t[0], t[1], t[2], t[3]});
  }
  template <class R>
  Trial<R> trial(const std::string& name, const TensorDescs& operands, const Sharding& out) const {
    std::string text = std::string(name_of(dtype_of<T>)) + " on " + describe(shape_) + ": " + name;
    for (const TensorDesc& desc : operands) text += ", " + describe(desc, shape_);
    return Trial<R>(mesh_, text + " to " + describe(out, shape_));
  }
  std::vector<WholeIndices> index_operands(const Terms& terms, int first, int last,
                                           TensorDescs& descs, std::vector<DynamicTensor>& given) {
    std::vector<WholeIndices> whole;
    for (int t = first; t < last; ++t) {
      descs.push_back(operand(terms.operands[t], random_.chance(50) ? DType::i32 : DType::i64));
      given.push_back(make_indices(mesh_, descs.back(), static_cast<std::uint64_t>(10 + t)));
      whole.push_back(whole_indices(descs.back().extents, static_cast<std::uint64_t>(10 + t)));
    }
    return whole;
  }
  Term some_labels() {
    return detail::same_terms(random_.of<std::string>({"a", "ab", "abc"})).result;
  }
  void columns(const detail::IndexTerms& indices) {
    for (const char letter : indices.column_letters()) {
      letters_.push_back(letter);
      extents_.push_back(indices.columns());
    }
  }
  /// Chooses the extents of windows, some longer than their dimensions, and returns them.
  Extents windows(const detail::IndexTerms& indices, OutOfRange& out_of_range) {
    Extents sizes;
    for (const char letter : indices.windows()) {
      const Index all = extent(detail::other_case(letter));
      sizes.push_back(random_.below(static_cast<int>(all) + 2));
      if (sizes.back() > all) out_of_range = OutOfRange::drop;  // there is no place to clamp it to
      letters_.push_back(letter);
      extents_.push_back(sizes.back());
    }
    return sizes;
  }
  Index extent(char letter) {
    if (!letters_.contains(letter)) {
      letters_.push_back(letter);
      extents_.push_back(
          random_.of<Index>({1, 2, 3, 4, 5, 7, 8, 3, 5, random_.chance(20) ? 0 : 6}));
    }
    return extents_[letters_.find(letter)];
  }
  TensorDesc operand(const Term& term, DType type, int partial = 0,
                     Reduction kind = Reduction::sum) {
    TensorDesc desc{type, {}, some_sharding(random_, term.size(), shape_.rank(), partial, kind)};
    for (char letter : term) desc.extents.push_back(extent(letter));
    return desc;
  }
  /// Returns how far sums of at most n elements may be off, each at most 1.48 p in size.
  double tolerance(Index n) const {
    if (!std::is_floating_point_v<T>) return 0;
    return 2 * static_cast<double>(n + 4) * static_cast<double>(n + 4) *
           static_cast<double>(std::numeric_limits<T>::epsilon()) * 1.48 * shape_.processes();
  }

  std::shared_ptr<MeshCore> mesh_;
  MeshShape shape_;
  Random& random_;
  Term letters_;
  Extents extents_;
};

/// Runs one case, all of it chosen by `random`. Collective over the mesh.
inline std::string some_indexed_case(const std::shared_ptr<MeshCore>& mesh, Random& random) {
  const int which = random.below(10);
  const DType type = random.of<DType>({DType::f32, DType::f64, DType::i32, DType::i64});
  return with_sampled_type(type, [&](auto element) {
    IndexedCases<decltype(element)> cases(mesh, random);
    if (which < 3) return cases.take();
    if (which < 6) return cases.scatter();
    if (which > 7) return cases.along_axis();
    return which == 6 ? cases.one_hot() : cases.window(random.chance(50));
  });
}

}  // namespace support
