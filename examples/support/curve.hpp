// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Curves as an SVG picture: lines over one horizontal axis, with their names.
///
///     write_curves("loss.svg", "characters", "nats a character", {{"training", {{0, 4.5}, {1000, 2.4}}}});
///
/// Laws: points whose numbers are not finite are left out; without points the picture has axes
/// alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>

namespace support {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

inline std::string curves_svg(const std::string& across, const std::string& up,
                              const std::vector<Curve>& curves) {
  constexpr double width = 640, height = 400, left = 60, right = 20, top = 20, bottom = 50;
  constexpr const char* colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e"};
  double most_x = 0, least_y = INFINITY, most_y = -INFINITY;
  const auto good = [](const auto& p) { return std::isfinite(p.first) && std::isfinite(p.second); };
  for (const Curve& curve : curves)
    for (const auto& p : curve.points)
      if (good(p)) {
        most_x = std::max(most_x, p.first);
        least_y = std::min(least_y, p.second);
        most_y = std::max(most_y, p.second);
      }
  if (!(most_y >= least_y)) least_y = 0, most_y = 1;
  if (most_y == least_y) most_y = least_y + 1;
  if (most_x == 0) most_x = 1;
  const auto x_of = [&](double x) { return left + x / most_x * (width - left - right); };
  const auto y_of = [&](double y) {
    return height - bottom - (y - least_y) / (most_y - least_y) * (height - top - bottom);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, height);
  for (int i = 0; i <= 4; ++i) {
    const double x = most_x * i / 4, y = least_y + (most_y - least_y) * i / 4;
    svg += fmt::format(
        "<path d=\"M{0:.1f} {1}V{2}M{3} {4:.1f}H{5}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{6}\" text-anchor=\"middle\">{7:.4g}</text>\n"
        "<text x=\"{8}\" y=\"{9:.1f}\" text-anchor=\"end\">{10:.3g}</text>\n",
        x_of(x), top, height - bottom, left, y_of(y), width - right, height - bottom + 16, x,
        left - 6, y_of(y) + 4, y);
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     (left + width - right) / 2, height - 12, across);
  svg += fmt::format(
      "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (top + height - bottom) / 2, up);
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const char* colour = colours[c % std::size(colours)];
    std::string points;
    for (const auto& p : curves[c].points)
      if (good(p)) points += fmt::format("{:.1f},{:.1f} ", x_of(p.first), y_of(p.second));
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", points, colour);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\">{}</text>\n",
                       width - right - 8, top + 16 + 16 * static_cast<double>(c), colour,
                       curves[c].name);
  }
  return svg + "</svg>\n";
}

/// Writes text to a file. Throws UsageError when it cannot be written.
inline void write_text(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr)
    throw tessera::UsageError("the file " + path + " cannot be written; name one that can be");
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), file);
  if (std::fclose(file) != 0 || written != text.size())
    throw tessera::UsageError("the file " + path + " cannot be written: is the disk full?");
}

}  // namespace support
