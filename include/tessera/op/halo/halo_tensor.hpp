// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A tensor stored with its halo in place: each process's block lies within the elements that its
/// stencils read. A stencil code keeps such tensors, writes their interiors and exchanges their
/// halos; only halos move. op/halo/halo.hpp makes them.
///
///     auto u = make_halo<Tensor<data, model>, 0, 1>(mesh, {8, 6}, 1, 1, Boundary::periodic, 0.5f);
///     u.assign(x);                        // or a kernel writes u.interior()
///     u.exchange();                       // the halo is what its owners have
///     const auto v = u.global();          // v(i, j): indices of the whole tensor, halo included
///     const Box own = u.own_box();        // compute these from v, into local_view(y), say
///
/// Started and waited for, the halo travels while the inner elements are computed:
///
///     auto pending = u.exchange_async();
///     compute(u.inner_box());
///     pending.wait();
///     for (const Box& box : u.border()) compute(box);
///
/// Operators accept it as a tensor, and in-place operators and those of op/into.hpp write into it;
/// they use the elements that processes own, and neither read nor write the halo:
///
///     u *= 0.5;   axpy(0.1, x, u);   map_into(u, fn::Add{}, u, x);
///     const auto error = max(abs(u - x));
///
/// Elementwise functions, reductions, products, convolutions, windows, takes, and operators that
/// move regions or reshard by an exchange or all-to-all, read the block where it lies. Kernels that
/// need contiguous memory get a copy first, which is a step of the plan (plan/region/stored.hpp):
/// sorts, running joins, scatters and updates, products that sum over several dimensions of which
/// an inner one is extended, and blocks sent by an all-gather, an all-reduce or a permutation.
/// Results are tensors without a halo.
///
/// Laws: after exchange() element v of the view is the tensor's element that the boundary says;
/// elements outside a tensor whose boundary is constant stay as they are (make_halo and
/// halo_exchange set them), and so do those that the process owns. add_back() is the adjoint: the
/// sum of all places of an element goes to its owner, and the halo stays.
#include <array>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <tessera/op/async.hpp>
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/halo/detail/halo_block.hpp>
#include <tessera/tensor/local_view.hpp>

namespace tessera {

/// A View whose indices are those of the whole tensor; for kernels.
template <class View> struct GlobalView {
  View view;
  Index first[View::rank() > 0 ? View::rank() : 1];

  template <class... I> KOKKOS_FUNCTION decltype(auto) operator()(I... i) const {
    static_assert(sizeof...(I) == View::rank(),
                  "[tessera] a GlobalView is called with another number of indices than the tensor "
                  "has dimensions; give one for each");
    if constexpr (sizeof...(I) == View::rank())
      return at(std::make_index_sequence<sizeof...(I)>{}, i...);
    else
      return *view.data();
  }

 private:
  template <std::size_t... D, class... I>
  KOKKOS_FUNCTION decltype(auto) at(std::index_sequence<D...>, I... i) const {
    return view((static_cast<Index>(i) - first[D])...);
  }
};

namespace detail {
template <class View> GlobalView<View> global_view(const View& view, const Box& box) {
  GlobalView<View> result{view, {}};
  for (int d = 0; d < box.rank(); ++d) result.first[d] = box[d].lo;
  return result;
}
template <class View, std::size_t... D>
auto part_of(const View& view, const Box& part, const Box& box, std::index_sequence<D...>) {
  return Kokkos::subview(
      view, Kokkos::pair<Index, Index>(part[static_cast<int>(D)].lo - box[static_cast<int>(D)].lo,
                                       part[static_cast<int>(D)].lo - box[static_cast<int>(D)].lo +
                                           part[static_cast<int>(D)].size())...);
}
}  // namespace detail

/// An exchange of a halo that was started. End it by wait(); else its destructor waits.
class [[nodiscard]] PendingExchange {
 public:
  explicit PendingExchange(std::shared_ptr<detail::HaloBlock> block) : block_(std::move(block)) {}
  PendingExchange(PendingExchange&&) noexcept = default;
  PendingExchange& operator=(PendingExchange&&) = delete;
  ~PendingExchange() { let_go(); }

  /// Returns true when what was started first is done, and lets it progress. Not collective.
  bool done() {
    return block_ == nullptr || block_->repeated == nullptr || block_->repeated->done();
  }
  /// Returns when the halo is there. Communication: the rest of the plan, after its first call;
  /// collective over the mesh where there is a rest. Throws CommunicationError, and UsageError when
  /// it is waited for a second time.
  void wait(Where where = Where::here()) {
    if (block_ == nullptr)
      throw UsageError("an exchange under way is waited for twice; wait once", where);
    const std::shared_ptr<detail::HaloBlock> block = std::move(block_);
    detail::finish_exchange(*block, false, {"halo_exchange", where});
  }

 private:
  /// Does not free memory that MPI may still write.
  void let_go() noexcept {
    if (block_ == nullptr) return;
    MeshCore& mesh = *block_->core.mesh();
    if (std::uncaught_exceptions() == 0) {
      try {
        return wait({});
      } catch (const std::exception& error) {
        mesh.poison(std::string("an exchange under way failed: ") + error.what());
      }
    } else {
      mesh.poison("an exception passed while an exchange was under way");
    }
    if (block_ != nullptr && block_->repeated != nullptr && !block_->repeated->quiet())
      new std::shared_ptr<detail::HaloBlock>(block_);  // for ever
  }
  std::shared_ptr<detail::HaloBlock> block_;
};

/// A halo tensor whose type and sharding are known when the program runs. Copies share the block.
class DynamicHaloTensor {
 public:
  DynamicHaloTensor() = default;
  DynamicHaloTensor(TensorCore extended, const Halo& halo)
      : block_(std::make_shared<detail::HaloBlock>(std::move(extended), halo)) {}

  bool defined() const { return block_ != nullptr; }
  /// Return the tensor's description, how far its blocks are extended, the box that this process
  /// owns, and the box that its extended block covers, in indices of the whole tensor: from -low on
  /// where that lies outside.
  const TensorDesc& desc() const { return block().core.desc(); }
  const Extents& extents() const { return desc().extents; }
  const Halo& halo() const { return block().halo; }
  const Box& own_box() const { return block().own; }
  const Box& box() const { return block().box; }
  /// Return the elements whose stencils read nothing that another process owns (computed while the
  /// halo travels), and the disjoint boxes of the others.
  Box inner_box() const { return tessera::detail::inner_box(own_box(), box()); }
  auto border() const { return detail::border_boxes(own_box(), inner_box()); }

  /// Return the extended block, and the part of it that the process owns. They keep nothing alive.
  /// Throw UsageError for another type or number of dimensions.
  template <class T, int Rank> LocalView<T, Rank> view(Where where = Where::here()) const {
    if (dtype_of<T> != desc().type)
      throw UsageError("a tensor of " + std::string(name_of(desc().type)) +
                           " is viewed as one of " + std::string(name_of(dtype_of<T>)) +
                           "; ask for its own type",
                       where);
    detail::require_rank(desc().rank(), Rank, where);
    detail::tell_view(block().core, true, where);
    return detail::view_of<T, Rank>(block().core.data<T>(), box().extents());
  }
  template <class T, int Rank> auto interior(Where where = Where::here()) const {
    return detail::part_of(view<T, Rank>(where), own_box(), box(),
                           std::make_index_sequence<static_cast<std::size_t>(Rank)>{});
  }

  /// Fills the halo. Communication: one message to each neighbour, or one exchange for each
  /// dimension that is split, whichever costs less. Collective over the mesh. Throws
  /// CommunicationError. `call`: a Contract.
  void exchange(const CallOptions& call = Where::here()) const {
    detail::exchange(block(), false, call.fresh_site("halo_exchange"));
  }
  /// Adds the halo to its owners' elements; the halo stays as it is. Communication: as exchange(),
  /// the other way round. Collective over the mesh. Throws UsageError for truth values.
  void add_back(const CallOptions& call = Where::here()) const {
    detail::exchange(block(), true, call.fresh_site("halo_adjoint"));
  }

  /// Starts exchange(). Communication, collective over: as exchange(). Until it has been waited
  /// for, do not read the halo, nor write the elements that the process owns.
  [[nodiscard]] PendingExchange exchange_async(const CallOptions& call = Where::here()) const {
    detail::start_exchange(block(), false, call.fresh_site("halo_exchange"));
    return PendingExchange(block_);
  }

  /// Copy the elements that the process owns from a tensor, and to a new one. Communication: none.
  /// Throws ShapeError when the tensor has another mesh or description.
  void assign(const DynamicTensor& x, Where where = Where::here()) const {
    if (x.core().mesh() != block().core.mesh() || !(x.desc() == desc()))
      throw ShapeError("a halo tensor " + to_string(desc(), block().core.mesh()->names()) +
                           " is assigned a tensor " +
                           to_string(x.desc(), x.core().mesh()->names()) +
                           "; give one of the same element type, extents and spec, on its mesh",
                       where);
    require_no_tape({"assign", where});
    detail::copy_block(x.core(), block().core);
  }
  DynamicTensor tensor(Where where = Where::here()) const {
    require_no_tape({"tensor", where});
    const TensorCore result = TensorCore::make(block().core.mesh(), desc(), where);
    detail::copy_block(block().core, result);
    return DynamicTensor(result);
  }
  /// Returns a halo tensor of the same description, its contents unspecified.
  DynamicHaloTensor like(Where where = Where::here()) const {
    return {detail::make_halo_core(block().core.mesh(), desc(), halo(), {"make_halo", where}),
            halo()};
  }

  /// Returns the tensor for an operator of dynamic tensors: the same memory, read and written where
  /// it lies. Its data() and local_view() throw UsageError.
  operator DynamicTensor() const { return DynamicTensor(core()); }
  const TensorCore& core() const { return block().core; }

  detail::HaloBlock& block() const {
    if (block_ == nullptr)
      throw UsageError(
          "an empty halo tensor is used; assign one made by halo_exchange or make_halo first");
    return *block_;
  }

 private:
  /// Throws UsageError inside a function that is differentiated: no operator copies.
  static void require_no_tape(detail::CallSite site) {
    detail::Taker* const taker = detail::taker_of_thread;
    if (taker != nullptr && taker->tape() != nullptr) taker->refuse(site);
  }

  std::shared_ptr<detail::HaloBlock> block_;
};

/// A is the type of the tensor that is extended.
template <TypedTensor A> class HaloTensor : public DynamicHaloTensor {
 public:
  using tensor_type = A;
  using value_type = typename A::value_type;
  using mesh_type = typename A::mesh_type;
  using spec = typename A::spec;
  static constexpr int rank = A::rank;
  static constexpr bool unfinished = A::unfinished;

  HaloTensor() = default;
  HaloTensor(TensorCore extended, const Halo& halo)
      : DynamicHaloTensor(std::move(extended), halo) {}
  explicit HaloTensor(const DynamicHaloTensor& same) : DynamicHaloTensor(same) {}

  Index extent(int d) const { return extents()[d]; }
  Index size() const { return volume(extents()); }
  static constexpr const Sharding& sharding() { return detail::TensorFacts<A>::sharding(); }
  /// Members of a ShardedTensor that a HaloTensor lacks.
  template <class Never = void> value_type* data(Where = {}) const {
    static_assert(!std::is_void_v<Never>,
                  "[tessera] the elements of a halo tensor that a process owns are not contiguous; "
                  "use view() or interior(), or a copy by tensor()");
    return nullptr;
  }

  LocalView<value_type, rank> view() const {
    return detail::view_of<value_type, rank>(block().core.template data<value_type>(),
                                             box().extents());
  }
  auto interior() const {
    return detail::part_of(view(), own_box(), box(),
                           std::make_index_sequence<static_cast<std::size_t>(rank)>{});
  }
  /// Returns the extended block under indices of the whole tensor.
  GlobalView<LocalView<value_type, rank>> global() const {
    return detail::global_view(view(), box());
  }
  void assign(const A& x, Where where = Where::here()) const {
    DynamicHaloTensor::assign(x, where);
  }
  void add_back(const CallOptions& call = Where::here()) const {
    static_assert(
        is_number(dtype_of<value_type>),
        "[tessera] truth values have no sums, so that a halo of them has no adjoint; cast "
        "to a number first");
    detail::use_accumulate<value_type>();
    DynamicHaloTensor::add_back(call);
  }
  A tensor(Where where = Where::here()) const { return A(DynamicHaloTensor::tensor(where).core()); }
  HaloTensor like(Where where = Where::here()) const {
    return HaloTensor(DynamicHaloTensor::like(where));
  }
};

}  // namespace tessera
