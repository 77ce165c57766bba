// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Meshes, specs and plans, without Kokkos and without MPI: what the target tessera::plan offers.
///
///     #include <tessera/plan.hpp>
#include <tessera/mesh/contract.hpp>
#include <tessera/mesh/device_assignment.hpp>
#include <tessera/mesh/device_order.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/plan/arg.hpp>
#include <tessera/plan/between.hpp>
#include <tessera/plan/contract.hpp>
#include <tessera/plan/deep_halo.hpp>
#include <tessera/plan/deterministic.hpp>
#include <tessera/plan/device_order.hpp>
#include <tessera/plan/einsum.hpp>
#include <tessera/plan/explain.hpp>
#include <tessera/plan/like.hpp>
#include <tessera/plan/map.hpp>
#include <tessera/plan/on_process.hpp>
#include <tessera/plan/op/convolve.hpp>
#include <tessera/plan/op/dynamic_slice.hpp>
#include <tessera/plan/op/halo_exchange.hpp>
#include <tessera/plan/op/one_hot.hpp>
#include <tessera/plan/op/reduce_window.hpp>
#include <tessera/plan/op/scatter.hpp>
#include <tessera/plan/op/take.hpp>
#include <tessera/plan/overruled.hpp>
#include <tessera/plan/program_contract.hpp>
#include <tessera/plan/program_diff.hpp>
#include <tessera/plan/reduce.hpp>
#include <tessera/plan/reshape.hpp>
#include <tessera/plan/row_verdict.hpp>
#include <tessera/plan/scan.hpp>
#include <tessera/plan/shape.hpp>
#include <tessera/plan/shape_verdict.hpp>
#include <tessera/plan/simulation.hpp>
#include <tessera/plan/sort.hpp>
#include <tessera/plan/timeline.hpp>
#include <tessera/plan/together.hpp>
#include <tessera/plan/type_rules.hpp>
#include <tessera/plan/verdict.hpp>
#include <tessera/plan/work.hpp>
#include <tessera/spec/logical.hpp>
#include <tessera/spec/named_rules.hpp>
#include <tessera/spec/partition_spec.hpp>
