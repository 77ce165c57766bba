// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Images and their classes: those of a folder that fetch.py made, or made ones.
///
///     const Images images = read_images(mesh, "images");        // all of them, on every process
///     const Batch<U> batch(mesh, images.learn, random_rows(images.learn, 64, seed, step));
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/io/npy.hpp>
#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

namespace vision {

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;

/// Images (count, height, width, channels) of one byte an element, and the class of each.
struct ImageSet {
  Extents extents;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> classes;
  Index count() const { return extents[0]; }
};
struct Images {
  ImageSet learn, held_out;
  Index classes() const {
    return 1 + *std::max_element(learn.classes.begin(), learn.classes.end());
  }
};

/// Communication: the files' bytes, to every process. Throws IoError for a file that is not there,
/// UsageError where images and classes do not fit together.
inline Images read_images(const ProcessMesh<Grid>& mesh, const std::string& folder) {
  const auto read = [&](const std::string& name) {
    using Pixels = ShardedTensor<std::uint8_t, Grid, P<Axes<data, model>, _, _, _>>;
    using Classes = ShardedTensor<std::int32_t, Grid, P<_>>;
    const std::string path = folder + "/" + name;
    const auto pixels = read_npy<Pixels>(mesh, path + ".images.npy");
    ImageSet set{pixels.extents(), to_host(pixels).values,
                 to_host(read_npy<Classes>(mesh, path + ".classes.npy")).values};
    if (set.count() < 1 || static_cast<Index>(set.classes.size()) != set.count() ||
        *std::min_element(set.classes.begin(), set.classes.end()) < 0)
      throw UsageError(path + ".images.npy has " + std::to_string(set.count()) + " images, and " +
                       path + ".classes.npy " + std::to_string(set.classes.size()) +
                       " classes; give one from 0 on to each, by vision_transformer/fetch.py");
    return set;
  };
  return {read("learn"), read("held_out")};
}

/// Returns images of 12 x 12 made of noise and of stripes, whose direction and width are the class.
inline Images made_images(std::uint64_t seed) {
  const auto set = [&](Index count, std::uint64_t apart) {
    ImageSet made{{count, 12, 12, 1}, {}, {}};
    for (Index i = 0; i < count; ++i) {
      made.classes.push_back(static_cast<std::int32_t>(i % 4));
      const Index width = 2 + i % 4 / 2, along = i % 2;
      for (Index place = 0; place < 144; ++place) {
        const Index at = (along == 0 ? place / 12 : place % 12) + i / 4;
        const auto key = static_cast<std::uint64_t>(i * 144 + place);
        const Index noise =
            static_cast<Index>(Dropout::mixed(seed ^ Dropout::mixed(key ^ apart)) % 128);
        made.pixels.push_back(static_cast<std::uint8_t>(127 * (at / width % 2) + noise));
      }
    }
    return made;
  };
  return {set(256, 1), set(64, std::uint64_t{1} << 40)};
}

/// Numbers of images of a set, drawn for a step.
inline std::vector<Index> random_rows(const ImageSet& set, Index rows, std::uint64_t seed,
                                      Index step) {
  std::vector<Index> drawn;
  for (Index r = 0; r < rows; ++r) {
    const auto key =
        Dropout::mixed(static_cast<std::uint64_t>(step)) + static_cast<std::uint64_t>(r);
    const std::uint64_t number = Dropout::mixed(Dropout::mixed(seed) ^ Dropout::mixed(key));
    drawn.push_back(static_cast<Index>(number % static_cast<std::uint64_t>(set.count())));
  }
  return drawn;
}

/// Images on their way to the mesh: every process has all of them and keeps its own.
template <class U> struct Batch {
  using Pixels = typename U::template Of<std::uint8_t, logical::batch, logical::height,
                                         logical::width, logical::in_channels>;
  using Classes = typename U::template Of<std::int32_t, logical::batch>;
  Pixels pixels;
  Classes classes;

  Batch(const ProcessMesh<Grid>& mesh, const ImageSet& set, const std::vector<Index>& rows) {
    Extents extents = set.extents;
    extents[0] = static_cast<Index>(rows.size());
    const Index each = set.extents[1] * set.extents[2] * set.extents[3];
    std::vector<std::uint8_t> some;
    std::vector<std::int32_t> of;
    for (const Index row : rows) {
      const auto from = set.pixels.begin() + row * each;
      some.insert(some.end(), from, from + each);
      of.push_back(set.classes[static_cast<std::size_t>(row)]);
    }
    pixels = from_host<Pixels>(mesh, extents, some);
    classes = from_host<Classes>(mesh, {extents[0]}, of);
  }
};

}  // namespace vision
