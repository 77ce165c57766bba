// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Models of other packages in files that their scripts have written: tests/nn/*_of_*/generate.py.
///
///     read_peer(mesh, "encoder_of_hugging_face/bert", "gradient.", gradient);
///     ended(states, valid)     // as those files have them: zero where a text has ended
#include <string>

#include <tessera/io/checkpoint.hpp>

#include "nn/layer_cases.hpp"

namespace nn_test {

/// Reads a tree whose names in the file begin with a prefix.
template <class Tree>
void read_peer(const ProcessMesh<Grid>& mesh, const std::string& file, const std::string& prefix,
               Tree& tree) {
  std::string path = __FILE__;
  path = path.substr(0, path.rfind('/') + 1) + file + ".safetensors";
  read_checkpoint(mesh, path, tree, {.name = [&](const std::string& own) { return prefix + own; }});
}

/// Returns x with zeros at places that are not valid.
template <class X, class Valid> X ended(const X& x, const Valid& valid) {
  return map<"ab,abc->abc", typename X::spec>(fn::Fixed<fn::Select, 2, double>{{}, 0.0}, valid, x);
}

}  // namespace nn_test
