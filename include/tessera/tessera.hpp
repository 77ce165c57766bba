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
/// gradients (tessera/grad.hpp); manual mode (tessera/manual.hpp); neural networks, with gradients
/// (tessera/nn.hpp), those of which nothing is annotated (nn/born_as.hpp, nn/chosen_rules.hpp), and
/// the text that they write (nn/decoding/generate.hpp, nn/decoding/beam_search.hpp);
/// encoder-decoders with experts, and the translations that they write (nn/translation/write.hpp);
/// models of images (nn/vision/vision_transformer.hpp) and of speech
/// (nn/speech/conformer_block.hpp);
/// pipelines (tessera/pipeline.hpp), and models made on their stages (nn/on_stages.hpp); trees of
/// tensors (tensor/tree.hpp); compiled functions (op/compile.hpp); choices of shardings
/// (run/choose_of.hpp, io/choice_file.hpp) and their solver (solve/min_marginals.hpp); checkpoints
/// (io/checkpoint.hpp); traces (run/tracing.hpp, io/trace_file.hpp), also of a process that is
/// alone (comm/fake.hpp); functions of elements for kernels of your own (kernel/functions.hpp); the
/// most bytes of any process (program/peak.hpp); and times on a network
/// (program/network/timing.hpp).
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
#include <tessera/op/async.hpp>
#include <tessera/op/between.hpp>
#include <tessera/op/constrain.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/create/create_dynamic.hpp>
#include <tessera/op/create/create_like.hpp>
#include <tessera/op/create/sequences.hpp>
#include <tessera/op/deterministic.hpp>
#include <tessera/op/elements/arithmetic.hpp>
#include <tessera/op/elements/cast.hpp>
#include <tessera/op/elements/comparison.hpp>
#include <tessera/op/elements/complex.hpp>
#include <tessera/op/elements/functions.hpp>
#include <tessera/op/elements/logic.hpp>
#include <tessera/op/elements/map_several.hpp>
#include <tessera/op/halo/halo.hpp>
#include <tessera/op/halo/halo_tensor.hpp>
#include <tessera/op/in_place.hpp>
#include <tessera/op/indexed/bincount.hpp>
#include <tessera/op/indexed/histogram.hpp>
#include <tessera/op/indexed/one_hot.hpp>
#include <tessera/op/indexed/scatter.hpp>
#include <tessera/op/indexed/take.hpp>
#include <tessera/op/indexed/take_along_axis.hpp>
#include <tessera/op/into.hpp>
#include <tessera/op/product/convolve.hpp>
#include <tessera/op/product/dot.hpp>
#include <tessera/op/product/einsum.hpp>
#include <tessera/op/product/epilogue.hpp>
#include <tessera/op/product/matmul.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/reduce_window.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/rows/arg.hpp>
#include <tessera/op/rows/associative_scan.hpp>
#include <tessera/op/rows/cumulative.hpp>
#include <tessera/op/rows/normalize.hpp>
#include <tessera/op/rows/softmax.hpp>
#include <tessera/op/rows/sort.hpp>
#include <tessera/op/rows/statistics.hpp>
#include <tessera/op/rows/top_k.hpp>
#include <tessera/op/shape/broadcast.hpp>
#include <tessera/op/shape/concatenate.hpp>
#include <tessera/op/shape/dimensions.hpp>
#include <tessera/op/shape/dynamic_slice.hpp>
#include <tessera/op/shape/pad.hpp>
#include <tessera/op/shape/reshape.hpp>
#include <tessera/op/shape/roll.hpp>
#include <tessera/op/shape/slice.hpp>
#include <tessera/op/shape/transpose.hpp>
#include <tessera/op/shape/triangle.hpp>
#include <tessera/op/to_host.hpp>
#include <tessera/op/together.hpp>
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
#include <tessera/op/rows/variance.hpp>
#include <tessera/pipeline.hpp>
#include <tessera/program/network/timing.hpp>
#endif
