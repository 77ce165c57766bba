// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The mesh of most tests that name axes: data x model.
#include <tessera/mesh/mesh.hpp>

namespace grid {
struct data : tessera::Axis<> {};
struct model : tessera::Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = tessera::Mesh<data, model>;
