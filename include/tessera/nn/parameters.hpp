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
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/nn/initializer.hpp>
#include <tessera/op/create/create.hpp>
#include <tessera/op/elements/beside.hpp>

namespace tessera {

namespace detail {
/// How the parameters lie whose types leave that open, in the order in which they are made.
class ParameterShardings {
 public:
  void made(const TensorCore& x) {
    tensors_.push_back(x);
    shardings_.push_back(x.sharding());
  }
  /// States how a tensor lies that was made. Returns whether it was.
  bool state(const TensorCore& x, const Sharding& to) {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].storage() == x.storage()) return shardings_[i] = to, true;
    return false;
  }
  /// Returns the number of a parameter, counted from 0; -1 for a tensor that is none.
  std::int64_t number_of(const TensorCore& x) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].storage() == x.storage()) return static_cast<std::int64_t>(i);
    return -1;
  }
  /// Returns how parameter `number` lies, counted from 0. Throws UsageError for one that was not
  /// made before.
  const Sharding& of(std::uint64_t number, Where where) const {
    if (number >= shardings_.size())
      throw UsageError(
          "a model is made of more parameters than the one for which shardings were "
          "chosen; make both by the same function",
          where);
    return shardings_[number];
  }

 private:
  std::vector<TensorCore> tensors_;
  std::vector<Sharding> shardings_;
};
}  // namespace detail

template <class M> class Parameters {
 public:
  Parameters(const ProcessMesh<M>& mesh, std::uint64_t seed) : mesh_(mesh), seed_(seed) {}

  const ProcessMesh<M>& mesh() const { return mesh_; }
  /// Tells `made` of each parameter.
  void follow(detail::ParameterShardings& made) { made_now_ = &made; }
  /// Makes parameters of types with Open entries as `shardings` say (nn/born_as.hpp).
  void place(const detail::ParameterShardings& shardings) { shardings_ = &shardings; }
  /// Makes parameter k on meshes[k], such as the part of the stage that uses it (nn/on_stages.hpp).
  void spread(std::vector<ProcessMesh<M>> meshes) { each_ = std::move(meshes); }
  /// Makes parameters with these dimensions of stages before the extents that are asked for, until
  /// unstack(); each stage has `each` parameters (nn/on_stages.hpp).
  void stack(const Extents& stages, std::uint64_t each) {
    stages_ = stages;
    each_stage_ = each;
  }
  /// Goes on behind the parameters of all stages.
  void unstack() {
    if (stages_.size() > 0)
      skipped_ += static_cast<std::uint64_t>(volume(stages_) - 1) * each_stage_;
    stages_ = {};
  }
  /// Returns how many parameters have been made.
  std::uint64_t made() const { return made_; }
  /// Returns the next parameter. Throws ShapeError for a wrong number of extents, UsageError for a
  /// constant that is no element.
  template <TypedTensor Tensor>
  Tensor tensor(const Extents& of_one, const Initializer& initial, Where where = Where::here()) {
    using T = typename Tensor::value_type;
    Extents extents = stages_;
    for (const Index extent : of_one) extents.push_back(extent);
    const std::uint64_t number = made_++;
    const ProcessMesh<M>& on = number < each_.size() ? each_[number] : mesh_;
    const auto made = [&](const detail::MapKernel& kernel, std::string_view label) {
      const detail::CallSite site{label, where};
      if constexpr (Tensor::open)
        if (shardings_ != nullptr)
          return Tensor(detail::create(
              on.core(), {dtype_of<T>, extents, shardings_->of(number, where)}, kernel, site));
      const Tensor tensor = detail::create<Tensor>(on, extents, kernel, site);
      if (made_now_ != nullptr) made_now_->made(tensor.core());
      return tensor;
    };
    if (initial.kind == Initializer::Kind::constant) {
      const T value = detail::element_of_setting<T>(initial.first, {"a constant parameter", where});
      return made(detail::FillRunner<T>::kernel(value), "full");
    }
    // Seeds of one model are apart by an odd number, so that no two of them meet.
    constexpr std::uint64_t apart = 0x9E37'79B9'7F4A'7C15u;
    using Elements = fn::InitialElement<T>;
    const Elements elements{initial, seed_ + (made_ + skipped_) * apart,
                            max_of(volume(of_one), Index{1}), each_stage_ * apart};
    return made(detail::IndexFunctionRunner<T, Elements>::kernel(elements), "from_function");
  }

 private:
  ProcessMesh<M> mesh_;
  std::uint64_t seed_, made_ = 0;
  Extents stages_;
  std::uint64_t each_stage_ = 0, skipped_ = 0;
  std::vector<ProcessMesh<M>> each_;  ///< of the first parameters; of the others it is mesh_
  const detail::ParameterShardings* shardings_ = nullptr;
  detail::ParameterShardings* made_now_ = nullptr;
};

}  // namespace tessera
