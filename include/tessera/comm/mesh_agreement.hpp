// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the processes of a mesh agree: they compare the operators that they are about to run,
/// exchange small facts, and stop using a mesh once something has failed on it.
///
///     mesh.begin_operator(mark, [&] { return words; }, where);
///     std::vector<std::int64_t> all = mesh.gather_facts({mine}, where);
///
/// Laws: a mesh that failed refuses every further use; none of these calls is in a ledger.
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/error.hpp>
#include <tessera/comm/detail/agreement.hpp>
#include <tessera/comm/detail/mesh_groups.hpp>
#include <tessera/comm/detail/mesh_history.hpp>
#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/mesh_identity.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera::detail {

class MeshAgreement : public MeshIdentity {
 public:
  bool usable() const { return reason_.empty(); }
  /// Returns whether processes compare their calls, and tensors keep a digest of their origin: at
  /// level `normal` and above, with several processes.
  bool remembers() const { return history_.on(); }
  /// Return a number for one more such tensor of this process, and for one more tensor with this
  /// digest that no operator has made.
  std::uint64_t next_number() { return ++numbers_; }
  std::uint64_t next_born(std::uint64_t digest) { return ++born_[digest % born_.size()]; }

  /// Announces an operator that communicates and that this process is about to run. At level
  /// `normal` it compares the operator with those that the processes of this node have announced;
  /// above, agree() compares. It waits for nobody, except that every Trail::length-th operator of a
  /// mesh with several nodes is an all-reduce of two integers, in no ledger. `description()`
  /// returns the operator in words; it is called rarely. Returns a digest of the operator's place
  /// among all. Collective over: all processes of the mesh. Throws MismatchError on a process that
  /// finds another call than its own, which ends the others' waits.
  template <class D>
  std::uint64_t begin_operator(const detail::OperatorMark& mark, const D& description,
                               Where where) {
    if (!history_.on()) return 0;
    const std::uint64_t text = detail::mix(
        mark.call ^ static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(where.file)),
        static_cast<std::uint64_t>(where.line));
    history_.write(mark, text, [&] { return detail::placed(description(), where); });
    if (options_.check < Check::communicating) compare_histories(where);
    return history_.place().ordinal;
  }

  /// Compares, at level `communicating` and above, what all processes are about to do: `digest`
  /// stands for it, `description` (a string, or a callable that returns one, called only on
  /// disagreement) says it in words. Communication: one all-reduce of two integers, in no ledger.
  /// Collective over: all processes of the mesh. Throws MismatchError on every process when the
  /// digests differ, with this process's call and the first that differs.
  template <class D> void agree(std::uint64_t digest, D&& description, Where where) {
    if (options_.check < Check::communicating) return;
    always_agree(digest, std::forward<D>(description), where);
  }

  /// Compares at any level of checks, as agree() does.
  template <class D> void always_agree(std::uint64_t digest, D&& description, Where where) {
    require_usable(where);
    if (by_itself()) return;
    const detail::Publish publish = in_call("", where, "comparison of operators", "the mesh");
    guarded({}, where, [&] {
      if (detail::all_equal(*control_, digest)) return;
      std::string text;
      if constexpr (std::convertible_to<D, std::string>)
        text = std::forward<D>(description);
      else
        text = description();
      detail::report_disagreement(*control_, digest, text, where);
    });
  }

  /// Returns the numbers given by every process, in the order of the processes in the mesh: small
  /// facts that all must know before they can decide alike. All processes give equally many.
  /// Communication: one all-gather of them, in no ledger; none on a dry mesh, or a fake one,
  /// where this process's numbers stand for all. Collective over: all processes of the mesh. Throws
  /// CommunicationError.
  std::vector<std::int64_t> gather_facts(const std::vector<std::int64_t>& own, Where where) {
    require_usable(where);
    std::vector<std::int64_t> all;
    if (by_itself()) {
      for (int p = 0; p < shape_.processes(); ++p) all.insert(all.end(), own.begin(), own.end());
      return all;
    }
    begin_exchange("an exchange of facts", where);
    const detail::Publish publish = in_call("", where, "an exchange of facts", "the mesh");
    guarded({}, where,
            [&] { all = detail::gather_in_order(*control_, own, process_, shape_.processes()); });
    return all;
  }
  /// Returns the least of the numbers that the processes give. Communication: one all-reduce of an
  /// integer, in no ledger. Collective over: all processes of the mesh. Throws CommunicationError.
  std::int64_t least(std::int64_t own, Where where) {
    require_usable(where);
    if (by_itself()) return own;
    begin_exchange("an exchange of facts", where);
    const detail::Publish publish = in_call("", where, "an exchange of facts", "the mesh");
    guarded({}, where, [&] {
      control_->run(detail::control_all_reduce(*control_, Reduction::min, 1), &own, &own);
    });
    return own;
  }

  /// Adds the numbers that the processes give, each in its place, modulo 2^64. All processes give
  /// equally many. Communication: one all-reduce of them, in no ledger. Collective over: all
  /// processes of the mesh. Throws CommunicationError.
  void sum_facts(std::vector<std::uint64_t>& numbers, Where where) {
    require_usable(where);
    if (by_itself()) return;
    begin_exchange("an exchange of facts", where);
    const detail::Publish publish = in_call("", where, "an exchange of facts", "the mesh");
    guarded({}, where, [&] {
      Call call =
          detail::control_all_reduce(*control_, Reduction::sum, static_cast<Index>(numbers.size()));
      call.type = DType::u64;
      control_->run(call, numbers.data(), numbers.data());
    });
  }

  /// Returns when all processes have called it. Collective over: all processes of the mesh. Throws
  /// CommunicationError.
  void barrier(Where where = Where::here()) {
    require_usable(where);
    begin_exchange("a barrier", where);
    const detail::Publish publish = in_call("", where, "a barrier", "");
    guarded("barrier", where, [&] { transport_->barrier(); });
  }

  /// Makes further use throw UsageError with this reason, since something failed half-way. The
  /// first reason stays.
  void poison(std::string_view reason) {
    if (usable()) reason_ = reason.empty() ? "failed" : reason;
  }
  /// Throws UsageError unless the mesh may be used and Kokkos is not finalized.
  void require_usable(Where where) const {
    if (thread_ != std::this_thread::get_id())
      throw UsageError("the mesh " + to_string() +
                           " is used by another thread than the one that made it; a process has "
                           "one thread that calls operators, and MPI and the others wait for that "
                           "one alone: call them there, and leave threads to kernels",
                       where);
    if (!usable())
      throw UsageError("the mesh " + to_string() + " cannot be used: " + reason_, where);
    if (!dry_ && Kokkos::is_finalized())
      throw UsageError("the mesh " + to_string() +
                           " cannot be used: Kokkos has been finalized, and nothing can be "
                           "computed after that; finalize it after the last operator, or leave it "
                           "to tessera::Environment",
                       where);
  }

  /// Returns whether there is a blackboard to show layers on.
  bool shows_layers() const { return transport_ != nullptr && transport_->blackboard() != nullptr; }
  /// Shows on it that this process is within the layers of this path.
  void show_layer(std::string_view path) {
    transport_->blackboard()->layer(transport_->seat(), path);
  }

 protected:
  MeshAgreement(std::shared_ptr<Transport> own, const MeshShape& shape, const AxisNames& names,
                const MeshOptions& options)
      : MeshIdentity(shape, names, options),
        transport_(std::move(own)),
        control_(
            transport_->group(detail::all_members(transport_->size()), detail::control_purpose)) {
    dry_ = transport_->dry();
    alone_ = transport_->alone();
    absent_ = transport_->absent();
    process_ = transport_->process();
  }
  ~MeshAgreement() = default;

  /// Returns whether no other process exists to compare anything with.
  bool by_itself() const { return dry_ || alone_ || shape_.processes() == 1; }
  /// While the result lives, the blackboard shows that this process is in a call.
  detail::Publish in_call(std::string_view label, Where where, std::string_view kind,
                          std::string_view over) const {
    return {transport_ == nullptr ? nullptr : transport_->blackboard(),
            transport_ == nullptr ? 0 : transport_->seat(),
            {label, where, kind, over, history_.place()}};
  }
  /// Announces a call of the whole mesh, which is compared like an operator.
  void begin_exchange(std::string_view kind, Where where) {
    begin_operator(
        {detail::mix(0, kind), 0, 0}, [&] { return std::string(kind); }, where);
  }
  void compare_histories(Where where) {
    if (history_.differs())
      guarded({}, where, [&] {
        throw MismatchError(history_.difference() + std::string(detail::same_calls_text), where);
      });
    if (!history_.spans_nodes() || history_.place().ordinal % detail::Trail::length != 0) return;
    const detail::Publish publish = in_call("", where, "comparison of operators", "the mesh");
    guarded({}, where, [&] { history_.compare_nodes(*control_); });
  }

  /// Runs f; its exceptions get the place of the call and the process, and the mesh is not used any
  /// more.
  template <class F> void guarded(std::string_view label, Where where, F&& f) {
    try {
      f();
    } catch (CommunicationError& error) {
      error.complete(label, where, process_text());
      poison(std::string("a call on it failed: ") + error.what());
      throw;
    } catch (Error& error) {
      error.complete({}, where, process_text());
      poison(std::string("a call on it failed: ") + error.what());
      throw;
    } catch (const std::exception& error) {
      poison(std::string("a call on it failed: ") + error.what());
      throw;
    }
  }

  std::string reason_;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<Group> control_;
  detail::MeshHistory history_;

 private:
  std::array<std::uint64_t, 256> born_{};
  std::uint64_t numbers_ = 0;
  std::thread::id thread_ = std::this_thread::get_id();
};
}  // namespace tessera::detail
