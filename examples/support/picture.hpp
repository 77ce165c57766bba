// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Pictures in files: PNG where the build has found libpng, else PPM.
///
///     const Picture p = read_picture("cat.png");            // red, green, blue; rows from the top
///     const std::string file = write_picture(p, "copy");    // copy.png, or copy.ppm
///
/// Laws: a picture that is written as PNG and read again is the same.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>

#if defined(TESSERA_HAVE_PNG)
#include <png.h>
#endif

namespace support {

struct Picture {
  tessera::Index height = 0;
  tessera::Index width = 0;
  std::vector<std::uint8_t> pixels;  ///< height * width * 3
};

/// Returns the picture in a PNG file, of any kind of PNG, in three colours of 8 bits. Throws
/// UsageError when there is no such file, when it is something else, and without libpng.
inline Picture read_picture(const std::string& path) {
#if defined(TESSERA_HAVE_PNG)
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto fail = [&] {
    const std::string reason = image.message;
    png_image_free(&image);
    throw tessera::UsageError("the picture " + path + " cannot be read: " + reason +
                              "; give a file in PNG format");
  };
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) fail();
  image.format = PNG_FORMAT_RGB;
  Picture picture{image.height, image.width, {}};
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) == 0) fail();
  return picture;
#else
  throw tessera::UsageError("the picture " + path +
                            " cannot be read: this program was built without libpng; install "
                            "libpng-dev and configure again, or give no picture");
#endif
}

/// Writes a picture to `name` with the suffix of the format, and returns the file's name. Throws
/// UsageError when the file cannot be written.
inline std::string write_picture(const Picture& picture, const std::string& name) {
#if defined(TESSERA_HAVE_PNG)
  const std::string path = name + ".png";
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.format = PNG_FORMAT_RGB;
  image.height = static_cast<png_uint_32>(picture.height);
  image.width = static_cast<png_uint_32>(picture.width);
  if (png_image_write_to_file(&image, path.c_str(), 0, picture.pixels.data(), 0, nullptr) == 0)
    throw tessera::UsageError("the picture " + path + " cannot be written: " + image.message);
#else
  const std::string path = name + ".ppm";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw tessera::UsageError("the picture " + path + " cannot be written");
  std::fprintf(file, "P6\n%lld %lld\n255\n", static_cast<long long>(picture.width),
               static_cast<long long>(picture.height));
  const std::size_t written = std::fwrite(picture.pixels.data(), 1, picture.pixels.size(), file);
  if (std::fclose(file) != 0 || written != picture.pixels.size())
    throw tessera::UsageError("the picture " + path + " cannot be written: is the disk full?");
#endif
  return path;
}

}  // namespace support
