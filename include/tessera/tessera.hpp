// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// All of Tessera: meshes and specs as types, sharded tensors, and the operators on them. Plans
/// alone, without Kokkos and MPI, are tessera/plan.hpp's.
///
///     #include <tessera/tessera.hpp>
#include <tessera/comm/loopback.hpp>
#include <tessera/comm/run_main.hpp>
#include <tessera/io/npy.hpp>
#include <tessera/io/progress_bar.hpp>
#include <tessera/op/arg.hpp>
#include <tessera/op/arithmetic.hpp>
#include <tessera/op/async.hpp>
#include <tessera/op/between.hpp>
#include <tessera/op/blocks.hpp>
#include <tessera/op/calibrate.hpp>
#include <tessera/op/cast.hpp>
#include <tessera/op/comparison.hpp>
#include <tessera/op/complex.hpp>
#include <tessera/op/concatenate.hpp>
#include <tessera/op/convolve.hpp>
#include <tessera/op/cumulative.hpp>
#include <tessera/op/deterministic.hpp>
#include <tessera/op/draw_svg.hpp>
#include <tessera/op/einsum.hpp>
#include <tessera/op/epilogue.hpp>
#include <tessera/op/format.hpp>
#include <tessera/op/functions.hpp>
#include <tessera/op/gather.hpp>
#include <tessera/op/into.hpp>
#include <tessera/op/irregular.hpp>
#include <tessera/op/logic.hpp>
#include <tessera/op/pad.hpp>
#include <tessera/op/plan_of.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/reduce_window.hpp>
#include <tessera/op/reshape.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/roll.hpp>
#include <tessera/op/root.hpp>
#include <tessera/op/slice.hpp>
#include <tessera/op/softmax.hpp>
#include <tessera/op/statistics.hpp>
#include <tessera/op/together.hpp>
#include <tessera/op/transpose.hpp>
#include <tessera/op/visualize.hpp>
#include <tessera/plan.hpp>
#include <tessera/plan/program_contract.hpp>
#include <tessera/plan/program_diff.hpp>
#include <tessera/plan/simulation.hpp>
#include <tessera/plan/timeline.hpp>
#include <tessera/spec/logical.hpp>
#include <tessera/spec/named_rules.hpp>
#include <tessera/tensor/create.hpp>
#include <tessera/tensor/create_dynamic.hpp>
#include <tessera/tensor/submesh.hpp>
#include <tessera/version.hpp>
