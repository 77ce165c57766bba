# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -D ROOT=<repository> -D WORK=<folder> -D PYTHON=<python3> -P controls.cmake: the checks of headers, comments and figures find faults
# that are planted in a copy of the repository.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK}")
file(COPY "${ROOT}/include" "${ROOT}/docs" "${ROOT}/benchmarks" "${ROOT}/README.md" DESTINATION "${WORK}")
# finds(SAYS FILE TEXT COMMAND…): with TEXT at the end of the copy's FILE the command fails, and says SAYS.
function(finds says file text)
  file(APPEND "${WORK}/${file}" "${text}")
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  file(COPY_FILE "${ROOT}/${file}" "${WORK}/${file}")
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  string(FIND "${said}" "${says}" at)
  if(NOT failed OR at EQUAL -1)
    message(SEND_ERROR "A fault that is planted in ${file} is not found; the check says: ${said}")
  endif()
endfunction()

set(rooms "${CMAKE_COMMAND}" -D "ROOT=${WORK}" -P "${ROOT}/cmake/checks/rooms.cmake")
finds("room 'plan' may not know room 'op'" include/tessera/plan/plan.hpp "#include <tessera/op/product/einsum.hpp>\n" ${rooms})
finds("'plan/work' may not know 'plan/op/rows'" include/tessera/plan/work/contraction.hpp "#include <tessera/plan/op/rows/scan.hpp>\n" ${rooms})
finds("'kernel/convolve' may not know 'kernel/sort'" include/tessera/kernel/convolve/convolve.hpp "#include <tessera/kernel/sort/sort.hpp>\n" ${rooms})
finds("a detail of 'comm/mpi' is for the headers of that folder" include/tessera/comm/dry.hpp
  "#include <tessera/comm/mpi/detail/ending.hpp>\n" ${rooms})
if(PYTHON)
  set(docstrings "${PYTHON}" "${ROOT}/cmake/docs/docstrings.py" "${WORK}")
  set(silent "\nnamespace tessera {\n/// Returns two, as plan_two does.\nint two();\n}  // namespace tessera\n")
  foreach(says IN ITEMS "two does not say what it throws" "two does not say what it communicates" "two speaks of plan_two")
    finds("${says}" include/tessera/op/product/dot.hpp "${silent}" ${docstrings})
  endforeach()
  finds("a table under \"Planted\" without" docs/figures.md "\n## Planted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    "${PYTHON}" "${ROOT}/cmake/docs/figures.py" "${WORK}" --check)
  finds("which has no such figure" docs/figures.md "\n0.5 <!-- figure: map.1 no such case/by hand -->\n"
    "${PYTHON}" "${ROOT}/cmake/docs/figures.py" "${WORK}" --check)
  finds("figures under \"Planted\" without" docs/figures.md "\n## Planted\n\nIt takes 3 ms.\n"
    "${PYTHON}" "${ROOT}/cmake/docs/figures.py" "${WORK}" --check)
endif()
file(REMOVE_RECURSE "${WORK}")
