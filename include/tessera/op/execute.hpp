// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The one executor: it carries a prepared plan out, step by step, and decides nothing.
///
///     TensorCore y = execute(prepared, {&x, &w}, {"bsm,mh->bsh", where});
///
/// Laws: it makes exactly the calls of the plan's work, and holds exactly plan.peak_bytes of arena
/// memory at most; on a dry mesh it does the accounting and nothing else. A Kokkos Tools library
/// sees one region an operator, and in it one for each call.
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include <tessera/kernel/copy.hpp>
#include <tessera/kernel/detail/tool_region.hpp>
#include <tessera/kernel/fence.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/gemm.hpp>
#include <tessera/kernel/reduce.hpp>
#include <tessera/op/detail/side.hpp>
#include <tessera/op/plan_cache.hpp>
#include <tessera/op/recording.hpp>
#include <tessera/plan/explain.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera {

/// The call of an operator as the user wrote it.
struct CallSite {
  std::string_view label;
  Where where;
};

/// The elementwise kernel of a map step, erased: run(context, map, out, inputs).
struct MapKernel {
  void (*run)(const void* context, const LocalMap& map, void* out, const void* const* in) = nullptr;
  const void* context = nullptr;
};

namespace detail {

using OperandList = FixedVector<const TensorCore*, max_operands>;

class Execution {
 public:
  Execution(const Prepared& prepared, const OperandList& operands, CallSite site, double scale,
            MapKernel kernel, const TensorCore* destination)
      : prepared_(prepared),
        plan_(*prepared.plan),
        mesh_(operands[0]->mesh()),
        operands_(operands),
        site_(site),
        scale_(scale),
        kernel_(kernel),
        destination_(destination),
        live_(!mesh_->dry()) {
    for (int i = 0; i < operands.size(); ++i) data_[i] = operands[i]->data();
  }

  TensorCore run() {
    Recorder& recorder = mesh_->attachment<Recorder>();
    const int entry =
        recorder.on() ? recorder.begin(prepared_.plan, site_.label, site_.where, *mesh_, operands_)
                      : -1;
    for (int i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      const StepWork& work = prepared_.work[static_cast<std::size_t>(i)];
      open(step);
      carry_out(step, work);
      close(step, i);
    }
    TensorCore result(mesh_, plan_.result_desc(),
                      plan_.result < plan_.operands ? operands_[plan_.result]->storage()
                                                    : std::move(storage_[plan_.result]));
    if (entry >= 0) recorder.end(entry, result);
    return result;
  }

 private:
  void open(const Step& step) {
    if (step.takes >= 0) {
      storage_[step.out] = std::move(storage_[step.takes]);
    } else if (plan_.slots[step.out].given) {
      storage_[step.out] = destination_->storage();
    } else {
      storage_[step.out] = std::make_shared<Storage>(mesh_, plan_.slots[step.out].bytes);
    }
    data_[step.out] = storage_[step.out]->data();
  }
  void close(const Step& step, int i) {
    for (int slot : step.in)
      if (plan_.slots[slot].role == SlotRole::temporary && plan_.slots[slot].last_use == i)
        storage_[slot].reset();
  }
  static void copy_all(DType type, Side from, Side to, const std::vector<StridedCopy>& copies) {
    if (!copies.empty()) copy_between(type, from, to, copies);
  }
  /// What one process has whole lies in memory of its host.
  bool in_host_memory(int slot) const {
    return plan_.slots[slot].place.kind == Placement::Kind::root;
  }
  void carry_out(const Step& step, const StepWork& work) {
    const void* in = data_[step.in[0]];
    void* out = data_[step.out];
    const DType type = plan_.slots[step.out].desc.type;
    const Side source{const_cast<void*>(in), in_host_memory(step.in[0])};
    const Side destination{out, in_host_memory(step.out)};
    if (step.kind == StepKind::communicate) {
      communicate(work, type, source, destination);
      for (Index round = 1; round < step.rounds; ++round)
        communicate(work_of(plan_, step, round), type, source, destination);
      return;
    }
    if (!live_) return;
    switch (step.kind) {
      case StepKind::communicate:
        break;
      case StepKind::slice:
      case StepKind::copy:
      case StepKind::permute:
      case StepKind::diagonal:
        if (work.zeroed)
          fill(type, out, plan_.slots[step.out].bytes / static_cast<Index>(size_of(type)), 0);
        copy_all(type, source, destination, work.local);
        break;
      case StepKind::contract:
        contract(work.contract, type, in, data_[step.in[1]], out);
        break;
      case StepKind::reduce:
        tessera::reduce(type, plan_.reduction, work.reduce, in, out, scale_);
        break;
      case StepKind::map: {
        std::array<const void*, max_operands> inputs{};
        for (int k = 0; k < step.in.size(); ++k)
          inputs[static_cast<std::size_t>(k)] = data_[step.in[k]];
        kernel_.run(kernel_.context, work.map, out, inputs.data());
        break;
      }
    }
  }
  static void contract(const ContractionWork& work, DType type, const void* a, const void* b,
                       void* c) {
    const auto at = [&](const void* data, Index elements) {
      return static_cast<const char*>(data) + elements * static_cast<Index>(size_of(type));
    };
    for (int panel = 0; panel < work.k_panels; ++panel) {
      const void* first = at(a, panel * work.k_step_a);
      const void* second = at(b, panel * work.k_step_b);
      tessera::gemm(type, work.gemm, work.swapped ? second : first, work.swapped ? first : second,
                    c, panel > 0 ? 1 : 0);
    }
  }
  void communicate(const StepWork& work, DType type, Side in, Side out) {
    const Staging send(mesh_->arena(), work.send_staging, in.host);
    const Staging receive(mesh_->arena(), work.receive_staging, out.host);
    const auto at = [&](Buffer buffer, Side block) {
      return buffer == Buffer::block          ? block.data
             : buffer == Buffer::send_staging ? send.side().data
                                              : receive.side().data;
    };
    Side packed_from = in;
    work.for_each_call([&](const CallWork& one) {
      if (live_) {
        copy_all(type, packed_from, send.side(), one.pack);
        copy_all(type, in, out, one.local);
        tessera::fence();
      }
      mesh_->collective(one.call, at(one.send, in), at(one.receive, out), site_.label, site_.where);
      if (live_) copy_all(type, receive.side(), out, one.unpack);
      packed_from = receive.side();
    });
    if (live_ && work.receive_staging > 0) tessera::fence();  // the staging memory goes back
  }

  const Prepared& prepared_;
  const Plan& plan_;
  const std::shared_ptr<MeshCore>& mesh_;
  const OperandList& operands_;
  CallSite site_;
  double scale_;
  MapKernel kernel_;
  const TensorCore* destination_;
  bool live_;
  std::array<void*, Plan::max_slots> data_{};
  std::array<std::shared_ptr<Storage>, Plan::max_slots> storage_;
};

/// Returns the mesh of a tensor. Throws UsageError when the tensor is empty, or the mesh or Kokkos
/// are no more.
inline MeshCore& mesh_of(const TensorCore& x, CallSite site) {
  if (!x.defined())
    throw UsageError(std::string(site.label) +
                         ": an empty tensor is used; assign one made by zeros, random, "
                         "from_function or an operator first",
                     site.where);
  MeshCore& mesh = *x.mesh();
  mesh.require_usable(site.where);
  return mesh;
}

/// Runs f; what it throws says where the operator was called, and on which process.
template <class F> decltype(auto) on_process(const MeshCore& mesh, CallSite site, F&& f) {
  try {
    return f();
  } catch (MemoryError& error) {
    error.complete(site.label, site.where, mesh.process_text());
    throw;
  } catch (Error& error) {
    error.complete({}, site.where, mesh.process_text());
    throw;
  }
}

/// Throws MeshError unless all operands live on one mesh.
inline void require_one_mesh(const OperandList& operands, CallSite site) {
  for (int i = 1; i < operands.size(); ++i)
    if (&mesh_of(*operands[i], site) != &mesh_of(*operands[0], site))
      throw MeshError(std::string(site.label) + ": operand 1 lives on a mesh " +
                          operands[0]->mesh()->to_string() + " and operand " +
                          std::to_string(i + 1) + " on another one, " +
                          operands[i]->mesh()->to_string() +
                          ", made by another make_mesh; operators take tensors of one mesh object; "
                          "make one mesh and all tensors on it",
                      site.where);
}

/// Throws unless `into` can take the result of a plan over these operands: it lies on their mesh,
/// is what the plan makes, and shares no memory with an operand other than the last one of a plan
/// that adds to it.
inline void require_destination(const Plan& plan, const OperandList& operands,
                                const TensorCore& into, CallSite site) {
  const std::string label(site.label);
  if (into.mesh() != operands[0]->mesh())
    throw MeshError(label +
                        ": the destination lives on another mesh than the operands; make it "
                        "on the mesh of the operands",
                    site.where);
  const AxisNames& names = into.mesh()->names();
  if (!(into.desc() == plan.result_desc()))
    throw ShapeError(label + ": the result is " + to_string(plan.result_desc(), names) +
                         " and the destination " + to_string(into.desc(), names) +
                         "; give a tensor of the result's element type, extents and spec",
                     site.where);
  const auto begins = [](const TensorCore& t) { return static_cast<const char*>(t.data()); };
  const auto ends = [&](const TensorCore& t) {
    return begins(t) + TensorCore::local_bytes(*t.mesh(), t.desc());
  };
  const int read = operands.size() - (plan.destination == Destination::accumulated ? 1 : 0);
  for (int i = 0; i < read; ++i)
    if (into.storage() == operands[i]->storage() ||
        (!into.dry() && begins(into) < ends(*operands[i]) && begins(*operands[i]) < ends(into)))
      throw UsageError(label + ": the destination shares its memory with operand " +
                           std::to_string(i + 1) +
                           ", which is read while the destination is written; give a tensor of "
                           "its own memory",
                       site.where);
}

/// Checks that all processes are about to do the same, at check level `communicating`.
inline void require_agreement(const OperandList& operands, const PlanKey& key, CallSite site) {
  MeshCore& mesh = *operands[0]->mesh();
  if (mesh.check() < Check::communicating) return;
  std::uint64_t digest = key.digest();  // the name too: two functions may have one plan
  for (char c : site.label) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100'0000'01B3u;
  mesh.agree(
      digest,
      [&] {
        std::string text(site.label);
        for (int i = 0; i < operands.size(); ++i)
          text += (i == 0 ? " of " : " and ") + to_string(operands[i]->desc(), mesh.names());
        return text;
      },
      site.where);
}

/// Returns "tessera::einsum ij,jk->ik", "tessera::reduce sum ij->i", "tessera::reshard": what
/// Kokkos Tools are told.
inline std::string region_name(const Plan& plan, std::string_view label) {
  std::string text = "tessera::" + std::string(name_of(plan.kind));
  if (plan.kind == OperatorKind::reduce) text += " " + std::string(name_of(plan.reduction));
  return label == name_of(plan.kind) ? text : text + " " + std::string(label);
}
}  // namespace detail

/// Carries out a prepared plan on the operands and returns its result, which is `destination` where
/// the plan has one. Collective over the mesh. Communication: plan.steps. Throws
/// CommunicationError, MemoryError.
inline TensorCore execute(const Prepared& prepared, const detail::OperandList& operands,
                          CallSite site, double scale = 1, MapKernel kernel = {},
                          const TensorCore* destination = nullptr) {
  const detail::ToolRegion region([&] { return detail::region_name(*prepared.plan, site.label); },
                                  !operands[0]->mesh()->dry());
  return detail::Execution(prepared, operands, site, scale, kernel, destination).run();
}

}  // namespace tessera
