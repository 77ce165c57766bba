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
#include <tessera/plan/check/contract.hpp>
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/check/verdict.hpp>
#include <tessera/plan/deterministic.hpp>
#include <tessera/plan/einsum.hpp>
#include <tessera/plan/map.hpp>
#include <tessera/plan/move/between.hpp>
#include <tessera/plan/move/together.hpp>
#include <tessera/plan/op/convolve.hpp>
#include <tessera/plan/op/dynamic_slice.hpp>
#include <tessera/plan/op/halo_exchange.hpp>
#include <tessera/plan/op/one_hot.hpp>
#include <tessera/plan/op/reduce_window.hpp>
#include <tessera/plan/op/scatter.hpp>
#include <tessera/plan/op/take.hpp>
#include <tessera/plan/reduce.hpp>
#include <tessera/plan/region/reshape.hpp>
#include <tessera/plan/region/shape.hpp>
#include <tessera/plan/scan.hpp>
#include <tessera/plan/sort.hpp>
#include <tessera/plan/work/instructions.hpp>
#include <tessera/program/contract.hpp>
#include <tessera/program/deep_halo.hpp>
#include <tessera/program/device_order.hpp>
#include <tessera/program/diff.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/program/explain_work.hpp>
#include <tessera/program/like.hpp>
#include <tessera/program/on_process.hpp>
#include <tessera/program/overruled.hpp>
#include <tessera/program/simulation.hpp>
#include <tessera/program/timeline.hpp>
#include <tessera/spec/logical.hpp>
#include <tessera/spec/named_rules.hpp>
#include <tessera/spec/partition_spec.hpp>
