// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Curves as an SVG picture: lines over one horizontal axis, with their names.
///
///     write_curves("loss.svg", "characters", "nats a character", {{"training", {{0, 4.5}, {1000, 2.4}}}});
///
/// Laws: points whose numbers are not finite are left out; without points the picture has axes
/// alone. The axes are marked at numbers of one digit. A curve of few points has dots.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace support {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// Marks of an axis: numbers of one decimal digit (1, 2 or 5 times a power of ten apart) from at
/// most `least` to at least `most`, which become the first and the last of them; about `wanted`.
struct Ticks {
  double first = 0, step = 1;
  int count = 0;

  Ticks(double& least, double& most, int wanted) {
    const double rough = (most - least) / wanted;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    for (const double digit : {1.0, 2.0, 5.0, 10.0})
      if ((step = digit * power) >= rough * 0.999) break;
    least = first = std::floor(least / step + 1e-6) * step;
    most = std::ceil(most / step - 1e-6) * step;
    count = static_cast<int>(std::lround((most - least) / step)) + 1;
  }
  double operator[](int i) const { return first + step * i; }
  /// Returns "250k", "0.05", "1.2M".
  std::string label(int i) const {
    const double value = std::abs((*this)[i]) < step / 1e6 ? 0 : (*this)[i];
    const double unit = step * (count + 1) >= 2e6 ? 1e6 : step * (count + 1) >= 2e4 ? 1e3 : 1;
    const double digits = std::ceil(-std::log10(step / unit) - 1e-6);
    return fmt::format("{:.{}f}{}", value / unit, static_cast<int>(std::max(0.0, digits)),
                       value == 0 || unit == 1 ? ""
                       : unit == 1e6           ? "M"
                                               : "k");
  }
};

inline std::string curves_svg(const std::string& across, const std::string& up,
                              const std::vector<Curve>& curves) {
  constexpr double width = 640, height = 400, left = 60, right = 40, top = 20, bottom = 50;
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
  if (most_y - least_y < 1e-3 * std::abs(most_y) || most_y == least_y) {  // as of one point
    const double room = std::max(std::abs(most_y) / 10, 1e-3);
    least_y -= room, most_y += room;
  }
  if (most_x == 0) most_x = 1;
  double least_x = 0;
  const Ticks over(least_x, most_x, 6), beside(least_y, most_y, 6);
  const auto x_of = [&](double x) { return left + x / most_x * (width - left - right); };
  const auto y_of = [&](double y) {
    return height - bottom - (y - least_y) / (most_y - least_y) * (height - top - bottom);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, height);
  for (int i = 0; i < over.count; ++i)
    svg += fmt::format(
        "<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        x_of(over[i]), top, height - bottom, height - bottom + 16, over.label(i));
  for (int i = 0; i < beside.count; ++i)
    svg += fmt::format(
        "<path d=\"M{0} {1:.1f}H{2}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        left, y_of(beside[i]), width - right, left - 6, y_of(beside[i]) + 4, beside.label(i));
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     (left + width - right) / 2, height - 12, across);
  svg += fmt::format(
      "<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (top + height - bottom) / 2, up);
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const char* colour = colours[c % std::size(colours)];
    std::string points, dots;
    const auto count = std::count_if(curves[c].points.begin(), curves[c].points.end(), good);
    for (const auto& p : curves[c].points) {
      if (!good(p)) continue;
      points += fmt::format("{:.1f},{:.1f} ", x_of(p.first), y_of(p.second));
      if (count <= 40)  // a line through one point is not seen
        dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                            x_of(p.first), y_of(p.second), colour);
    }
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", points, colour);
    svg += dots;
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"{}\">{}</text>\n",
                       width - right - 8, top + 16 + 16 * static_cast<double>(c), colour,
                       curves[c].name);
  }
  return svg + "</svg>\n";
}

}  // namespace support
