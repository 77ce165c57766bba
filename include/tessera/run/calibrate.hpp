// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Measures the machine that plans are priced for: once, on process 0, with the same numbers on
/// every process.
///
///     const Machine machine = calibrate(mesh);
///     auto tuned = make_mesh<Grid>(env.world(), mesh.sizes(), MeshOptions{.machine = machine});
///     std::string libraries = explain_products(mesh);      // which library multiplies what
///     save(machine, "machine.txt");   Machine again = load_machine("machine.txt");
///
/// Laws: the result is the same on all processes; load_machine returns the machine that save wrote.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/base/compiled.hpp>
#include <tessera/base/text/utf8.hpp>
#include <tessera/tensor/process_mesh.hpp>

namespace tessera {
namespace detail {
/// A template, so that it is compiled where it is used.
template <class = void> struct Measurement {
  static Machine of(const std::shared_ptr<MeshCore>& core, Where where);
};
}  // namespace detail

/// Returns the prices that process 0 measures for products, copies and exchanges, and how much of
/// an exchange hides behind a product; where the mesh's own machine has processes_per_node,
/// messages within nodes and between them are measured separately. Kinds of messages that do not
/// occur on the mesh keep their default prices. Takes about a tenth of a second. Communication:
/// about 20 MiB of all-gathers, 70 MiB around a ring. Collective over the mesh. Throws UsageError
/// on a dry mesh, or a fake one.
template <class M> Machine calibrate(const ProcessMesh<M>& mesh, Where where = Where::here()) {
  return detail::Measurement<>::of(mesh.core(), where);
}

/// Returns which library makes which class of products on this mesh (comm/products.hpp), in lines.
/// Communication: none.
template <class M> std::string explain_products(const ProcessMesh<M>& mesh) {
  return "products: " + std::string(name_of(mesh.core()->options().products)) + '\n' +
         to_string(mesh.core()->products());
}

/// Writes a machine as lines of "name number". Throws UsageError when the file cannot be written.
inline void save(const Machine& machine, const std::string& path, Where where = Where::here()) {
  std::ofstream file(path);
  for (const auto& [name, field] : detail::machine_fields)
    file << name << ' ' << machine.*field << '\n';
  file.flush();
  if (!file)
    throw UsageError("the machine cannot be written to " + path +
                         "; name a file in a folder that can be written",
                     where);
}

/// Reads what save wrote, empty lines apart. Throws UsageError when the file is missing, lacks a
/// number or has one twice, or a line is not one of its lines.
inline Machine load_machine(const std::string& path, Where where = Where::here()) {
  std::ifstream file(path);
  if (!file)
    throw UsageError(
        "there is no machine to read in " + path + "; write one with save(calibrate(mesh), path)",
        where);
  Machine machine;
  std::array<bool, detail::machine_fields.size()> known{};
  const auto refuse = [&](const std::string& fault) {
    throw UsageError(
        path + fault + "; write it again with save(calibrate(mesh), path), or mend the lines",
        where);
  };
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, more;
    std::int64_t number = 0;
    if (!(words >> name)) continue;
    const auto field =
        std::find_if(detail::machine_fields.begin(), detail::machine_fields.end(),
                     [&](const auto& one) { return one.first == std::string_view(name); });
    const std::string said = " has the line \"" + detail::printable(line) + "\", ";
    if (field == detail::machine_fields.end())
      refuse(said + "and a machine has no number of that name");
    if (!(words >> number) || words >> more || number < detail::least_value(field->second))
      refuse(said + "and it takes one whole number of at least " +
             std::to_string(detail::least_value(field->second)));
    bool& found = known[static_cast<std::size_t>(field - detail::machine_fields.begin())];
    if (std::exchange(found, true)) refuse(said + "and that number twice");
    machine.*field->second = number;
  }
  std::string missing;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (!known[i])
      missing += (missing.empty() ? "" : ", ") + std::string(detail::machine_fields[i].first);
  if (!missing.empty()) refuse(" lacks " + missing);
  return machine;
}

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/run/detail/measure.hpp>
#endif
