// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Compares a job's size in the environment of its processes, set by the launcher, with the size
/// that MPI reports. A program linked to one MPI but started by another's mpiexec becomes many
/// worlds of one process each, which all do the same work and overwrite each other's files.
///
///     if (const std::string fault = wrong_launcher(); !fault.empty()) throw UsageError(fault);
#include <mpi.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace tessera::detail {

/// The variables in which a launcher tells a process the number of processes and its own number.
struct LauncherVariables {
  const char* size;  ///< nullptr: it does not tell
  const char* process;
  const char* name;
};
inline constexpr LauncherVariables launcher_variables[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpiexec"},
    {"PMI_SIZE", "PMI_RANK", "MPICH's mpiexec, or another that speaks PMI,"},
    {nullptr, "PMIX_RANK", "a launcher that speaks PMIx"}};

/// A launcher's statement that MPI contradicts.
struct WrongLauncher {
  std::string fault;  ///< empty: nothing
  int process = 0;    ///< this process's number, from the launcher
};

/// Returns a variable as a number; 0 when it is unset or no number.
inline int launcher_number(const char* name) {
  const char* const text = name == nullptr ? nullptr : std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

/// Returns the name and version of the MPI library that this program is linked to.
inline std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "another MPI";
  const std::string_view whole(text, static_cast<std::size_t>(length));
  std::string name;
  for (const char c : whole.substr(0, whole.find_first_of(",\n"))) {  // "MPICH Version:   4.0.2"
    const bool space = c == ' ' || c == '\t' || c == ':';
    if (!space || (!name.empty() && name.back() != ' ')) name += space ? ' ' : c;
  }
  return name;
}

/// For a world of one process: whether a launcher has started several. MPI must be initialized.
inline WrongLauncher wrong_launcher() {
  for (const LauncherVariables& said : launcher_variables) {
    const int size = launcher_number(said.size);
    const int process = launcher_number(said.process);
    if (size <= 1 && process <= 0) continue;
    const char* const variable = size > 1 ? said.size : said.process;
    const std::string value = std::getenv(variable);
    return {"this process is alone in its world, but " + std::string(variable) + " is " + value +
                ", as in a job of several: " + said.name +
                " has started a program that is linked to " + mpi_library() +
                ", and the two do not know each other; start it with the mpiexec of the MPI that "
                "it is linked to, or unset " +
                variable + " where programs of one process each are meant",
            process};
  }
  return {};
}

}  // namespace tessera::detail
