// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One tensor with a halo, chosen by a seed: values against the definition, element by element;
/// ledger, calls and arena against the plan; started, in place and together against at once; the
/// adjoint against the sum that it is.
///
///     std::string wrong = support::halo_case(mesh, random);           // collective over the mesh
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/op/halo/halo.hpp>

#include "elements.hpp"
#include "support/observer.hpp"

namespace support {

/// The element of n that lies at v, or -1 where there is none.
inline Index halo_element(Index v, Index n, Boundary boundary) {
  if (n == 0) return -1;
  if (v >= 0 && v < n) return v;
  switch (boundary) {
    case Boundary::none:
    case Boundary::constant:
      return -1;
    case Boundary::periodic:
      return (v % n + n) % n;
    case Boundary::reflected:
      while (v < 0 || v >= n) v = v < 0 ? -v : 2 * (n - 1) - v;
      return v;
    case Boundary::symmetric:
      while (v < 0 || v >= n) v = v < 0 ? -1 - v : 2 * n - 1 - v;
      return v;
  }
  return -1;
}

class HaloCases {
 public:
  HaloCases(std::shared_ptr<MeshCore> mesh, Random& random)
      : mesh_(std::move(mesh)), shape_(mesh_->shape()), random_(random) {
    use_all_elements();
    detail::use_accumulate<double>();
    detail::use_accumulate<std::int32_t>();
  }

  std::string run() {
    const int rank = 1 + random_.below(3);
    for (int d = 0; d < rank; ++d)
      extents_.push_back(random_.of<Index>({1, 2, 3, 4, 5, 7, 8, 9, random_.chance(30) ? 0 : 12}));
    sharding_ = some_sharding(random_, rank, shape_.rank());
    for (int d = 0; d < rank; ++d) halo_.push_back(some_dim(extents_[d]));
    type_ = static_cast<DType>(random_.below(dtypes));
    return all(
        {&HaloCases::at_once, &HaloCases::in_place, &HaloCases::together, &HaloCases::adjoint});
  }
  /// One case in one dimension that is split over axis 0.
  std::string one(Index n, const HaloDim& halo) {
    extents_ = {n};
    sharding_ = Sharding{{0}};
    halo_ = {halo};
    type_ = DType::i32;
    return all({&HaloCases::at_once, &HaloCases::adjoint});
  }

 private:
  std::string all(std::initializer_list<std::string (HaloCases::*)()> parts) {
    label_ = std::string(name_of(type_)) + " on " + describe(shape_) + ", " +
             describe(desc(), shape_) + " with";
    for (const HaloDim& d : halo_)
      label_ += " " + std::to_string(d.low) + "_" + std::to_string(d.high) + " " +
                std::string(name_of(d.boundary));
    for (const auto part : parts) {
      const std::string text = (this->*part)();
      if (!text.empty())
        return label_ + ", process " + std::to_string(mesh_->process()) + ": " + text;
    }
    return "";
  }
  HaloDim some_dim(Index n) {
    HaloDim d{random_.below(4), random_.below(4),
              random_.of<Boundary>({Boundary::none, Boundary::constant, Boundary::periodic,
                                    Boundary::reflected, Boundary::symmetric})};
    if (random_.chance(25)) d.low = random_.below(static_cast<int>(2 * n) + 1);
    if (random_.chance(25)) d.high = random_.below(static_cast<int>(2 * n) + 1);
    if (random_.chance(25)) d.low = d.high = 0;
    if (n > 0 && (d.boundary == Boundary::reflected || d.boundary == Boundary::symmetric)) {
      const Index most = n - (d.boundary == Boundary::reflected ? 1 : 0);
      d.low = min_of(d.low, most);
      d.high = min_of(d.high, most);
    }
    return d;
  }
  TensorDesc desc(DType type) const { return {type, extents_, sharding_}; }
  TensorDesc desc() const { return desc(type_); }
  Exact value(DType type, Index i, std::uint64_t seed) const {
    return element_value(type, is_boolean(type) ? Reduction::any : Reduction::sum, seed, i, 0);
  }

  DynamicTensor tensor(DType type, std::uint64_t seed) const {
    const TensorCore core = TensorCore::make(mesh_, desc(type));
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(TensorCore::local_bytes(*mesh_, desc(type))));
    const Box box = core.box();
    Index local = 0;
    for_each_index(box.extents(), [&](const Extents& at) {
      store(type, bytes.data(), local++, value(type, linear(box, at), seed));
    });
    detail::copy_from_host(core.data(), bytes.data(), static_cast<Index>(bytes.size()));
    return DynamicTensor(core);
  }
  Index linear(const Box& box, const Extents& at) const {
    const Extents strides = detail::row_major_strides(extents_);
    Index i = 0;
    for (int d = 0; d < at.size(); ++d) i += (box[d].lo + at[d]) * strides[d];
    return i;
  }
  /// The element that the halo has there, or -1.
  Index source(const Box& box, const Extents& at) const {
    const Extents strides = detail::row_major_strides(extents_);
    Index i = 0;
    for (int d = 0; d < at.size(); ++d) {
      const Index e = halo_element(box[d].lo + at[d], extents_[d], halo_[d].boundary);
      if (e < 0) return -1;
      i += e * strides[d];
    }
    return i;
  }
  Box expected_box() const {
    Box box = block(extents_, sharding_, shape_, mesh_->coordinates());
    for (int d = 0; d < box.rank(); ++d) {
      if (box[d].size() == 0) {
        box[d] = {0, 0};
        continue;
      }
      box[d] = {box[d].lo - halo_[d].low, box[d].hi + halo_[d].high};
      if (halo_[d].boundary == Boundary::none) box[d] = detail::intersect(box[d], {0, extents_[d]});
    }
    return box;
  }
  /// Compares an extended block; `outside` lies where there is no element.
  std::string compare(const DynamicHaloTensor& u, std::uint64_t seed, Exact outside) const {
    tessera::detail::fence();
    const Box box = expected_box();
    if (!(u.box().extents() == box.extents()) || (!box.empty() && !(u.box() == box)))
      return "another box";
    const DType type = u.desc().type;
    std::vector<std::byte> bytes(static_cast<std::size_t>(box.size()) * size_of(type));
    detail::copy_to_host(bytes.data(), u.block().core.data(), static_cast<Index>(bytes.size()));
    std::string text;
    Index local = 0;
    for_each_index(box.extents(), [&](const Extents& at) {
      const Index i = source(box, at);
      const Exact wanted = i < 0 ? outside : value(type, i, seed);
      if (const Exact got = load(type, bytes.data(), local++); got != wanted && text.empty())
        text = "element " + std::to_string(local - 1) + " is " + std::to_string(got.real()) +
               " in place of " + std::to_string(wanted.real());
    });
    return text;
  }

  /// Runs an operator and compares ledger, calls and arena with its plan.
  template <class Run> std::string watch(const Plan& plan, const Run& body) const {
    detail::Arena& arena = mesh_->arena();
    Ledger& ledger = mesh_->ledger();
    const Index held = arena.in_use();
    arena.reset_peak();
    ledger.reset();
    ledger.record_calls(true);
    Recording recording(mesh_);
    if (observer != nullptr) observer->begin();
    body();
    const std::vector<Call> planned = instructions_of(plan).calls;
    const std::string seen = observer != nullptr ? observer->end(*mesh_, planned) : "";
    const Program program = recording.take();
    ledger.record_calls(false);
    if (!seen.empty()) return seen;
    if (program.entries().size() != 1 || !(*program.entries()[0].plan == plan))
      return "it ran another plan than the dry one";
    if (arena.peak() - held != plan.peak_bytes)
      return "the arena's peak is " + std::to_string(arena.peak() - held) + "\n" + describe(plan);
    if (ledger.total().payload_bytes != plan.own_payload_bytes())
      return "the ledger has other bytes\n" + describe(plan);
    if (!(ledger.calls() == planned)) return "it made other calls than planned\n" + describe(plan);
    return "";
  }
  Plan plan(bool adjoint, bool in_place, DType type) const {
    const PlanOptions options = plan_options(*mesh_);
    return adjoint ? detail::plan_halo_adjoint(desc(type), halo_, shape_, mesh_->process(), options,
                                               {Corners::cheaper, in_place})
                   : detail::plan_halo(desc(type), halo_, shape_, mesh_->process(), options,
                                       {Corners::cheaper, in_place});
  }

  std::string at_once() {
    const DynamicTensor x = tensor(type_, 1);
    DynamicHaloTensor u;
    std::string text = watch(plan(false, false, type_), [&] { u = halo_exchange(x, halo_); });
    if (text.empty()) text = compare(u, 1, 0);
    if (!text.empty()) return "at once: " + text;
    auto pending = halo_exchange_async(x, halo_);
    while (random_.chance(50)) (void)pending.done();
    const DynamicHaloTensor v = pending.wait();
    text = compare(v, 1, 0);
    if (!text.empty()) return "started: " + text;
    const DynamicHaloTensor w = detail::with_type(type_, [&](auto zero) {
      return halo_exchange<decltype(zero)>(x, halo_, decltype(zero)(1));
    });
    text = compare(w, 1, 1);
    return text.empty() ? "" : "with a constant outside: " + text;
  }
  std::string in_place() {
    const DynamicHaloTensor u = detail::with_type(type_, [&](auto zero) {
      return make_halo(mesh_, extents_, sharding_, halo_, decltype(zero)(1));
    });
    for (const std::uint64_t seed : {2, 3, 4}) {
      u.assign(tensor(type_, seed));
      std::string text = watch(plan(false, true, type_), [&] {
        if (seed == 4) {
          auto pending = u.exchange_async();
          while (random_.chance(50)) (void)pending.done();
          pending.wait();
        } else {
          u.exchange();
        }
      });
      if (text.empty()) text = compare(u, seed, 1);
      if (!text.empty()) return "in place, turn " + std::to_string(seed) + ": " + text;
      if (!same(u.tensor(), tensor(type_, seed))) return "what the process owns has changed";
    }
    return "";
  }
  std::string together() {
    const DynamicTensor x = tensor(type_, 5), y = tensor(type_, 6), z = tensor(type_, 7);
    const std::vector<DynamicHaloTensor> all = halo_exchange_together({x, y, z}, halo_);
    for (std::size_t i = 0; i < 3; ++i)
      if (const std::string text = compare(all[i], 5 + i, 0); !text.empty())
        return "together: " + text;
    all[0].assign(z);
    all[2].assign(x);
    const Index messages = plan(false, true, type_).messages();
    mesh_->ledger().reset();
    exchange_together(all[0], all[1], all[2]);
    const Index made = mesh_->ledger().total().messages;
    const PlanOptions options = plan_options(*mesh_);
    const Plan one =
        detail::plan_halo_together({x.desc(), y.desc(), z.desc()}, {halo_, halo_, halo_}, shape_,
                                   mesh_->process(), options, {Corners::cheaper, true});
    if (made != one.messages()) return "together: other messages than planned";
    if (made > 0 && messages > 0 && one.steps.size() == plan(false, true, type_).steps.size() &&
        made != messages)
      return "together: more messages than one";
    for (std::size_t i = 0; i < 3; ++i)
      if (const std::string text = compare(all[i], 7 - i, 0); !text.empty())
        return "together in place: " + text;
    return "";
  }

  static bool same(const DynamicTensor& a, const DynamicTensor& b) {
    tessera::detail::fence();
    const auto bytes =
        static_cast<std::size_t>(TensorCore::local_bytes(*a.core().mesh(), a.desc()));
    std::vector<std::byte> mine(bytes), theirs(bytes);
    detail::copy_to_host(mine.data(), a.core().data(), static_cast<Index>(bytes));
    detail::copy_to_host(theirs.data(), b.core().data(), static_cast<Index>(bytes));
    return mine == theirs;
  }
  static double dot(const TensorCore& a, const void* other, const Box& box) {
    const auto n = static_cast<std::size_t>(box.size());
    std::vector<double> x(n), y(n);
    detail::copy_to_host(x.data(), a.data(), static_cast<Index>(n * sizeof(double)));
    detail::copy_to_host(y.data(), other, static_cast<Index>(n * sizeof(double)));
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += x[i] * y[i];
    return sum;
  }
  /// Sums over the processes that hold different blocks; exact, since all values are small whole
  /// numbers.
  double over_all(double own) const {
    std::vector<std::int64_t> all = mesh_->gather_facts({static_cast<std::int64_t>(own)}, {});
    double sum = 0;
    for (int p = 0; p < shape_.processes(); ++p) {
      const Coordinates at = shape_.coordinates(p);
      bool first = true;  // of its replicas
      for (int axis = 0; axis < shape_.rank(); ++axis)
        first = first && (sharding_.used().contains(axis) || at[axis] == 0);
      if (first) sum += static_cast<double>(all[static_cast<std::size_t>(p)]);
    }
    return sum;
  }
  /// <A x, y> == <x, A^T y>, in double; and in place the same bits.
  std::string adjoint() {
    const DynamicTensor x = tensor(DType::f64, 8);
    const DynamicHaloTensor ax = halo_exchange(x, halo_);
    const DynamicHaloTensor y = make_halo(mesh_, extents_, sharding_, halo_, 0.0);
    std::vector<double> values(static_cast<std::size_t>(y.box().size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(element(9, static_cast<Index>(i), replica_number()));
    detail::copy_from_host(y.block().core.data(), values.data(),
                           static_cast<Index>(values.size() * sizeof(double)));
    DynamicTensor back;
    if (const std::string text =
            watch(plan(true, false, DType::f64), [&] { back = halo_adjoint(y); });
        !text.empty())
      return "adjoint: " + text;
    tessera::detail::fence();
    const double forward = over_all(dot(ax.block().core, y.block().core.data(), y.box()));
    const double backward = over_all(dot(x.core(), back.core().data(), back.box()));
    if (forward != backward)
      return "adjoint: " + std::to_string(forward) + " forward and " + std::to_string(backward) +
             " backward";
    if (const std::string text = watch(plan(true, true, DType::f64), [&] { y.add_back(); });
        !text.empty())
      return "adjoint in place: " + text;
    if (!same(y.tensor(), back)) return "adjoint in place: another sum";
    return "";
  }
  /// Replicas of a block have equal values.
  int replica_number() const {
    Coordinates at = mesh_->coordinates();
    for (int axis = 0; axis < shape_.rank(); ++axis)
      if (!sharding_.used().contains(axis)) at[axis] = 0;
    return shape_.process(at);
  }

  std::shared_ptr<MeshCore> mesh_;
  MeshShape shape_;
  Random& random_;
  Extents extents_;
  Sharding sharding_;
  Halo halo_;
  DType type_ = DType::f32;
  std::string label_;
};

inline std::string halo_case(const std::shared_ptr<MeshCore>& mesh, Random& random) {
  return HaloCases(mesh, random).run();
}

}  // namespace support
