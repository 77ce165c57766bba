// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The numbers of a step that takes regions, on one process: of its work, or, for an exchange of
/// one tensor within a node, dimension by dimension without making the work's pieces, of which a
/// process among thousands may have thousands.
///
///     detail::RegionNumbers n = detail::region_numbers(plan, step, process);      // n.payload, n.messages
///
/// Laws: both ways give the same numbers.
#include <vector>

#include <tessera/plan/region/region_payload.hpp>
#include <tessera/plan/region/region_work.hpp>

namespace tessera::detail {

struct RegionNumbers {
  Index payload = 0;   ///< elements
  Index network = 0;   ///< the part of these that goes between nodes
  Index messages = 0;  ///< that are sent
  Index senders = 0;   ///< from which something arrives
  Index arriving = 0;  ///< elements
  Index send_bytes = 0, receive_bytes = 0, sum_bytes = 0;  ///< of staging memory
  Index copied = 0;   ///< elements that the process copies to itself
  Index largest = 0;  ///< elements of the largest message, for a broadcast
  int members = 1;
  constexpr bool operator==(const RegionNumbers&) const = default;

  constexpr RegionNumbers() = default;
  constexpr explicit RegionNumbers(const MoveWork& work)
      : payload(payload_elements(work.call)),
        network(work.call.network),
        messages(message_count(work.call)),
        senders(static_cast<Index>(work.call.receive.size())),
        send_bytes(work.send_bytes),
        receive_bytes(work.receive_bytes),
        sum_bytes(work.sum_bytes),
        largest(work.call.bound),
        members(work.call.members) {
    for (const Piece& piece : work.call.receive) arriving = saturating_add(arriving, piece.count);
    for (const MemoryCopy& copy : work.local)
      copied = saturating_add(copied, volume(copy.copy.extents));
  }
};

/// The pieces of a region that one process sends, or receives, as products over the dimensions.
class PiecesByDim {
 public:
  constexpr PiecesByDim(const Region& region, bool sends, const MeshShape& mesh,
                        const Coordinates& self, const BoxInMemory& memory)
      : sends_(sends), mesh_(mesh), self_(self), free_(source_axes(region)) {
    if (sends) copies_ = mesh.group_size(free_ - needing_axes(region));
    for (const RegionDim& d : region) add(d);
    for (int d = 0; d < dims_.size(); ++d) {
      own_ = saturating_mul(own_, dims_[d].own);
      all_ = saturating_mul(all_, dims_[d].all);
      peers_ = saturating_mul(peers_, dims_[d].peers);
    }
    all_ = saturating_mul(all_, copies_);
    peers_ = all_ == 0 ? 0 : saturating_mul(peers_, copies_) - (own_ > 0);
    runs_ = peers_ == 0 || (!peer_has_several() && runs(0, {}, {}, false, memory));
  }
  /// Elements from or to others, and of the process's own.
  constexpr Index others() const { return all_ - own_; }
  constexpr Index own() const { return own_; }
  constexpr Index peers() const { return peers_; }
  /// Whether each message is one run of the block.
  constexpr bool runs() const { return runs_; }
  /// False where pieces have too many shapes.
  constexpr bool counted() const { return counted_; }

 private:
  struct Shape {
    Index count, step;
    bool own, other;  ///< of a piece that the process keeps, that it does not
  };
  struct Dim {
    Index all = 0, own = 0, peers = 0;
    bool several_own = false, several_other = false;  ///< pieces for one process
    FixedVector<Shape, 16> shapes;
  };

  constexpr void add(const RegionDim& d) {
    Dim& dim = dims_.push_back({});
    const AxisSet axes = (sends_ ? d.used() : d.source_axes.set()) & free_;
    std::vector<Index> pieces(static_cast<std::size_t>(mesh_.group_size(axes)), 0);  // of each peer
    const auto piece = [&](const Strand& strand, const Coordinates& at) {
      const bool own = at == self_;
      const Index step = sends_ ? strand.source_step : strand.step;
      dim.all += strand.count;
      if (own) dim.own += strand.count;
      ++pieces[static_cast<std::size_t>(mesh_.place_in_group(axes, at))];
      for (Shape& shape : dim.shapes)
        if (shape.count == strand.count && shape.step == step) {
          (own ? shape.own : shape.other) = true;
          return;
        }
      if (dim.shapes.size() < dim.shapes.capacity)
        dim.shapes.push_back({strand.count, step, own, !own});
      else
        counted_ = false;
    };
    Coordinates at = self_;
    const Interval mine = owned(d, mesh_, self_), wanted = needed(d, mesh_, self_);
    if (d.turn != RegionDim::Turn::now) {
      if (const Interval held = sends_ ? mine : wanted; held.size() > 0)
        piece(kept_strand(held), self_);
    } else if (sends_) {
      for_each_strand(d, mine, needed_by_all(d), [&](const Strand& strand) {
        for_each_needing(d, strand, free_, mesh_, at, [&](const Strand& part) { piece(part, at); });
      });
    } else {
      for_each_strand(d, {0, d.source_size()}, wanted, [&](const Strand& strand) {
        const Interval elements = strand.elements();
        const Interval units{quotient(elements.lo, d.source_unit),
                             ceil_div(elements.hi, d.source_unit)};
        for_each_part({0, d.source_extent}, units, d.source_axes, 0, free_, mesh_, at,
                      [&](Interval) {
                        const Strand part = strand.of_elements(owned(d, mesh_, at));
                        if (part.count > 0) piece(part, at);
                      });
      });
    }
    const auto here = static_cast<std::size_t>(mesh_.place_in_group(axes, self_));
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      dim.peers += pieces[i] > 0;
      if (pieces[i] > 1) (i == here ? dim.several_own : dim.several_other) = true;
    }
  }
  /// Returns whether another process has several pieces.
  constexpr bool peer_has_several() const {
    for (int d = 0; d < dims_.size(); ++d) {
      if (dims_[d].several_other) return true;
      Index with_own = copies_;  // of the processes that are alike in this dimension
      for (int e = 0; e < dims_.size(); ++e)
        if (e != d) with_own = saturating_mul(with_own, dims_[e].peers);
      if (dims_[d].several_own && with_own > (own_ > 0)) return true;
    }
    return false;
  }
  /// Returns whether all pieces for others with these shapes in the first dimensions are runs.
  constexpr bool runs(int d, Extents counts, Extents steps, bool other,
                      const BoxInMemory& memory) const {
    if (d == dims_.size()) return !(other || copies_ > 1) || is_run({counts, 0, steps});
    counts.push_back(0);
    steps.push_back(0);
    for (const Shape& shape : dims_[d].shapes) {
      counts[d] = shape.count;
      steps[d] = shape.step * memory.strides[d];
      // A shape of both kinds stands for pieces for others in whatever other dimensions.
      if (!runs(d + 1, counts, steps, other || shape.other, memory)) return false;
    }
    return true;
  }

  bool sends_;
  const MeshShape& mesh_;
  const Coordinates& self_;
  AxisSet free_;
  Index copies_ = 1;
  FixedVector<Dim, max_dims> dims_;
  Index own_ = 1, all_ = 1, peers_ = 1;
  bool runs_ = true, counted_ = true;
};

/// Returns whether the numbers of a step can be found dimension by dimension.
constexpr bool numbers_by_dim(const Plan& plan, const Step& step) {
  const Region& region = plan.regions[step.region];
  return step.kind == StepKind::communicate && step.collective == Collective::exchange &&
         step.level != Level::network && step.in.size() == 1 && step.in[0] != step.out &&
         !step.adjoint && !regroups(region) && RegionPayload::counts(region, false);
}

/// Returns the numbers of such a step on a process.
constexpr RegionNumbers region_numbers(const Plan& plan, const Step& step, int process) {
  if (!numbers_by_dim(plan, step)) return RegionNumbers(RegionWork(plan, step, process).make());
  const Coordinates at = plan.mesh.coordinates(process);
  const Region& region = plan.regions[step.region];
  const RegionWork work(plan, step, process);
  const PiecesByDim out(region, true, plan.mesh, at, work.memory_of(0, true, at)),
      in(region, false, plan.mesh, at, work.memory_of(0, false, at));
  if (!out.counted() || !in.counted()) return RegionNumbers(RegionWork(plan, step, process).make());
  const Index unit = static_cast<Index>(size_of(plan.slots[step.in[0]].desc.type));
  RegionNumbers n;
  n.payload = out.others();
  n.messages = out.peers();
  n.senders = in.peers();
  n.arriving = in.others();
  n.send_bytes = out.runs() ? 0 : saturating_mul(out.others(), unit);
  n.receive_bytes = in.runs() ? 0 : saturating_mul(in.others(), unit);
  n.copied = in.own();
  n.members = plan.mesh.group_size(step.group);
  return n;
}

/// Fills in the numbers of such a step.
constexpr void number_region(const Plan& plan, Step& step, const RegionNumbers& n) {
  step.scratch = arena_charge(n.sum_bytes);
  if (step.kind != StepKind::communicate) return;
  const Index unit = static_cast<Index>(size_of(plan.slots[step.in[0]].desc.type));
  step.payload = n.payload * unit;
  step.network_payload = n.network * unit;
  step.messages = n.messages;
  step.scratch += arena_charge(n.send_bytes) + arena_charge(n.receive_bytes);
}
constexpr void number_region(const Plan& plan, Step& step, int process) {
  if (step.kind == StepKind::communicate || step.adjoint)
    number_region(plan, step, region_numbers(plan, step, process));
}
}  // namespace tessera::detail
