// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The measurements of run/calibrate.hpp.
///
///     const Machine machine = Measurement<>::of(core, where);
///
/// Laws: every process has the numbers of process 0.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/fence.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/product/gemm.hpp>
#include <tessera/kernel/use_element.hpp>
#include <tessera/mesh/levels.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/run/calibrate.hpp>
#include <tessera/run/request.hpp>

namespace tessera::detail {

/// Returns the median time of one call, in picoseconds.
template <class Body> std::int64_t median_ps(int rounds, const Body& body) {
  body();
  fence();
  std::vector<std::int64_t> times;
  for (int i = 0; i < rounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    fence();
    times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::steady_clock::now() - start)
                        .count() *
                    1000);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return std::max<std::int64_t>(1, times[static_cast<std::size_t>(rounds / 2)]);
}

template <class T> std::int64_t kiloflop_ps(const std::shared_ptr<MeshCore>& mesh) {
  constexpr DType type = dtype_of<T>;
  const Index n = 512;
  const TensorDesc square{type, {n, n}, Sharding::replicated(2)};
  const TensorCore a = TensorCore::make(mesh, square), b = TensorCore::make(mesh, square),
                   c = TensorCore::make(mesh, square);
  tessera::detail::fill(a.data<T>(), n * n, T(0.5));
  tessera::detail::fill(b.data<T>(), n * n, T(0.25));
  const Gemm work{.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
  return median_ps(
             5,
             [&] { gemm(type, work, a.data(), b.data(), c.data(), 0, false, &mesh->products()); }) *
         1000 / work.flops();
}

struct MessagePrices {
  std::int64_t message_ps = 1;
  std::int64_t payload_ps_per_kib = 1;
};

/// Returns the time of an all-gather over `group` for each round and each KiB, while all such
/// groups make one.
inline MessagePrices price_messages(const std::shared_ptr<MeshCore>& mesh, const AxisGroup& group,
                                    Where where) {
  const int members = mesh->shape().group_size(group);
  const Index large = Index{1} << 20;
  const TensorDesc sent{DType::f32, {large}, Sharding::replicated(1)};
  const TensorDesc received{DType::f32, {large * members}, Sharding::replicated(1)};
  const TensorCore from = TensorCore::make(mesh, sent), to = TensorCore::make(mesh, received);
  tessera::detail::fill(from.data<float>(), large, 1);
  const auto time = [&](Index each, int times) {
    Call call;
    call.group = group;
    call.even = true;
    call.own = mesh->shape().place_in_group(group, mesh->coordinates());
    call.members = members;
    call.send = {{call.own, 0, each}};
    for (int q = 0; q < members; ++q) call.receive.push_back({q, q * each, each});
    call.bound = each * members;
    return median_ps(times,
                     [&] { mesh->collective(call, from.data(), to.data(), "calibrate", where); });
  };
  const std::int64_t small = time(1, 21);
  const Index payload = 4 * large * (members - 1);
  return {std::max<std::int64_t>(1, small / rounds(members)),
          std::max<std::int64_t>(1, (time(large, 5) - small) * 1024 / payload)};
}

struct OverlapPrices {
  std::int64_t hidden_percent = 0;
  std::int64_t two_way_percent = 100;
};

/// Returns how much of a transfer around the ring of `group` a product hides, rounded down to tens
/// since the rest is noise; and the time of sending half each way.
inline OverlapPrices price_overlap(const std::shared_ptr<MeshCore>& mesh, const AxisGroup& group,
                                   Where where) {
  const Index n = 320, sent = Index{1} << 19;
  const int members = mesh->shape().group_size(group);
  const TensorDesc square{DType::f32, {n, n}, Sharding::replicated(2)};
  const TensorDesc line{DType::f32, {sent}, Sharding::replicated(1)};
  const TensorCore a = TensorCore::make(mesh, square), c = TensorCore::make(mesh, square),
                   from = TensorCore::make(mesh, line), to = TensorCore::make(mesh, line);
  tessera::detail::fill(a.data<float>(), n * n, 0.5F);
  tessera::detail::fill(from.data<float>(), sent, 1.0F);
  const Gemm work{.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
  const auto multiply = [&] {
    gemm(DType::f32, work, a.data(), a.data(), c.data(), 0, false, &mesh->products());
  };
  const auto time = [&](bool both_ways, bool multiplies) {
    Call call;
    call.kind = Collective::collective_permute;
    call.group = group;
    call.own = mesh->shape().place_in_group(group, mesh->coordinates());
    call.members = members;
    call.bound = sent;
    const int up = (call.own + 1) % members, down = (call.own + members - 1) % members;
    const Index half = both_ways ? sent / 2 : sent;
    call.send = {{up, 0, half}};
    call.receive = {{down, 0, half}};
    if (both_ways) {
      call.send.push_back({down, half, half});
      call.receive.push_back({up, half, half});
    }
    if (both_ways && down < up) std::swap(call.send[0], call.send[1]);
    if (both_ways && up < down) std::swap(call.receive[0], call.receive[1]);
    return median_ps(11, [&] {
      const auto pending = mesh->start(call, from.data(), to.data(), "calibrate", where);
      if (multiplies) multiply();
      fence();
      if (pending != nullptr) mesh->finish(*pending, call, "calibrate", where);
    });
  };
  const std::int64_t product = median_ps(11, multiply), one_way = time(false, false);
  const std::int64_t saved = product + one_way - time(false, true);
  OverlapPrices prices;
  prices.hidden_percent =
      std::clamp<std::int64_t>(saved * 100 / std::min(product, one_way), 0, 100) / 10 * 10;
  if (members > 2)
    prices.two_way_percent = std::clamp<std::int64_t>(time(true, false) * 100 / one_way, 50, 100);
  return prices;
}

template <class Any>
Machine Measurement<Any>::of(const std::shared_ptr<MeshCore>& core, Where where) {
  if (core->dry())
    throw UsageError(
        "calibrate: the mesh is dry, there is nothing to measure; calibrate a mesh of processes",
        where);
  if (core->alone())
    throw UsageError(
        "calibrate: this process is alone on a fake transport, where nothing is sent; calibrate a "
        "mesh of processes, and give the fake one its machine",
        where);
  use_element<float>();
  use_element<double>();
  use_element<std::int64_t>();
  Machine machine;
  machine.kiloflop_ps_f32 = std::max<std::int64_t>(1, kiloflop_ps<float>(core));
  machine.kiloflop_ps_f64 = std::max<std::int64_t>(1, kiloflop_ps<double>(core));

  const Index bytes = Index{8} << 20;
  const TensorDesc flat{DType::f32, {bytes / 4}, Sharding::replicated(1)};
  const TensorCore from = TensorCore::make(core, flat), to = TensorCore::make(core, flat);
  fill(from.data<float>(), bytes / 4, 1);
  const StridedCopy whole{.extents = {bytes / 4}, .from_strides = {1}, .to_strides = {1}};
  machine.copy_ps_per_kib = std::max<std::int64_t>(
      1, median_ps(5, [&] { copy(DType::f32, from.data(), to.data(), &whole, 1); }) * 1024 / bytes);

  const Levels level = levels(core->shape().axes(), core->shape(), core->machine());
  machine.processes_per_node = core->machine().processes_per_node;
  if (core->shape().group_size(level.node) > 1) {
    const MessagePrices prices = price_messages(core, level.node, where);
    machine.message_ps = prices.message_ps;
    machine.payload_ps_per_kib = prices.payload_ps_per_kib;
  }
  if (core->shape().group_size(level.network) > 1) {
    const MessagePrices prices = price_messages(core, level.network, where);
    machine.network_message_ps = prices.message_ps;
    machine.network_payload_ps_per_kib = prices.payload_ps_per_kib;
  }
  const AxisGroup& ring = core->shape().group_size(level.network) > 1 ? level.network : level.node;
  if (core->shape().group_size(ring) > 1) {
    const OverlapPrices prices = price_overlap(core, ring, where);
    machine.hidden_percent = prices.hidden_percent;
    machine.two_way_percent = prices.two_way_percent;
  }
  // Process 0's numbers for all: the others add zeros.
  const Index fields = static_cast<Index>(machine_fields.size());
  AxisSet axes = core->shape().axes();
  const TensorDesc shared{
      DType::i64, {fields}, Sharding::replicated(1).with_partial(axes, Reduction::sum)};
  const TensorCore numbers = TensorCore::make(core, shared);
  std::array<std::int64_t, machine_fields.size()> values{};
  if (core->process() == 0)
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = machine.*machine_fields[i].second;
  copy_from_host(numbers.data(), values.data(), fields * 8);
  const TensorCore agreed =
      run({ops::Reshard{Sharding::replicated(1)}, {&numbers}, {"calibrate", where, Contract{}}});
  copy_to_host(values.data(), agreed.data(), fields * 8);
  for (std::size_t i = 0; i < values.size(); ++i) machine.*machine_fields[i].second = values[i];
  return machine;
}

TESSERA_INSTANTIATE(struct Measurement<void>)

}  // namespace tessera::detail
