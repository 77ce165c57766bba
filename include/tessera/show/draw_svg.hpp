// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who owns what, as a drawing: a self-contained SVG. A vector is a strip, a matrix a grid, and a
/// tensor of more dimensions a grid for each block of the leading ones. Arithmetic alone, no
/// communication.
///
///     std::ofstream("weights.svg") << draw_svg(x);
///     std::string picture = draw_svg(desc, mesh_shape, names);       // without data, for any mesh
///
/// Laws: the text is a function of its arguments alone; every non-empty block is drawn once, with
/// the processes that hold it, or counted in one gap; the size is bounded for any mesh.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tessera/show/visualize.hpp>

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
  const int hue = process % 360 * 137 % 360;
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
      : desc_(desc), mesh_(mesh), names_(names), holders_(desc, mesh) {
    // A scalar is one cell, a vector one row.
    const int rank = desc.rank(), row = std::max(rank - 2, 0), column = std::max(rank - 1, 0);
    const BlockSequence panels(desc, mesh, 0, row), rows(desc, mesh, row, column),
        columns(desc, mesh, column, rank);
    blocks_ = panels.count() * rows.count() * columns.count();
    panels_ = panels.shown(limit_for(blocks_));
    rows_ = rows.shown(limit_for(blocks_));
    columns_ = columns.shown(limit_for(blocks_));
  }

  std::string document() {
    int y = margin + 12;
    for (const std::string& words : legend()) {
      svg_.text(margin, y, words, y == margin + 12 ? "class=\"t\"" : "");
      right_ = std::max(right_, margin + SvgText::width(words) + SvgText::width(words) / 12);
      y += SvgText::line + 2;
    }
    y += 6;
    if (blocks_ > 0) y = draw_panels(y);
    return svg_.document(right_ + margin, y + margin);
  }

 private:
  static constexpr int margin = 16;
  static constexpr int most_width = 1100;  ///< where panels wrap, if they can
  static constexpr int most_in_strip = 16;
  static constexpr const char* gap_style =
      "fill=\"#f6f6f6\" stroke=\"#999\" stroke-dasharray=\"4 3\"";

  std::string axis(int a) const {
    return a < names_.size() ? std::string(names_[a]) : "axis" + std::to_string(a);
  }
  static Index drawn(const std::vector<BlockOrGap>& list) {
    return std::count_if(list.begin(), list.end(), [](const BlockOrGap& s) { return !s.gap(); });
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
    const Index whole = drawn(panels_) * drawn(rows_) * drawn(columns_);
    if (whole < blocks_)
      lines.push_back("dashed: blocks in between, on processes from the lowest to the highest; " +
                      std::to_string(whole) + " of " + std::to_string(blocks_) +
                      " blocks are drawn");
    const std::string idle = idle_text(desc_, mesh_, blocks_);
    if (!idle.empty()) lines.push_back("without elements: " + idle);
    return lines;
  }

  /// The text of the processes that hold a block, in lines that are not long.
  std::vector<std::string> label(Index base) const {
    std::vector<std::string> lines{""};
    const std::string text = holders_.text(base);
    const std::size_t most = text.find("...") == std::string::npos ? 14 : 17;
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t end = std::min(text.find(',', i), text.size() - 1) + 1;
      if (!lines.back().empty() && lines.back().size() + end - i > most) lines.emplace_back();
      lines.back() += text.substr(i, end - i);
      i = end;
    }
    return lines;
  }
  /// Labels any cell: in a gap with the lowest and the highest process, on separate lines in a gap
  /// of rows, so that columns need not be wide.
  std::vector<std::string> label(const BlockOrGap& panel, const BlockOrGap& row,
                                 const BlockOrGap& column) const {
    const Index base = panel.lowest + row.lowest + column.lowest;
    if (!row.gap() && !column.gap()) return label(base);
    const std::string first = holders_.lowest(base);
    const std::string last = holders_.highest(panel.highest + row.highest + column.highest);
    if (row.gap()) return {first, "...", last};
    return {first + " ... " + last};
  }

  /// Sizes of the cells along one dimension: in proportion to the blocks, but at least `least`; a
  /// gap has size `gap`.
  static std::vector<int> sizes(const std::vector<BlockOrGap>& parts, int whole, int least,
                                int gap) {
    Index total = 0;
    for (const BlockOrGap& part : parts) total += part.gap() ? 0 : part.box.size();
    std::vector<int> result;
    for (const BlockOrGap& part : parts)
      result.push_back(part.gap()
                           ? gap
                           : std::max(least, static_cast<int>(static_cast<double>(whole) *
                                                              static_cast<double>(part.box.size()) /
                                                              static_cast<double>(total))));
    return result;
  }

  int draw_panels(int y) {
    int widest = 0, widest_gap = 0, tallest = 1;
    for (const BlockOrGap& panel : panels_)
      for (const BlockOrGap& row : rows_)
        for (const BlockOrGap& column : columns_) {
          if (panel.gap()) continue;
          const std::vector<std::string> lines = label(panel, row, column);
          if (!row.gap()) tallest = std::max(tallest, static_cast<int>(lines.size()));
          int& width = column.gap() ? widest_gap : widest;
          for (const std::string& text : lines) width = std::max(width, SvgText::width(text));
          if (!column.gap()) continue;
          for (const std::string& text : heading(column))
            width = std::max(width, SvgText::width(text, 6));
        }
    const bool strip = desc_.rank() < 2;
    const int least_width = std::max(22, widest + 10);
    const int least_height = std::max(24, tallest * SvgText::line + 6);
    const bool many = panels_.size() > 4;
    const int width = strip && columns_.size() > most_in_strip ? 0 : many ? 200 : 320;
    widths_ = sizes(columns_, width, least_width, std::max(least_width, widest_gap + 10));
    heights_ = sizes(rows_, strip ? 0 : many ? 110 : 200, least_height, 3 * SvgText::line + 6);

    std::vector<std::pair<std::size_t, std::size_t>> strips;  // a long vector continues below
    for (std::size_t first = 0; first < columns_.size();) {
      const std::size_t end =
          strip ? std::min(first + most_in_strip, columns_.size()) : columns_.size();
      strips.emplace_back(first, end);
      first = end;
    }
    int below = y, x = margin;
    for (const BlockOrGap& panel : panels_)
      for (const auto& [first, end] : strips) {
        const int across = panel_width(panel, first, end);
        if (x > margin && (strip || x + across > most_width)) {
          x = margin;
          y = below + 14;
        }
        below =
            std::max(below, panel.gap() ? draw_gap(panel, x + row_room(), y, across - row_room())
                                        : draw_panel(panel, first, end, x, y));
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
  /// The text of a panel that stands for several.
  std::vector<std::string> gap_lines(const BlockOrGap& panel) const {
    Index in_rows = 0, in_columns = 0;  // the lowest of either is 0, of the first block
    for (const BlockOrGap& row : rows_) in_rows = std::max(in_rows, row.highest);
    for (const BlockOrGap& column : columns_) in_columns = std::max(in_columns, column.highest);
    return {"... " + panel.count_text() + " ...", panel.size_text(), "on processes",
            holders_.lowest(panel.lowest) + " ... " +
                holders_.highest(panel.highest + in_rows + in_columns)};
  }
  /// The room of the rows' index ranges, at the left of a panel.
  int row_room() const {
    if (desc_.rank() < 2) return 0;
    int room = 0;
    for (const BlockOrGap& row : rows_)
      for (const std::string& line : heading(row)) room = std::max(room, SvgText::width(line, 6));
    return room + 8;
  }
  static std::vector<std::string> heading(const BlockOrGap& part) {
    if (part.gap()) return {part.count_text(), part.size_text()};
    return {interval_text(part.box[0])};
  }
  int panel_width(const BlockOrGap& panel, std::size_t first, std::size_t end) const {
    int width = row_room();
    for (std::size_t c = first; c < end; ++c) width += widths_[c];
    if (panel.gap())
      for (const std::string& line : gap_lines(panel))
        width = std::max(width, row_room() + SvgText::width(line) + 20);
    return std::max(width, SvgText::width(caption(panel.box)) + 8);
  }

  /// Draws a panel that stands for several; returns where it ends.
  int draw_gap(const BlockOrGap& panel, int x, int y, int width) {
    const std::vector<std::string> lines = gap_lines(panel);
    y += SvgText::line + 4 + head();
    int height = 0;
    for (const int row : heights_) height += row;
    height = std::max(height, static_cast<int>(lines.size()) * SvgText::line + 12);
    svg_.rectangle(x, y, width, height, gap_style);
    centered(lines, x + width / 2, y + height / 2);
    return y + height;
  }
  void centered(const std::vector<std::string>& lines, int x, int y) {
    int baseline = y + 4 - (static_cast<int>(lines.size()) - 1) * SvgText::line / 2;
    for (const std::string& text : lines) {
      svg_.text(x, baseline, text, "class=\"o\"");
      baseline += SvgText::line;
    }
  }

  /// Index ranges that are wider than their columns are upright; gaps have room for two lines.
  bool upright() const {
    for (std::size_t c = 0; c < columns_.size() && desc_.rank() > 0; ++c)
      if (!columns_[c].gap() &&
          SvgText::width(interval_text(columns_[c].box[0]), 6) > widths_[c] - 4)
        return true;
    return false;
  }
  /// The room of the columns' index ranges, at the top of a panel.
  int head() const {
    if (desc_.rank() == 0) return 0;
    int longest = 0, least = 16;
    for (const BlockOrGap& column : columns_)
      if (column.gap())
        least = 28;
      else
        longest = std::max(longest, SvgText::width(interval_text(column.box[0]), 6));
    return upright() ? std::max(longest + 8, least) : least;
  }

  /// Draws columns first ... end of one grid; returns where it ends.
  int draw_panel(const BlockOrGap& panel, std::size_t first, std::size_t end, int x, int y) {
    if (panel.box.rank() > 0) {
      svg_.text(x, y + 12, caption(panel.box));
      y += SvgText::line + 4;
    }
    x += row_room();
    const bool standing = upright();
    int at = x;
    for (std::size_t c = first; c < end && desc_.rank() > 0; ++c) {
      const std::vector<std::string> lines = heading(columns_[c]);
      const int middle = at + widths_[c] / 2, bottom = y + head();
      if (standing && !columns_[c].gap())
        svg_.upright(middle + 4, bottom - 4, lines[0]);
      else
        for (std::size_t i = 0; i < lines.size(); ++i)
          svg_.text(middle, bottom - 5 - 12 * static_cast<int>(lines.size() - 1 - i), lines[i],
                    "class=\"i o\"");
      at += widths_[c];
    }
    y += head();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (desc_.rank() > 1) {
        const std::vector<std::string> lines = heading(rows_[r]);
        int baseline = y + heights_[r] / 2 + 4 - (static_cast<int>(lines.size()) - 1) * 6;
        for (const std::string& line : lines) {
          svg_.text(x - 6, baseline, line, "class=\"i e\"");
          baseline += 12;
        }
      }
      at = x;
      for (std::size_t c = first; c < end; ++c) {
        draw_cell(panel, rows_[r], columns_[c], at, y, widths_[c], heights_[r]);
        at += widths_[c];
      }
      y += heights_[r];
    }
    return y;
  }

  void draw_cell(const BlockOrGap& panel, const BlockOrGap& row, const BlockOrGap& column, int x,
                 int y, int w, int h) {
    if (row.gap() || column.gap()) {
      svg_.rectangle(x, y, w, h, gap_style);
    } else {
      const Index base = panel.lowest + row.lowest + column.lowest;
      const int bands = std::min(holders_.count(), 8);
      for (int b = 0; b < bands; ++b) {
        const int from = w * b / bands, to = w * (b + 1) / bands;
        const Index k = Index{b} * holders_.count() / bands;
        svg_.rectangle(x + from, y, to - from, h,
                       "fill=\"" + owner_color(holders_.process(base, static_cast<int>(k))) + "\"");
      }
      if (!desc_.sharding.partial.empty()) svg_.rectangle(x, y, w, h, "fill=\"url(#open)\"");
      svg_.rectangle(x, y, w, h, "fill=\"none\" stroke=\"#333\"");
    }
    centered(label(panel, row, column), x + w / 2, y + h / 2);
  }

  TensorDesc desc_;
  MeshShape mesh_;
  AxisNames names_;
  Holders holders_;
  Index blocks_ = 0;
  std::vector<BlockOrGap> panels_, rows_, columns_;
  std::vector<int> widths_, heights_;
  SvgText svg_;
  int right_ = 0;
};
}  // namespace detail

/// Returns a drawing of which process owns which block of a tensor `desc` on a mesh. Long
/// dimensions are abbreviated as in `visualize`; dashed cells and panels stand for the blocks left
/// out.
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
