// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Pipelines: the schedules of a model's stages on the parts of a mesh, what they cost on paper,
/// and the search for one.
///
///     #include <tessera/pipeline.hpp>
#include <tessera/pipeline/each_stage.hpp>
#include <tessera/pipeline/pipelined.hpp>
#include <tessera/pipeline/shifted.hpp>
#include <tessera/program/pipeline/chart.hpp>
#include <tessera/program/pipeline/check.hpp>
#include <tessera/program/pipeline/instructions.hpp>
#include <tessera/program/pipeline/schedules.hpp>
#include <tessera/program/pipeline/search.hpp>
#include <tessera/program/pipeline/simulate.hpp>
#include <tessera/program/pipeline/stage_tracks.hpp>
#include <tessera/show/pipeline_svg.hpp>
