// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Trees of tensors of every type whose elements follow from their tensor's number and their index,
/// written to checkpoints and compared with that.
///
///     write_checkpoint(mesh, path, filled(mesh, tensors));
///     std::string wrong = other_elements(tensors, read);
#include <memory>
#include <string>
#include <vector>

#include <tessera/io/checkpoint.hpp>

#include "io/npy_cases.hpp"

namespace support {

using Tensors = std::vector<DynamicTensor>;

/// The extents and element types of a few tensors, without shardings.
inline std::vector<TensorDesc> some_tensors(Random& random) {
  std::vector<TensorDesc> tensors(static_cast<std::size_t>(random.below(6)));
  for (TensorDesc& desc : tensors) {
    desc.type = random.of(npy_types);
    const int rank = random.below(4);
    for (int d = 0; d < rank; ++d)
      desc.extents.push_back(random.of<Index>({1, 2, 3, 5, 8, 13, random.chance(20) ? 0 : 6}));
    desc.sharding = Sharding::replicated(rank);
  }
  return tensors;
}

/// The block's bytes as they should be. `seed` tells one writing from another.
inline std::vector<char> wanted_bytes(const TensorCore& x, Index seed) {
  std::vector<char> bytes;
  const Extents strides = detail::row_major_strides(x.extents());
  const Box box = x.box();
  for_each_index(box.extents(), [&](const Extents& at) {
    Index i = seed;
    for (int d = 0; d < box.rank(); ++d) i += (box[d].lo + at[d]) * strides[d];
    for (Index k = 0; k < static_cast<Index>(size_of(x.type())); ++k)
      bytes.push_back(static_cast<char>(npy_byte(x.type(), i, k)));
  });
  return bytes;
}

/// Makes the tensors under random shardings, with elements or without.
inline Tensors on_mesh(const std::shared_ptr<MeshCore>& mesh,
                       const std::vector<TensorDesc>& tensors, Random& random, Index seed,
                       bool fill) {
  Tensors made;
  for (TensorDesc desc : tensors) {
    desc.sharding = some_sharding(random, desc.rank(), mesh->shape().rank());
    const TensorCore x = TensorCore::make(mesh, desc);
    if (fill && !mesh->dry()) {
      const std::vector<char> bytes = wanted_bytes(x, seed + static_cast<Index>(made.size()));
      detail::copy_from_host(x.data(), bytes.data(), static_cast<Index>(bytes.size()));
    }
    made.push_back(DynamicTensor(x));
  }
  return made;
}

/// Returns which tensors have other elements than they should, or nothing.
inline std::string other_elements(const Tensors& tensors, Index seed) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (const TensorCore& x = tensors[i].core();
        block_bytes(x) != wanted_bytes(x, seed + static_cast<Index>(i)))
      return "tensor " + std::to_string(i) + ", " + describe(x.desc(), x.mesh()->shape()) +
             ", has other elements";
  return "";
}

/// Writes tensors that the seed gives, and reads what another mesh has written, from the same
/// folder; then itself. Collective over the mesh.
inline std::string checkpoint_case(const std::shared_ptr<MeshCore>& mesh, Random& random,
                                   const std::vector<TensorDesc>& tensors, const std::string& path,
                                   Index seed, Index seed_before) {
  const std::string label = "on " + describe(mesh->shape()) + ": ";
  if (seed_before > 0) {
    Tensors read = on_mesh(mesh, tensors, random, 0, false);
    const CheckpointFacts facts = read_checkpoint(mesh, path, read);
    if (facts != CheckpointFacts{{"seed", std::to_string(seed_before)}, {"", "none\n"}})
      return label + "other facts";
    if (const std::string text = other_elements(read, seed_before); !text.empty())
      return label + text;
  }
  write_checkpoint(mesh, path, on_mesh(mesh, tensors, random, seed, true),
                   {{"seed", std::to_string(seed)}, {"", "none\n"}});
  Tensors again = on_mesh(mesh, tensors, random, 0, false);
  read_checkpoint(mesh, path, again);
  const std::string text = other_elements(again, seed);
  return text.empty() ? text : label + text;
}

}  // namespace support
