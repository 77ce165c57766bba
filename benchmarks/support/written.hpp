// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A table in a file for cmake/docs/figures.py, which shows its rows as they are; programs that
/// Google Benchmark measures write theirs by its flags (mpi_benchmark.hpp).
///
///     WrittenTable table;
///     table.add({{"network", "fat tree"}, {"SMPI, us", 32.06}});
///     table.write("times.json", "times fat_tree", "simulated by SimGrid");
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/text/json_text.hpp>

#include "support/processor.hpp"

namespace tessera_bench {

/// Returns the compiler's name and version.
inline std::string compiler() {
#ifdef __clang__
  return __VERSION__;
#else
  return std::string("g++ ") + __VERSION__;
#endif
}

/// Returns where a result is from, as JSON: when, which commit, on which machine and by which
/// command, and `more`; "made" there says how numbers came to be that no clock has measured, in
/// place of the machine.
inline std::string written_context(
    const std::string& command, const std::vector<std::pair<std::string, std::string>>& more = {}) {
  char date[32];
  const std::time_t time = std::time(nullptr);
  std::strftime(date, sizeof date, "%FT%TZ", std::gmtime(&time));
  std::ostringstream out;
  out << "{\"date\": \"" << date << "\", \"commit\": \"" << TESSERA_BENCH_COMMIT << "\", ";
  for (const auto& [name, text] : more)
    out << tessera::detail::json_text(name) << ": " << tessera::detail::json_text(text) << ", ";
  if (more.empty() || more.front().first != "made") {
    double load[3] = {};
    (void)getloadavg(load, 3);
    out << "\"processor\": " << tessera::detail::json_text(processor())
        << ", \"num_cpus\": " << std::thread::hardware_concurrency() << ", \"load_avg\": ["
        << load[0] << ", " << load[1] << ", " << load[2]
        << "], \"compiler\": " << tessera::detail::json_text(compiler()) << ", ";
  }
  out << "\"command\": " << tessera::detail::json_text(command) << "}";
  return out.str();
}

/// Writes the text of a file, or throws an Error that names it.
inline void write_text(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) throw tessera::FileError(file + " cannot be written; name a folder that there is");
}

class WrittenTable {
 public:
  using Fact = std::variant<std::string, double>;
  using Row = std::vector<std::pair<std::string, Fact>>;  ///< columns and what stands in them

  void add(Row row) { rows_.push_back(std::move(row)); }

  /// Writes the rows with their context; `made`: how, where no clock has measured them.
  void write(const std::string& file, const std::string& command,
             const std::string& made = "") const {
    std::vector<std::pair<std::string, std::string>> more;
    if (!made.empty()) more.emplace_back("made", made);
    std::ostringstream out;
    out << std::setprecision(7) << "{\"context\": " << written_context(command, more)
        << ",\n\"rows\": [";
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const char* between = i == 0 ? "\n {" : ",\n {";
      for (const auto& [column, fact] : rows_[i]) {
        out << between << tessera::detail::json_text(column) << ": ";
        if (const auto* text = std::get_if<std::string>(&fact))
          out << tessera::detail::json_text(*text);
        else if (const double number = std::get<double>(fact); std::isfinite(number))
          out << number;
        else
          out << "\"\"";  // which JSON has no number for
        between = ", ";
      }
      out << "}";
    }
    out << "\n]}\n";
    write_text(file, out.str());
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace tessera_bench
