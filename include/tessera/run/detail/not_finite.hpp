// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Looks for the operator that made the first NaN or infinity, on meshes that ask for it
/// (MeshOptions::find, TESSERA_CHECK=nan).
///
///     FiniteCheck check(request, plan);      // looks at the operands
///     check.results(result, also);           // and at what was made of them
///
/// Laws: all processes throw the same error, or none does. What came in from outside (a file, the
/// host, a number that the caller gave) was made by no operator, and is let through.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/kernel/not_finite.hpp>
#include <tessera/run/copy_block.hpp>
#include <tessera/run/extras.hpp>
#include <tessera/tensor/host_copy.hpp>

namespace tessera::detail {

class FiniteCheck {
 public:
  FiniteCheck() = default;
  FiniteCheck(const Request& r, const Plan& plan) {
    if (r.operands.empty()) return;
    MeshCore& mesh = *r.mesh();
    find_ = mesh.options().find;
    if (mesh.dry() || !plan.slots[plan.result].place.sharded()) find_ = Find::nothing;
    if (find_ == Find::nothing) return;
    mesh_ = &mesh;
    site_ = r.site;
    given_infinity_ = r.extras.kernel.given_infinity || r.extras.fill != nullptr;
    for (int i = 0; i < r.operands.size(); ++i) {
      if (!plan.slots[i].place.sharded()) continue;
      const NotFinite found = in_block(*r.operands[i]);
      nan_came_ = nan_came_ || found.nan >= 0;
      infinity_came_ = infinity_came_ || found.infinite >= 0;
    }
  }

  /// Communication: an all-gather of five integers from each process. Collective over: the mesh.
  /// Throws ValueError.
  void results(const TensorCore& first, const std::vector<TensorCore>* also) const {
    if (find_ == Find::nothing || first.mesh().get() != mesh_) return;
    const auto nth = [&](int i) -> const TensorCore& {
      return i == 0 ? first : (*also)[static_cast<std::size_t>(i) - 1];
    };
    const int count = 1 + (also == nullptr ? 0 : static_cast<int>(also->size()));
    enum Fact { came, nan_in, nan_at, infinite_in, infinite_at, facts };
    std::vector<std::int64_t> own{(nan_came_ ? 1 : 0) + (infinity_came_ ? 2 : 0), -1, -1, -1, -1};
    for (int i = count - 1; i >= 0; --i) {
      const NotFinite found = in_block(nth(i));
      if (found.nan >= 0) own[nan_in] = i, own[nan_at] = found.nan;
      if (found.infinite >= 0) own[infinite_in] = i, own[infinite_at] = found.infinite;
    }
    const std::vector<std::int64_t> all = mesh_->gather_facts(own, site_.where);
    std::int64_t before = 0;
    for (std::size_t p = 0; p < all.size(); p += facts) before |= all[p + came];
    const auto first_with = [&](Fact in) {
      for (std::size_t p = 0; p < all.size(); p += facts)
        if (all[p + in] >= 0) return static_cast<int>(p / facts);
      return -1;
    };
    const auto fact = [&](int process, Fact f) {
      return all[static_cast<std::size_t>(process) * facts + f];
    };
    if (const int p = first_with(nan_in); p >= 0 && (before & 1) == 0)
      say("a NaN", nth(static_cast<int>(fact(p, nan_in))), p, fact(p, nan_at),
          (before & 2) != 0 ? "infinite and finite" : "finite");
    if (const int p = first_with(infinite_in);
        p >= 0 && before == 0 && !given_infinity_ && find_ == Find::nan_and_infinity)
      say("an infinity", nth(static_cast<int>(fact(p, infinite_in))), p, fact(p, infinite_at),
          "finite");
  }

 private:
  static NotFinite in_block(const TensorCore& x) {
    if (is_integer(x.type()) || x.type() == DType::boolean) return {};
    const TensorCore block = by_itself(x);
    const Index count = block.local_size();
    if constexpr (kernels_on_host) return first_not_finite(x.type(), block.read(), count);
    std::vector<std::byte> host(static_cast<std::size_t>(count) * size_of(x.type()));
    copy_to_host(host.data(), block.read(), static_cast<Index>(host.size()));
    return first_not_finite(x.type(), host.data(), count);
  }
  /// Throws the error about element `at` of the block of process `process`.
  [[noreturn]] void say(const char* what, const TensorCore& result, int process, Index at,
                        const char* operands) const {
    const MeshShape& shape = mesh_->shape();
    const Box box = block(result.extents(), result.sharding(), shape, shape.coordinates(process));
    std::string index;
    for (int d = box.rank() - 1; d >= 0; --d) {
      const Index extent = box[d].size();
      index = std::to_string(box[d].lo + at % extent) + (index.empty() ? "" : ", ") + index;
      at /= extent;
    }
    throw ValueError(std::string(site_.label) + ": the operator makes " + what + " of " + operands +
                         " operands: element [" + index + "] of its result, " +
                         to_string(result.desc(), mesh_->names()) + ", which lies on process " +
                         std::to_string(process) +
                         "; it is the first operator that does; look at what that element is made "
                         "of (a quotient, root or logarithm at 0, a sum or power that overflows), "
                         "or run without TESSERA_CHECK=nan where it is meant",
                     site_.where);
  }

  Find find_ = Find::nothing;
  MeshCore* mesh_ = nullptr;
  CallSite site_;
  bool given_infinity_ = false;
  bool nan_came_ = false;
  bool infinity_came_ = false;
};

}  // namespace tessera::detail
