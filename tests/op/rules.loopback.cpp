// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An example of every rule that the run time finds broken, and of the call that keeps it, on a dry
// mesh of 2 x 2 processes; compile_fail/rules.cpp has the rules that types break.
// cmake/docs/errors.py makes docs/errors.md of both.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <tessera/op/halo/halo.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;

namespace {

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct stage : Axis<> {};
}  // namespace grid
using grid::data, grid::model, grid::stage;
using Grid = Mesh<data, model>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

std::string link_of(Rule rule) {
  return "(docs/errors.md#r" + std::to_string(number_of(rule)) + ")";
}

/// Returns what f throws, or says that it throws nothing.
template <class F> std::string thrown_by(const F& f) {
  try {
    (void)f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}
#define BREAKS(rule, ...)                                                              \
  {                                                                                    \
    const std::string text = thrown_by([&] { return __VA_ARGS__; });                   \
    CHECK_MESSAGE(text.find(link_of(Rule::rule)) != text.npos, #rule << ": " << text); \
  }
#define KEEPS(rule, ...) CHECK_NOTHROW((void)(__VA_ARGS__))

}  // namespace

TEST_CASE(
    "a call that breaks a rule throws an error with the rule's link, and the one beside it runs") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  const auto stages = dry_mesh<Mesh<stage>>(4);
  const auto x = zeros<Tensor<float, data, model>>(mesh, 8, 16);
  const auto w = zeros<Tensor<float, model, _>>(mesh, 16, 4);
  const auto row = zeros<Tensor<float, model>>(mesh, 16);
  const auto wide = zeros<Tensor<double, data, model>>(mesh, 8, 16);
  const auto n = zeros<Tensor<std::int32_t, data, model>>(mesh, 8, 16);
  const auto truths = zeros<Tensor<bool, data, model>>(mesh, 8, 16);
  const auto z = zeros<Tensor<complex<float>, data, model>>(mesh, 8, 16);
  const auto ids = zeros<Tensor<std::int32_t, data>>(mesh, 8);
  const auto image = zeros<Tensor<float, data, _, _, _>>(mesh, 8, 16, 16, 4);
  const auto kernel = zeros<Tensor<float, _, _, _, _>>(mesh, 3, 3, 4, 8);
  const auto cube = zeros<Tensor<float, data, _, model>>(mesh, 8, 16, 2);
  const auto open = sum<"ijk->ij", P<data, _, Unreduced<Sum, model>>>(cube);
  const auto largest = max<"ijk->ij", P<data, _, Unreduced<Max, model>>>(cube);
  const auto open_bytes =
      reduce<As<Sum, std::uint8_t>, "ijk->ij", P<data, _, Unreduced<Sum, model>>>(
          cast<std::uint8_t>(cube));
  const auto open_factors =
      reduce<As<Product, std::int8_t>, "ijk->ij", P<data, _, Unreduced<Product, model>>>(
          cast<std::int8_t>(cube));
  const Kokkos::View<float**, Kokkos::LayoutRight> view("view", 8, 16);
  const Box whole_x{{{0, 8}, {0, 16}}}, top{{{0, 4}, {0, 16}}}, bottom{{{4, 8}, {0, 16}}};

  BREAKS(reduction_named,
         TensorCore::check_desc(
             *mesh.core(),
             {DType::f32, {8, 16}, Sharding{{0}, {}}.with_partial(AxisSet{1}, Reduction::none)},
             Where::here()));
  KEEPS(reduction_named,
        TensorCore::check_desc(
            *mesh.core(),
            {DType::f32, {8, 16}, Sharding{{0}, {}}.with_partial(AxisSet{1}, Reduction::sum)},
            Where::here()));
  BREAKS(extents_agree, einsum<"ik,jk->ij">(x, w));
  KEEPS(extents_agree, einsum<"ik,kj->ij">(x, w));
  BREAKS(epsilon_not_negative, rms_norm(x, row, -1.0));
  KEEPS(epsilon_not_negative, rms_norm(x, row, 1e-6));
  BREAKS(indexed_not_empty, take<0>(zeros<Tensor<float, _, _>>(mesh, 0, 4), ids));
  KEEPS(indexed_not_empty, take<0>(zeros<Tensor<float, _, _>>(mesh, 0, 4), ids, OutOfRange::drop));
  BREAKS(indexed_window_within, take<"vm,b->bVm">(x, ids, WindowSizes(9)));
  KEEPS(indexed_window_within, take<"vm,b->bVm">(x, ids, WindowSizes(8)));
  BREAKS(indexed_window_each, take<"vm,b->bVm">(x, ids, WindowSizes(2, 2)));
  KEEPS(indexed_window_each, take<"vm,b->bVm">(x, ids, WindowSizes(2)));
  BREAKS(index_column_each, take<"vm,bk->b">(x, n));
  KEEPS(index_column_each, take<"vm,bk->b">(x, slice<1>(n, {0}, {2})));
  BREAKS(indexed_extent_each, scatter<Sum, "b,bm->vm">(ids, x, {10, 16}));
  KEEPS(indexed_extent_each, scatter<Sum, "b,bm->vm">(ids, x, {10}));
  BREAKS(extent_not_negative, one_hot<float, "bv", 'v'>(ids, -1));
  KEEPS(extent_not_negative, one_hot<float, "bv", 'v'>(ids, 10));
  BREAKS(moving_window_each, dynamic_slice<"ij", 'j'>(x, {0, 0}, {4}));
  KEEPS(moving_window_each, dynamic_slice<"ij", 'j'>(x, {0}, {4}));
  BREAKS(moving_window_within, dynamic_slice<"ij", 'j'>(x, {0}, {17}));
  KEEPS(moving_window_within, dynamic_slice<"ij", 'j'>(x, {0}, {16}));
  BREAKS(update_extents_alike, dynamic_update_slice<"ij", 'j'>(x, slice<0>(x, {0}, {4}), {0}));
  KEEPS(update_extents_alike, dynamic_update_slice<"ij", 'i'>(x, slice<0>(x, {0}, {4}), {2}));
  BREAKS(number_each, pad(x, {1}, {1}));
  KEEPS(number_each, pad(x, {1, 0}, {1, 0}));
  BREAKS(slice_named, detail::run_all(ops::Slice{}, {&x.core()}, {"slices", Where::here()}));
  KEEPS(slice_named, slices<1>(x, {{0}, {8}}, {{8}, {16}}));
  BREAKS(slice_within, slice(x, {0, 0}, {9, 16}));
  KEEPS(slice_within, slice(x, {0, 0}, {8, 16}));
  BREAKS(stride_positive, slice<1>(x, {0}, {16}, {-1}));
  KEEPS(stride_positive, reverse<1>(x));
  BREAKS(interior_not_negative, pad<1>(x, {0}, {0}, {-1}));
  KEEPS(interior_not_negative, slice<1>(x, {0}, {16}, {2}));
  BREAKS(padding_countable, pad<1>(x, {0}, {max_int64}));
  KEEPS(padding_countable, pad<1>(x, {0}, {16}));
  BREAKS(crop_within, pad<1>(x, {-10}, {-10}));
  KEEPS(crop_within, pad<1>(x, {-2}, {-2}));
  BREAKS(outside_joins, pad<0>(open, {1}, {1}, {}, 1.0f));
  KEEPS(outside_joins, pad<0>(open, {1}, {1}));
  BREAKS(extents_beside, concatenate<1>(x, slice<0>(x, {0}, {4})));
  KEEPS(extents_beside, concatenate<0>(x, slice<0>(x, {0}, {4})));
  BREAKS(block_within, update<0>(x, slice<0>(x, {0}, {4}), {6}));
  KEEPS(block_within, update<0>(x, slice<0>(x, {0}, {4}), {4}));
  BREAKS(extents_not_negative, reshape<P<data, _>>(x, {-8, -16}));
  KEEPS(extents_not_negative, reshape<P<data, _>>(x, {16, 8}));
  BREAKS(volume_stays, reshape<P<data>>(x, {100}));
  KEEPS(volume_stays, reshape<P<data>>(x, {128}));
  BREAKS(broadcast_fits, broadcast_to<P<_, model>>(row, {8, 20}));
  KEEPS(broadcast_fits, broadcast_to<P<_, model>>(row, {8, 16}));
  BREAKS(convolution_entry_each, convolve<nhwc>(image, kernel, {.stride = {2}}));
  KEEPS(convolution_entry_each, convolve<nhwc>(image, kernel, {.stride = {2, 2}}));
  BREAKS(convolution_positive, convolve<nhwc>(image, kernel, {.stride = {0, 0}}));
  KEEPS(convolution_positive, convolve<nhwc>(image, kernel, {.stride = {1, 1}}));
  BREAKS(groups_positive, convolve<nhwc>(image, kernel, {.feature_groups = 0}));
  KEEPS(groups_positive, convolve<nhwc>(image, kernel, {.feature_groups = 1}));
  BREAKS(channels_match, convolve<nhwc>(image, zeros<Tensor<float, _, _, _, _>>(mesh, 3, 3, 3, 8)));
  KEEPS(channels_match, convolve<nhwc>(image, zeros<Tensor<float, _, _, _, _>>(mesh, 3, 3, 4, 8)));
  BREAKS(groups_divide_out,
         convolve<nhwc>(image, zeros<Tensor<float, _, _, _, _>>(mesh, 3, 3, 2, 7),
                        {.feature_groups = 2}));
  KEEPS(groups_divide_out, convolve<nhwc>(image, zeros<Tensor<float, _, _, _, _>>(mesh, 3, 3, 2, 8),
                                          {.feature_groups = 2}));
  BREAKS(groups_divide_batch,
         convolve<nhwc>(image, zeros<Tensor<float, _, _, _, _>>(mesh, 3, 3, 4, 9),
                        {.batch_groups = 3}));
  KEEPS(groups_divide_batch, convolve<nhwc>(image, kernel, {.batch_groups = 4}));
  BREAKS(kernel_fits, convolve<nhwc>(image, kernel, {.window_dilation = {8, 8}}));
  KEEPS(kernel_fits, convolve<nhwc>(image, kernel, {.window_dilation = {7, 7}}));
  BREAKS(kernel_not_empty,
         convolve<nhwc>(image, zeros<Tensor<float, _, _, _, _>>(mesh, 0, 3, 4, 8)));
  KEEPS(kernel_not_empty, convolve<nhwc>(image, kernel));
  BREAKS(gradient_extent_each,
         convolve_input_gradient<nhwc>(convolve<nhwc>(image, kernel), kernel, {16, 16}));
  KEEPS(gradient_extent_each,
        convolve_input_gradient<nhwc>(convolve<nhwc>(image, kernel), kernel, {8, 16, 16, 4}));
  BREAKS(gradient_fits,
         convolve_input_gradient<nhwc>(convolve<nhwc>(image, kernel), kernel, {8, 20, 20, 4}));
  KEEPS(gradient_fits,
        convolve_input_gradient<nhwc>(convolve<nhwc>(image, kernel), kernel, {8, 16, 16, 4}));
  BREAKS(window_entry_each, reduce_window<Max>(x, {.size = {2}}));
  KEEPS(window_entry_each, reduce_window<Max>(x, {.size = {2, 2}}));
  BREAKS(window_positive, reduce_window<Max>(x, {.size = {0, 2}}));
  KEEPS(window_positive, reduce_window<Max>(x, {.size = {1, 2}}));
  BREAKS(window_fits, reduce_window<Max>(x, {.size = {9, 1}}));
  KEEPS(window_fits, reduce_window<Max>(x, {.size = {9, 1}, .high = {1, 0}}));
  BREAKS(source_each_window, select_and_scatter<Max>(x, x, {.size = {2, 2}, .stride = {2, 2}}));
  KEEPS(source_each_window,
        select_and_scatter<Max>(x, slice(x, {0, 0}, {4, 8}), {.size = {2, 2}, .stride = {2, 2}}));
  BREAKS(halo_width_each, halo_exchange(DynamicTensor(x), {HaloDim{1, 1}}));
  KEEPS(halo_width_each, halo_exchange(DynamicTensor(x), {HaloDim{1, 1}, HaloDim{}}));
  BREAKS(halo_not_negative, halo_exchange<0>(x, -1, 1, Boundary::none));
  KEEPS(halo_not_negative, halo_exchange<0>(x, 0, 1, Boundary::none));
  BREAKS(halo_within_image, halo_exchange<0>(x, 8, 8, Boundary::reflected));
  KEEPS(halo_within_image, halo_exchange<0>(x, 7, 7, Boundary::reflected));
  BREAKS(box_each_process, to_irregular(x, Irregular(std::vector<Box>{whole_x}), view));
  KEEPS(box_each_process, to_irregular(x, Irregular(std::vector<Box>(4, whole_x)), view));
  BREAKS(box_rank_matches, to_irregular(x, Irregular(std::vector<Box>(4, Box{{{0, 8}}})), view));
  KEEPS(box_rank_matches,
        to_irregular(x, Irregular(std::vector<Box>(4, Box{{{0, 8}, {0, 16}}})), view));
  BREAKS(box_in_bounds,
         to_irregular(x, Irregular(std::vector<Box>(4, Box{{{0, 9}, {0, 16}}})), view));
  KEEPS(box_in_bounds,
        to_irregular(x, Irregular(std::vector<Box>(4, Box{{{0, 8}, {0, 16}}})), view));
  BREAKS(boxes_disjoint, from_irregular<Tensor<float, data, _>>(
                             mesh, {8, 16}, Irregular({top, top, whole_x, whole_x}), view));
  KEEPS(boxes_disjoint, from_irregular<Tensor<float, data, _>>(
                            mesh, {8, 16}, Irregular({top, top, bottom, bottom}), view));
  BREAKS(boxes_cover, from_irregular<Tensor<float, data, _>>(
                          mesh, {8, 16}, Irregular({top, top, top, top}), view));
  KEEPS(boxes_cover, from_irregular<Tensor<float, data, _>>(
                         mesh, {8, 16}, Irregular({top, top, bottom, bottom}), view));
  BREAKS(root_known, to_root(x, 4));
  KEEPS(root_known, to_root(x, 3));
  BREAKS(limbs_suffice,
         sum<"i->">(zeros<Tensor<double, data>>(mesh, Index(1) << 50), deterministic));
  KEEPS(limbs_suffice,
        sum<"i->">(zeros<Tensor<double, data>>(mesh, Index(1) << 40), deterministic));
  BREAKS(row_not_empty, argmax<"ij->i">(zeros<Tensor<float, data, _>>(mesh, 8, 0)));
  KEEPS(row_not_empty, argmax<"ij->i">(x));
  BREAKS(first_of_line, top_k<"ij", 'j'>(x, 17));
  KEEPS(first_of_line, top_k<"ij", 'j'>(x, 16));
}
