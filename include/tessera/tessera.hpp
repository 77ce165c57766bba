// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What most programs include: meshes and specs as types, sharded tensors, and the operators on
/// them. Plans alone, without Kokkos and MPI, are tessera/plan.hpp's.
///
///     #include <tessera/tessera.hpp>
///
/// It has meshes, specs, tensors, all operators, plans and programs, drawings and npy files. It
/// leaves out what a program includes by itself, since it takes long to compile or few use it:
/// gradients (tessera/grad.hpp); neural networks, with gradients (tessera/nn.hpp); trees of tensors
/// (tensor/tree.hpp); compiled functions (op/compile.hpp); choices of shardings (run/choose_of.hpp,
/// io/choice_file.hpp) and their solver (solve/min_marginals.hpp); checkpoints (io/checkpoint.hpp);
/// traces (run/tracing.hpp, io/trace_file.hpp); functions of elements for kernels of your own
/// (kernel/functions.hpp); and the most bytes of any process (program/peak.hpp).
///
/// Every operator throws, beside what its own comment says: UsageError for a tensor that is empty,
/// MeshError for operands on two meshes, MemoryError where a process has not the memory that the
/// plan asks for, CommunicationError for what MPI reports, and MismatchError where processes call
/// different operators. Shardings and letters that an operator does not take are errors of
/// compilation; of dynamic tensors they are ShardingError or ShapeError. A message ends with the
/// place of the call, the layer and the process.
#include <tessera/comm/loopback/loopback.hpp>
#include <tessera/comm/run_main.hpp>
#include <tessera/io/blocks.hpp>
#include <tessera/io/irregular.hpp>
#include <tessera/io/npy.hpp>
#include <tessera/io/progress_bar.hpp>
#include <tessera/io/root.hpp>
#include <tessera/op/allclose.hpp>
#include <tessera/op/arg.hpp>
#include <tessera/op/arithmetic.hpp>
#include <tessera/op/associative_scan.hpp>
#include <tessera/op/async.hpp>
#include <tessera/op/between.hpp>
#include <tessera/op/bincount.hpp>
#include <tessera/op/broadcast.hpp>
#include <tessera/op/cast.hpp>
#include <tessera/op/comparison.hpp>
#include <tessera/op/complex.hpp>
#include <tessera/op/concatenate.hpp>
#include <tessera/op/constrain.hpp>
#include <tessera/op/convolve.hpp>
#include <tessera/op/create.hpp>
#include <tessera/op/create_dynamic.hpp>
#include <tessera/op/create_like.hpp>
#include <tessera/op/cumulative.hpp>
#include <tessera/op/deterministic.hpp>
#include <tessera/op/dimensions.hpp>
#include <tessera/op/dot.hpp>
#include <tessera/op/dynamic_slice.hpp>
#include <tessera/op/einsum.hpp>
#include <tessera/op/epilogue.hpp>
#include <tessera/op/functions.hpp>
#include <tessera/op/halo/halo.hpp>
#include <tessera/op/halo/halo_tensor.hpp>
#include <tessera/op/histogram.hpp>
#include <tessera/op/in_place.hpp>
#include <tessera/op/into.hpp>
#include <tessera/op/logic.hpp>
#include <tessera/op/map_several.hpp>
#include <tessera/op/matmul.hpp>
#include <tessera/op/normalize.hpp>
#include <tessera/op/one_hot.hpp>
#include <tessera/op/pad.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/reduce_window.hpp>
#include <tessera/op/reshape.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/roll.hpp>
#include <tessera/op/scatter.hpp>
#include <tessera/op/sequences.hpp>
#include <tessera/op/slice.hpp>
#include <tessera/op/softmax.hpp>
#include <tessera/op/sort.hpp>
#include <tessera/op/statistics.hpp>
#include <tessera/op/take.hpp>
#include <tessera/op/take_along_axis.hpp>
#include <tessera/op/to_host.hpp>
#include <tessera/op/together.hpp>
#include <tessera/op/top_k.hpp>
#include <tessera/op/transpose.hpp>
#include <tessera/op/triangle.hpp>
#include <tessera/plan.hpp>
#include <tessera/program/contract.hpp>
#include <tessera/program/diff.hpp>
#include <tessera/program/simulation.hpp>
#include <tessera/program/timeline.hpp>
#include <tessera/run/calibrate.hpp>
#include <tessera/run/plan_of.hpp>
#include <tessera/show/draw_svg.hpp>
#include <tessera/show/format.hpp>
#include <tessera/show/visualize.hpp>
#include <tessera/spec/logical.hpp>
#include <tessera/spec/named_rules.hpp>
#include <tessera/tensor/adopt.hpp>
#include <tessera/tensor/local_view.hpp>
#include <tessera/tensor/submesh.hpp>
#include <tessera/version.hpp>
#if defined(TESSERA_IMPLEMENTATION)
#include <tessera/grad.hpp>
#include <tessera/io/trace_file.hpp>  // which a source includes that uses them
#include <tessera/op/compile.hpp>
#include <tessera/op/variance.hpp>
#endif
