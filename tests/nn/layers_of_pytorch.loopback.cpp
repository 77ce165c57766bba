// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layers and all their gradients against PyTorch's, of equal inputs
// (tests/nn/layers_of_pytorch/generate.py).
#include <span>

#include <tessera/io/npy.hpp>

#include "nn/layer_cases.hpp"

namespace {
using namespace nn_test;

/// Indices by the generator's formula.
struct Indices {
  Index step, first, n;
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>((i.linear() * step + first) % n);
  }
};
template <class X> X some(Parameters<Grid>& make, const Extents& extents) {
  return make.tensor<X>(extents, Initializer::zeros());
}

struct MultiHead {
  static constexpr const char* name = "multi_head";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(Attention<U>::like(make, {.embed = 6, .heads = 3}),
                      some<Activations<U>>(make, {3, 4, 6}));
  }
  template <class L, class X> static auto run(const std::tuple<L, X>& given) {
    const X& x = std::get<1>(given);
    return attention(std::get<0>(given), x, x, {.causal = true});
  }
};
struct GroupedQuery {
  static constexpr const char* name = "grouped_query";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(
        Attention<U>::like(make, {.embed = 5, .heads = 6, .groups = 3, .head_dim = 4}),
        some<Activations<U>>(make, {3, 4, 5}));
  }
  template <class L, class X> static auto run(const std::tuple<L, X>& given) {
    const X& x = std::get<1>(given);
    return attention(std::get<0>(given), x, x, {.causal = true, .rotary = true});
  }
};
struct Cross {
  static constexpr const char* name = "cross";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(Attention<U>::like(make, {.embed = 6, .heads = 3, .context = 4}),
                      some<Activations<U>>(make, {3, 4, 6}), some<Activations<U>>(make, {3, 5, 4}));
  }
  template <class U, class X> static auto run(const std::tuple<Attention<U>, X, X>& given) {
    using Valid = typename U::template Of<bool, logical::batch, logical::sequence>;
    const auto& [layer, x, context] = given;
    return attention(layer, x, context, {}, from_function<Valid>(mesh_of(x), {3, 5}, SomeTrue{}));
  }
};
/// Attention that is causal within documents, whose places need not lie side by side.
struct DocumentNumber {
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>(1 + i.linear() * 5 / 4 % 3);
  }
};
struct InDocuments {
  static constexpr const char* name = "documents";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(
        Attention<U>::like(make, {.embed = 5, .heads = 6, .groups = 3, .head_dim = 4}),
        some<Activations<U>>(make, {3, 7, 5}));
  }
  template <class U, class X> static auto run(const std::tuple<Attention<U>, X>& given) {
    const X& x = std::get<1>(given);
    const auto numbers = from_function<TokenIds<U>>(mesh_of(x), {3, 7}, DocumentNumber{});
    return attention(std::get<0>(given), x, x, {.causal = true}, numbers);
  }
};
struct LayerNorms {
  static constexpr const char* name = "layer_norm";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(LayerNorm<U>::like(make, 6), some<Activations<U>>(make, {5, 4, 6}));
  }
  template <class Given> static auto run(const Given& given) {
    return layer_norm(std::get<0>(given), std::get<1>(given));
  }
};
struct RmsNorms {
  static constexpr const char* name = "rms_norm";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(RmsNorm<U>::like(make, 6), some<Activations<U>>(make, {5, 4, 6}));
  }
  template <class Given> static auto run(const Given& given) {
    return rms_norm(std::get<0>(given), std::get<1>(given));
  }
};
struct GeluLayer {
  static constexpr const char* name = "gelu";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(FeedForward<U>::like(make, 6, 7), some<Activations<U>>(make, {5, 4, 6}));
  }
  template <class Given> static auto run(const Given& given) {
    return feed_forward(std::get<0>(given), std::get<1>(given), fn::Gelu{});
  }
};
struct SwiGlu {
  static constexpr const char* name = "swiglu";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(GatedFeedForward<U>::like(make, 6, 7), some<Activations<U>>(make, {5, 4, 6}));
  }
  template <class Given> static auto run(const Given& given) {
    return feed_forward(std::get<0>(given), std::get<1>(given), fn::Silu{});
  }
};
struct CrossEntropies {
  static constexpr const char* name = "cross_entropy";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(Embedding<U>::like(make, 11, 6));
  }
  template <class U> static auto run(const std::tuple<Embedding<U>>& given) {
    const auto& table = std::get<0>(given);
    const auto indices = [&](Index step, Index first) {
      return from_function<TokenIds<U>>(mesh_of(table.weight), {5, 4}, Indices{step, first, 11});
    };
    const auto x = look_up<typename Activations<U>::spec>(table, indices(7, 3));
    return cross_entropy(
        logits<typename U::template Spec<logical::batch, logical::sequence, logical::vocabulary>>(
            table, x),
        indices(5, 1));
  }
};
struct BatchNorms {
  static constexpr const char* name = "batch_norm";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    using Images =
        typename U::template Tensor<logical::batch, logical::sequence, _, logical::channels>;
    return std::tuple(BatchNorm<U>::like(make, 6), some<Images>(make, {5, 4, 3, 6}));
  }
  template <class Given> static auto run(const Given& given) {
    return batch_norm(std::get<0>(given), std::get<1>(given)).y;
  }
};
struct Convolutions {
  static constexpr const char* name = "convolution";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    using Images =
        typename U::template Tensor<logical::batch, logical::sequence, _, logical::in_channels>;
    return std::tuple(ConvolutionBlock<U>::like(make, {3, 3}, 2, 4),
                      some<Images>(make, {3, 5, 4, 2}));
  }
  template <class Given> static auto run(const Given& given) {
    return convolution_block(std::get<0>(given), std::get<1>(given),
                             {.stride = {2, 1}, .low = {1, 1}, .high = {1, 1}}, fn::Relu{})
        .y;
  }
};

/// The numbers of a file, one tensor after the other.
class Numbers {
 public:
  Numbers(const ProcessMesh<Grid>& mesh, const std::string& name) {
    std::string path = __FILE__;
    path = path.substr(0, path.rfind('/')) + "/layers_of_pytorch/" + name + ".npy";
    all_ = to_host(read_npy<ShardedTensor<double, Grid, P<_>>>(mesh, path)).values;
  }
  template <class X> X next(const X& like) {
    return from_host<X>(mesh_of(like), like.extents(), span(like.size()));
  }
  template <class Tree> std::vector<double> next_of(const Tree& tree) {
    std::vector<double> made;
    for_each_tensor(
        [&](const auto& x) {
          const auto part = span(x.size());
          made.insert(made.end(), part.begin(), part.end());
        },
        tree);
    return made;
  }
  bool done() const { return at_ == all_.size(); }

 private:
  std::span<const double> span(Index n) {
    REQUIRE(at_ + static_cast<std::size_t>(n) <= all_.size());
    const std::span<const double> part(all_.data() + at_, static_cast<std::size_t>(n));
    at_ += static_cast<std::size_t>(n);
    return part;
  }
  std::vector<double> all_;
  std::size_t at_ = 0;
};

template <class Case, class R> void compare(const ProcessMesh<Grid>& mesh, std::mutex& mutex) {
  Numbers numbers(mesh, Case::name);
  const auto given =
      map_tensors([&](const auto& x) { return numbers.next(x); }, arguments_on<Case, R>(mesh));
  using Y = std::decay_t<decltype(Case::run(given))>;
  const auto by = numbers.next(Y(zeros_like(Case::run(given))));
  const auto f = [&](const auto& in) {
    const Y y = Case::run(in);
    return std::tuple(sum(y * by), y);
  };
  const auto [values, gradient] = value_and_grad(f)(given);
  std::vector<double> y, gradients;
  append(y, std::get<1>(values));
  append(gradients, gradient);
  const auto wanted = numbers.next_of(std::get<1>(values)), slopes = numbers.next_of(gradient);
  const std::lock_guard lock(mutex);
  CHECK(numbers.done());
  CHECK(worst(y, wanted) < 1e-10);
  CHECK(worst(gradients, slopes) < 1e-10);
}
template <class Case> void compare_all() {
  CAPTURE(std::string(Case::name));
  std::mutex mutex;
  for (const auto& [rows, columns] : {std::pair{1, 1}, {2, 2}, {3, 2}})
    on_mesh(rows, columns, [&](const ProcessMesh<Grid>& mesh) {
      compare<Case, TensorParallel<data, model>>(mesh, mutex);
      compare<Case, TwoDimensional<data, model>>(mesh, mutex);
    });
}
}  // namespace

TEST_CASE("attention, values and gradients, is PyTorch's") {
  compare_all<MultiHead>();
  compare_all<GroupedQuery>();
  compare_all<Cross>();
  compare_all<InDocuments>();
}
TEST_CASE("norms, feed-forward layers and losses, values and gradients, are PyTorch's") {
  compare_all<LayerNorms>();
  compare_all<RmsNorms>();
  compare_all<GeluLayer>();
  compare_all<SwiGlu>();
  compare_all<CrossEntropies>();
}
TEST_CASE("batch norm and the convolution block, values and gradients, are PyTorch's") {
  compare_all<BatchNorms>();
  compare_all<Convolutions>();
}
