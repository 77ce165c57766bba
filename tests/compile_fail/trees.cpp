// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trees of tensors: what is none, and what cannot be walked together.
// CASE no_fields: the type is no tree of tensors
// CASE other_fields: trees that are walked together have one structure, and the types of these differ
// CASE no_tensor: trees that are walked together have one structure, and the types of these differ
// CASE no_field: a struct names an untrained member that is none of its fields
// ERRORS each: 1
#include <tessera/tensor/tree.hpp>
using namespace tessera;

namespace grid {
struct data : Axis<> {};
}  // namespace grid
using Grid = Mesh<grid::data>;
using OneNumber = ShardedTensor<float, Grid, P<>>;
struct TwoTensors {
  OneNumber weight, bias;
  static constexpr auto fields = Fields<&TwoTensors::weight, &TwoTensors::bias>{};
};
struct OtherTensors {
  OneNumber weight, scale;
  static constexpr auto fields = Fields<&OtherTensors::weight, &OtherTensors::scale>{};
};
struct PlainTensors {
  OneNumber weight;
};
struct Followed {
  OneNumber weight, mean;
  static constexpr auto fields = Fields<&Followed::weight>{};
  static constexpr auto untrained = Fields<&Followed::mean>{};
};

void f(TwoTensors& layer, OtherTensors& other, PlainTensors& plain, OneNumber& scalar,
       [[maybe_unused]] Followed& followed) {
#if defined(CASE_no_fields)
  for_each_tensor([](const auto&) {}, plain);
#elif defined(CASE_other_fields)
  for_each_tensor([](const auto&, const auto&) {}, layer, other);
#elif defined(CASE_no_tensor)
  for_each_tensor([](const auto&, const auto&) {}, layer, scalar);
#elif defined(CASE_no_field)
  for_each_tensor([](const auto&) {}, followed);
#else
  for_each_tensor([](const auto&, const auto&) {}, layer, layer);
  for_each_tensor([](const auto&, const auto&) {}, other.scale, plain.weight);
  scalar = OneNumber();
#endif
}
