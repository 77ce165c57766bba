// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One tensor from one process and to one, from boxes and to them, chosen by a seed; compared with
/// plain loops, and with its plan: ledger, calls and arena. Used on loopback by the hundred and
/// under MPI by the dozen.
///
///     std::string wrong = support::boundary_case(mesh, random);       // collective over the mesh
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"
#include "support/observer.hpp"
#include "support/reference.hpp"

namespace support {

/// Cuts a tensor at random into disjoint boxes, one a process; some are empty, some processes have
/// equal ones.
inline std::vector<Box> random_boxes(Random& random, const Extents& extents, int processes) {
  std::vector<Box> boxes{whole(extents)};
  const bool replicas = random.chance(30);
  const int different = replicas ? 1 + random.below(processes) : processes;
  for (int tries = 0;
       static_cast<int>(boxes.size()) < different && tries < 4 * processes && !extents.empty();
       ++tries) {
    Box& box = boxes[static_cast<std::size_t>(random.below(static_cast<int>(boxes.size())))];
    const int d = random.below(extents.size());
    if (box[d].size() < 2) continue;
    const Index cut = box[d].lo + 1 + random.below(static_cast<int>(box[d].size()) - 1);
    Box rest = box;
    box[d].hi = cut;
    rest[d].lo = cut;
    boxes.push_back(rest);
  }
  const int filled = static_cast<int>(boxes.size());
  while (static_cast<int>(boxes.size()) < processes) {
    Box box = boxes[static_cast<std::size_t>(random.below(filled))];
    if (!replicas && !extents.empty()) box[0].hi = box[0].lo;
    boxes.push_back(box);
  }
  for (int p = processes - 1; p > 0; --p)
    std::swap(boxes[static_cast<std::size_t>(p)],
              boxes[static_cast<std::size_t>(random.below(p + 1))]);
  return boxes;
}

template <class T> class BoundaryCases {
 public:
  BoundaryCases(std::shared_ptr<MeshCore> mesh, Random& random)
      : mesh_(std::move(mesh)), shape_(mesh_->shape()), random_(random) {
    const int rank = random_.below(4);
    for (int d = 0; d < rank; ++d)
      desc_.extents.push_back(
          random_.of<Index>({1, 2, 3, 4, 5, 7, 8, random_.chance(20) ? 0 : 37}));
    desc_.type = dtype_of<T>;
    desc_.sharding = some_sharding(random_, rank, shape_.rank());
    whole_ = Whole<T>(desc_.extents);
    for (Index i = 0; i < whole_.size(); ++i) whole_[i] = static_cast<T>(element(5, i, 0));
    root_ = random_.below(shape_.processes());
  }

  std::string from_root() {
    const std::vector<T> given = mesh_->process() == root_ ? whole_.values : std::vector<T>{};
    DynamicTensor x;
    return run(
        "from_root",
        detail::plan_from_root(desc_, root_, shape_, mesh_->process(), plan_options(*mesh_)),
        [&] {
          x = tessera::from_root<T>(mesh_, desc_.extents, desc_.sharding, root_,
                                    std::span<const T>(given));
        },
        [&] { return same(to_block<T>(x).values, block_of(whole_, x.box())); });
  }
  std::string to_root() {
    const DynamicTensor x = tensor();
    HostTensor<T> host;
    return run(
        "to_root",
        detail::plan_to_root(desc_, root_, shape_, mesh_->process(), plan_options(*mesh_)),
        [&] { host = tessera::to_root<T>(x, root_); },
        [&] {
          return same(host.values, mesh_->process() == root_ ? whole_.values : std::vector<T>{});
        });
  }
  std::string from_boxes() {
    const std::vector<Box> boxes = random_boxes(random_, desc_.extents, shape_.processes());
    const Kokkos::View<T*> view = filled(boxes[static_cast<std::size_t>(mesh_->process())]);
    const Irregular declared = random_.chance(50)
                                   ? Irregular(boxes)
                                   : Irregular(boxes[static_cast<std::size_t>(mesh_->process())]);
    DynamicTensor x;
    return run(
        "from_irregular",
        detail::plan_from_boxes(desc_, boxes, shape_, mesh_->process(), plan_options(*mesh_)),
        [&] { x = from_irregular(mesh_, desc_.extents, desc_.sharding, declared, view); },
        [&] { return same(to_block<T>(x).values, block_of(whole_, x.box())); });
  }
  std::string to_boxes() {
    std::vector<Box> boxes = random_boxes(random_, desc_.extents, shape_.processes());
    for (Box& box : boxes)  // they may overlap
      for (int d = 0; d < box.rank() && random_.chance(30); ++d)
        box[d].hi = min_of(desc_.extents[d], box[d].hi + 1);
    const DynamicTensor x = tensor();
    const Box& own = boxes[static_cast<std::size_t>(mesh_->process())];
    const Kokkos::View<T*> view("box", static_cast<std::size_t>(own.size()));
    return run(
        "to_irregular",
        detail::plan_to_boxes(desc_, boxes, shape_, mesh_->process(), plan_options(*mesh_)),
        [&] { to_irregular(x, own, view); },
        [&] {
          std::vector<T> values(static_cast<std::size_t>(own.size()));
          detail::copy_to_host(values.data(), view.data(),
                               static_cast<Index>(values.size() * sizeof(T)));
          return same(values, block_of(whole_, own));
        });
  }

 private:
  DynamicTensor tensor() {
    const Box box = block(desc_.extents, desc_.sharding, shape_, mesh_->coordinates());
    const std::vector<T> values = block_of(whole_, box);
    return from_blocks<T>(mesh_, desc_.extents, desc_.sharding, std::span<const T>(values));
  }
  Kokkos::View<T*> filled(const Box& box) {
    const std::vector<T> values = block_of(whole_, box);
    const Kokkos::View<T*> view("box", values.size());
    detail::copy_from_host(view.data(), values.data(),
                           static_cast<Index>(values.size() * sizeof(T)));
    return view;
  }
  static std::string same(const std::vector<T>& mine, const std::vector<T>& wanted) {
    return mine == wanted ? "" : "other elements";
  }

  /// Runs one operator and compares ledger, calls and arena with its plan.
  template <class Run, class Compare>
  std::string run(const char* name, const Plan& plan, const Run& body, const Compare& compare) {
    const std::string label = std::string(name) + " of " + describe(desc_, shape_) + " on " +
                              describe(shape_) + ", root " + std::to_string(root_) + "\n" +
                              describe(plan) + "process " + std::to_string(mesh_->process()) + ": ";
    detail::Arena& arena = mesh_->arena();
    Ledger& ledger = mesh_->ledger();
    const Index held = arena.in_use();
    arena.reset_peak();
    ledger.reset();
    ledger.record_calls(true);
    Recording recording(mesh_);
    if (observer != nullptr) observer->begin();
    body();
    const std::string seen =
        observer != nullptr ? observer->end(*mesh_, instructions_of(plan).calls) : "";
    const Program program = recording.take();
    ledger.record_calls(false);
    const Index peak = arena.peak() - held;
    if (!seen.empty()) return label + seen;
    if (program.entries().size() != 1 || !(*program.entries()[0].plan == plan))
      return label + "it ran another plan than the dry one";
    if (peak != plan.peak_bytes)
      return label + "the arena's peak is " + std::to_string(peak) + " bytes";
    if (ledger.total().payload_bytes != plan.own_payload_bytes())
      return label + "the ledger has " + std::to_string(ledger.total().payload_bytes) + " bytes";
    if (!(ledger.calls() == instructions_of(plan).calls))
      return label + "it made other calls than planned";
    const std::string text = compare();
    return text.empty() ? "" : label + text;
  }

  std::shared_ptr<MeshCore> mesh_;
  MeshShape shape_;
  Random& random_;
  TensorDesc desc_;
  Whole<T> whole_;
  int root_ = 0;
};

inline std::string boundary_case(const std::shared_ptr<MeshCore>& mesh, Random& random) {
  const DType type = random.of<DType>({DType::f32, DType::f64, DType::i32, DType::i64});
  const int which = random.below(4);
  return with_sampled_type(type, [&](auto element) {
    BoundaryCases<decltype(element)> cases(mesh, random);
    switch (which) {
      case 0:
        return cases.from_root();
      case 1:
        return cases.to_root();
      case 2:
        return cases.from_boxes();
      default:
        return cases.to_boxes();
    }
  });
}

}  // namespace support
