// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Makes the parameters of a model, each under its own sharding: no process ever holds more of one
/// than its block. Layers have a function that makes them of it, `like`: on a dry mesh it makes
/// descriptions, so that shapes, tables and plans are known before any memory.
///
///     Parameters<Grid> make(mesh, 7);                             // a mesh, a seed
///     auto weight = make.tensor<W>({512, 96}, Initializer::fan_in(512));
///     auto dense = Dense<Here, logical::embed, logical::hidden>::like(make, 512, 2048);
///
/// Laws: the elements depend on the seed, the number of parameters made before, and the index of
/// the element; so every mesh makes the same model. Communication: none.
#include <cstdint>

#include <tessera/nn/initializer.hpp>
#include <tessera/op/beside.hpp>
#include <tessera/op/create.hpp>

namespace tessera {

template <class M> class Parameters {
 public:
  Parameters(const ProcessMesh<M>& mesh, std::uint64_t seed) : mesh_(mesh), seed_(seed) {}

  const ProcessMesh<M>& mesh() const { return mesh_; }
  /// Returns the next parameter. Throws ShapeError for a wrong number of extents, UsageError for a
  /// constant that is no element.
  template <TypedTensor Tensor>
  Tensor tensor(const Extents& extents, const Initializer& initial, Where where = Where::here()) {
    using T = typename Tensor::value_type;
    ++made_;
    if (initial.kind == Initializer::Kind::constant)
      return full<Tensor>(
          mesh_, extents,
          detail::element_of_setting<T>(initial.first, {"a constant parameter", where}), where);
    // Seeds of one model are apart by an odd number, so that no two of them meet.
    return from_function<Tensor>(
        mesh_, extents, fn::InitialElement<T>{initial, seed_ + made_ * 0x9E37'79B9'7F4A'7C15u},
        where);
  }

 private:
  ProcessMesh<M> mesh_;
  std::uint64_t seed_, made_ = 0;
};

}  // namespace tessera
