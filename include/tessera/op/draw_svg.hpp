// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who owns what, as a drawing: a self-contained SVG. A vector is a strip, a matrix a grid, and
/// what has more dimensions a grid for each part of the leading ones. Arithmetic alone, no
/// communication.
///
///     std::ofstream("weights.svg") << draw_svg(x);
///     std::string picture = draw_svg(desc, mesh_shape, names);       // without data, for any mesh
///
/// Laws: the text is a function of its arguments alone; every non-empty block is drawn once, with
/// all processes that hold it.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/op/visualize.hpp>

namespace tessera {
namespace detail {

/// Lines of an SVG, in units of a pixel; text is monospaced, so that its width is known.
class SvgText {
 public:
  static constexpr int letter = 7;  ///< width of a letter of the larger font
  static constexpr int line = 15;   ///< from one line to the next

  static int width(const std::string& text, int per_letter = letter) {
    return static_cast<int>(text.size()) * per_letter;
  }
  void rectangle(int x, int y, int w, int h, const std::string& style) {
    body_ += "<rect x=\"" + at(x) + "\" y=\"" + at(y) + "\" width=\"" + at(w) + "\" height=\"" +
             at(h) + "\" " + style + "/>\n";
  }
  void text(int x, int y, const std::string& words, const std::string& style = "") {
    body_ += "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\"" + (style.empty() ? "" : " ") + style +
             ">" + escaped(words) + "</text>\n";
  }
  void upright(int x, int y, const std::string& words) {
    body_ += "<text class=\"i\" transform=\"translate(" + at(x) + " " + at(y) + ") rotate(-90)\">" +
             escaped(words) + "</text>\n";
  }
  std::string document(int width, int height) const {
    const std::string size = at(width) + "\" height=\"" + at(height);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " +
           at(width) + " " + at(height) +
           "\">\n<style>text{font:12px monospace;fill:#111}.i{font-size:10px;fill:#555}"
           ".o{text-anchor:middle}.e{text-anchor:end}.t{font-weight:bold}</style>\n"
           "<defs><pattern id=\"open\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" "
           "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"8\" "
           "stroke=\"#111\" stroke-opacity=\"0.3\" stroke-width=\"3\"/></pattern></defs>\n"
           "<rect width=\"" +
           size + "\" fill=\"#fff\"/>\n" + body_ + "</svg>\n";
  }

 private:
  static std::string at(int n) { return std::to_string(n); }
  static std::string escaped(const std::string& words) {
    std::string text;
    for (const char c : words)
      text += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    return text;
  }
  std::string body_;
};

/// A light colour for a process: hues a golden angle apart, at three depths.
inline std::string owner_color(int process) {
  const int hue = process * 137 % 360;
  const int low = process / 12 % 3 * 22 + 140, range = 245 - low;
  const auto channel = [&](int shift) {
    const int h = (hue + shift) % 360;
    const int level = h < 60 ? h : h < 180 ? 60 : h < 240 ? 240 - h : 0;
    return low + range * level / 60;
  };
  static constexpr char digits[] = "0123456789abcdef";
  std::string text = "#";
  for (const int shift : {120, 0, 240}) {
    text += digits[channel(shift) / 16];
    text += digits[channel(shift) % 16];
  }
  return text;
}

class OwnershipDrawing {
 public:
  OwnershipDrawing(const TensorDesc& desc, const MeshShape& mesh, const AxisNames& names)
      : desc_(desc), mesh_(mesh), names_(names) {
    for (int p = 0; p < mesh.processes(); ++p) {
      const Box box = block(desc.extents, desc.sharding, mesh, mesh.coordinates(p));
      if (box.empty())
        idle_.push_back(p);
      else
        owners_[starts(box)].push_back(p);
    }
    for (int d = 0; d < desc.rank(); ++d) parts_.push_back(parts_of(desc, d, mesh));
    // A scalar is one cell, a vector one row.
    rows_ = desc.rank() > 1 ? parts_[index(desc.rank() - 2)] : std::vector<Interval>{{0, 1}};
    columns_ = desc.rank() > 0 ? parts_.back() : std::vector<Interval>{{0, 1}};
  }

  std::string document() {
    int y = margin + 12;
    for (const std::string& words : legend()) {
      svg_.text(margin, y, words, y == margin + 12 ? "class=\"t\"" : "");
      right_ = std::max(right_, margin + SvgText::width(words) + SvgText::width(words) / 12);
      y += SvgText::line + 2;
    }
    y += 6;
    if (!owners_.empty()) y = draw_panels(y);
    return svg_.document(right_ + margin, y + margin);
  }

 private:
  static constexpr int margin = 16;
  static constexpr int most_width = 1100;  ///< where panels wrap, if they can
  static constexpr int most_in_strip = 16;

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static std::vector<Index> starts(const Box& box) {
    std::vector<Index> lo;
    for (const Interval& side : box.side) lo.push_back(side.lo);
    return lo;
  }
  std::string axis(int a) const {
    return a < names_.size() ? std::string(names_[a]) : "axis" + std::to_string(a);
  }

  std::vector<std::string> legend() const {
    std::vector<std::string> lines{to_string(desc_, names_),
                                   "on " + to_string(mesh_, names_) + ", " +
                                       std::to_string(mesh_.processes()) +
                                       (mesh_.processes() == 1 ? " process" : " processes")};
    const AxisSet split = desc_.sharding.used() | desc_.sharding.partial;
    std::string copies;
    for (int a = 0; a < mesh_.rank(); ++a)
      if (!split.contains(a) && mesh_[a] > 1) copies += (copies.empty() ? "" : ", ") + axis(a);
    if (!copies.empty()) lines.push_back("striped: the same values along " + copies);
    if (!desc_.sharding.partial.empty())
      lines.push_back("hatched: unreduced, the " + std::string(name_of(desc_.sharding.reduction)) +
                      " over " + to_string(desc_.sharding.partial, names_) + " is the value");
    if (!idle_.empty()) lines.push_back("without elements: " + owners_text(idle_));
    return lines;
  }

  /// The text of the processes that hold a block, in lines that are not long.
  std::vector<std::string> label(const std::vector<int>& owners) const {
    std::vector<std::string> lines{""};
    const std::string text = owners_text(owners);
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t end = std::min(text.find(',', i), text.size() - 1) + 1;
      if (!lines.back().empty() && lines.back().size() + end - i > 14) lines.emplace_back();
      lines.back() += text.substr(i, end - i);
      i = end;
    }
    return lines;
  }

  /// Sizes of the cells along one dimension: as the parts are, but never too small for `least`.
  static std::vector<int> sizes(const std::vector<Interval>& parts, int whole, int least) {
    Index total = 0;
    for (const Interval& part : parts) total += part.size();
    std::vector<int> result;
    for (const Interval& part : parts)
      result.push_back(std::max(
          least, static_cast<int>(static_cast<double>(whole) * static_cast<double>(part.size()) /
                                  static_cast<double>(total))));
    return result;
  }

  /// Each combination of the leading dimensions' parts, as the start of a box.
  std::vector<Box> leading_parts() const {
    std::vector<Box> all{Box{}};
    for (int d = 0; d + 2 < desc_.rank(); ++d) {
      std::vector<Box> longer;
      for (const Box& box : all)
        for (const Interval& part : parts_[index(d)]) {
          longer.push_back(box);
          longer.back().side.push_back(part);
        }
      all.swap(longer);
    }
    return all;
  }

  int draw_panels(int y) {
    int widest = 0, tallest = 1;
    for (const auto& [start, owners] : owners_) {
      const std::vector<std::string> lines = label(owners);
      tallest = std::max(tallest, static_cast<int>(lines.size()));
      for (const std::string& text : lines) widest = std::max(widest, SvgText::width(text));
    }
    const bool strip = desc_.rank() < 2;
    const int least_width = std::max(22, widest + 10);
    const int least_height = std::max(24, tallest * SvgText::line + 6);
    const std::vector<Box> panels = leading_parts();
    const bool many = panels.size() > 4;
    const int width = strip && columns_.size() > most_in_strip ? 0 : many ? 200 : 320;
    widths_ = sizes(columns_, width, least_width);
    heights_ = sizes(rows_, strip ? 0 : many ? 110 : 200, least_height);

    std::vector<std::pair<std::size_t, std::size_t>> strips;  // a long vector goes on below
    for (std::size_t first = 0; first < columns_.size();) {
      const std::size_t end =
          strip ? std::min(first + most_in_strip, columns_.size()) : columns_.size();
      strips.emplace_back(first, end);
      first = end;
    }
    int below = y, x = margin;
    for (const Box& leading : panels)
      for (const auto& [first, end] : strips) {
        const int across = panel_width(leading, first, end);
        if (x > margin && (strip || x + across > most_width)) {
          x = margin;
          y = below + 14;
        }
        below = std::max(below, draw_panel(leading, first, end, x, y));
        x += across + 24;
        right_ = std::max(right_, x - 24);
      }
    return below;
  }

  std::string caption(const Box& leading) const {
    if (leading.rank() == 0) return "";
    std::string text = "[";
    for (const Interval& part : leading.side) text += interval_text(part) + ", ";
    return text + ":, :]";
  }
  /// The room of the rows' index ranges, at the left of a panel.
  int row_room() const {
    if (desc_.rank() < 2) return 0;
    int room = 0;
    for (const Interval& row : rows_) room = std::max(room, SvgText::width(interval_text(row), 6));
    return room + 8;
  }
  int panel_width(const Box& leading, std::size_t first, std::size_t end) const {
    int width = row_room();
    for (std::size_t c = first; c < end; ++c) width += widths_[c];
    return std::max(width, SvgText::width(caption(leading)) + 8);
  }

  /// Draws columns first ... end of one grid; returns where it ends.
  int draw_panel(const Box& leading, std::size_t first, std::size_t end, int x, int y) {
    if (leading.rank() > 0) {
      svg_.text(x, y + 12, caption(leading));
      y += SvgText::line + 4;
    }
    x += row_room();
    bool upright = false;  // index ranges that are wider than their columns stand
    int longest = 0;
    for (std::size_t c = 0; c < columns_.size() && desc_.rank() > 0; ++c) {
      const int width = SvgText::width(interval_text(columns_[c]), 6);
      longest = std::max(longest, width);
      upright = upright || width > widths_[c] - 4;
    }
    const int head = desc_.rank() == 0 ? 0 : upright ? longest + 8 : 16;
    int at = x;
    for (std::size_t c = first; c < end && desc_.rank() > 0; ++c) {
      const std::string range = interval_text(columns_[c]);
      if (upright)
        svg_.upright(at + widths_[c] / 2 + 4, y + head - 4, range);
      else
        svg_.text(at + widths_[c] / 2, y + head - 5, range, "class=\"i o\"");
      at += widths_[c];
    }
    y += head;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (desc_.rank() > 1)
        svg_.text(x - 6, y + heights_[r] / 2 + 4, interval_text(rows_[r]), "class=\"i e\"");
      at = x;
      for (std::size_t c = first; c < end; ++c) {
        Box box = leading;
        if (desc_.rank() > 1) box.side.push_back(rows_[r]);
        if (desc_.rank() > 0) box.side.push_back(columns_[c]);
        draw_cell(owners_.at(starts(box)), at, y, widths_[c], heights_[r]);
        at += widths_[c];
      }
      y += heights_[r];
    }
    return y;
  }

  void draw_cell(const std::vector<int>& owners, int x, int y, int w, int h) {
    const int bands = std::min(static_cast<int>(owners.size()), 8);
    for (int b = 0; b < bands; ++b) {
      const int from = w * b / bands, to = w * (b + 1) / bands;
      const int owner = owners[index(b) * owners.size() / index(bands)];
      svg_.rectangle(x + from, y, to - from, h, "fill=\"" + owner_color(owner) + "\"");
    }
    if (!desc_.sharding.partial.empty()) svg_.rectangle(x, y, w, h, "fill=\"url(#open)\"");
    svg_.rectangle(x, y, w, h, "fill=\"none\" stroke=\"#333\"");
    const std::vector<std::string> lines = label(owners);
    int baseline = y + h / 2 + 4 - (static_cast<int>(lines.size()) - 1) * SvgText::line / 2;
    for (const std::string& text : lines) {
      svg_.text(x + w / 2, baseline, text, "class=\"o\"");
      baseline += SvgText::line;
    }
  }

  TensorDesc desc_;
  MeshShape mesh_;
  AxisNames names_;
  std::map<std::vector<Index>, std::vector<int>> owners_;  ///< of the block that begins there
  std::vector<int> idle_;
  std::vector<std::vector<Interval>> parts_;
  std::vector<Interval> rows_, columns_;
  std::vector<int> widths_, heights_;
  SvgText svg_;
  int right_ = 0;
};
}  // namespace detail

/// Returns a drawing of which process owns which block of a tensor `desc` on a mesh.
inline std::string draw_svg(const TensorDesc& desc, const MeshShape& mesh, const AxisNames& names) {
  return detail::OwnershipDrawing(desc, mesh, names).document();
}
template <TypedTensor A> std::string draw_svg(const A& x) {
  return draw_svg(x.desc(), x.core().mesh()->shape(), x.core().mesh()->names());
}
inline std::string draw_svg(const DynamicTensor& x) {
  return draw_svg(x.desc(), x.core().mesh()->shape(), x.core().mesh()->names());
}

}  // namespace tessera
