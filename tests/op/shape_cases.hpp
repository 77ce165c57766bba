// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Single random cases of slice and its siblings, run and compared as those of cases.hpp are.
///
///     std::string wrong = support::some_shape_case(mesh, random);
#include "cases.hpp"
#include "support/shapes.hpp"

namespace support {

template <class T> class ShapeCases {
 public:
  ShapeCases(std::shared_ptr<MeshCore> mesh, Random& random)
      : mesh_(std::move(mesh)), shape_(mesh_->shape()), random_(random) {}

  std::string slice() {
    const TensorDesc x = some_tensor(some_kind());
    Extents start, limit, stride;
    for (Index n : x.extents) {
      start.push_back(random_.below(static_cast<int>(n) + 1));
      limit.push_back(start.back() + random_.below(static_cast<int>(n - start.back()) + 1));
      stride.push_back(1 + (random_.chance(40) ? random_.below(4) : 0));
    }
    const Sharding out = result_of(x.sharding, x.rank());
    const DynamicTensor input = make_input<T>(mesh_, x, 1);
    return trial(
        "slice " + to_string(start) + " to " + to_string(limit) + " by " + to_string(stride), x,
        out)([&] { return tessera::slice(input, start, limit, stride, out); },
             plan_take(slice_of(x.extents, start, limit, stride), {x}, out, shape_,
                       mesh_->process(), plan_options(*mesh_)),
             support::slice(whole_input<T>(x, shape_, 1), start, limit, stride), tolerance());
  }

 private:
  Trial<T> trial(const std::string& name, const TensorDesc& x, const Sharding& out) const {
    return Trial<T>(mesh_, std::string(name_of(dtype_of<T>)) + " on " + describe(shape_) + ": " +
                               name + " of " + describe(x, shape_) + " to " +
                               describe(out, shape_));
  }
  Reduction some_kind() {
    return random_.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min});
  }
  Index some_extent() {
    return random_.of<Index>({1, 2, 3, 4, 5, 7, 8, 9, 13, random_.chance(20) ? 0 : 6});
  }
  TensorDesc some_tensor(Reduction kind, int least = 0) {
    const int rank = least + random_.below(4 - least);
    TensorDesc x{dtype_of<T>,
                 {},
                 some_sharding(random_, rank, shape_.rank(), random_.chance(30) ? 40 : 0, kind)};
    for (int d = 0; d < rank; ++d) x.extents.push_back(some_extent());
    return x;
  }
  /// Some sharding of a result: the operand's own, another finished one, or one that stays as open.
  Sharding result_of(const Sharding& x, int rank) {
    if (rank == x.rank() && random_.chance(40)) return x;
    Sharding out = some_sharding(random_, rank, shape_.rank());
    if (random_.chance(50)) return out;
    for (int d = 0; d < rank; ++d) out[d] = out[d].without(x.partial);
    return out.with_partial(x.partial, x.reduction);
  }
  /// Moving changes nothing; finishing a sum rounds.
  double tolerance() const {
    return std::is_floating_point_v<T> ? 4 * shape_.processes() * shape_.processes() *
                                             static_cast<double>(std::numeric_limits<T>::epsilon())
                                       : 0;
  }

  std::shared_ptr<MeshCore> mesh_;
  MeshShape shape_;
  Random& random_;
};

/// Runs one case, all of it chosen by `random`. Collective over the mesh.
inline std::string some_shape_case(const std::shared_ptr<MeshCore>& mesh, Random& random) {
  const DType type = random.of<DType>({DType::f32, DType::f64, DType::i32, DType::i64});
  return with_sampled_type(type, [&](auto element) {
    ShapeCases<decltype(element)> cases(mesh, random);
    return cases.slice();
  });
}

}  // namespace support
