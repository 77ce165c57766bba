# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the umbrella header, the feed-forward layer and one more product make a compiler instantiate, against budgets.
# Counted are the classes and functions that clang instantiates: one number for one clang, standard library and Kokkos.
#   cmake -D CLANG=… -D FLAGS=file -D SOURCES=folder -D OUT=folder -P compile_budget.cmake
# To see which templates they are: clang++ … -ftime-trace -ftime-trace-granularity=0, events InstantiateClass and -Function.

set(budget_umbrella 53300)    # tessera.hpp over Kokkos_Core.hpp and mpi.h; mostly the standard library's containers
set(budget_feed_forward 450)  # the README's layer over the umbrella header
set(budget_ten_products 150)  # ten more products over the layer

set(expression "\"name\":\"Instantiate(Class|Function)\",\"args\":{\"detail\":\"[A-Za-z0-9_:]*")
function(count_instantiations name)
  set(folder "${OUT}/compile_cost/${name}")  # clang writes its trace into the folder where it runs
  file(REMOVE_RECURSE "${folder}")
  file(MAKE_DIRECTORY "${folder}")
  execute_process(COMMAND "${CLANG}" -std=c++20 -fopenmp -w -fsyntax-only -ftime-trace -ftime-trace-granularity=0 "@${FLAGS}" "${SOURCES}/${name}.cpp"
    WORKING_DIRECTORY "${folder}" RESULT_VARIABLE failed ERROR_VARIABLE said)
  if(failed)
    message(FATAL_ERROR "${SOURCES}/${name}.cpp does not compile:\n${said}")
  endif()
  file(GLOB traces "${folder}/*.json" "${folder}/.json")
  list(LENGTH traces found)
  if(NOT found EQUAL 1)
    message(FATAL_ERROR "clang left ${found} traces in ${folder}, not 1")
  endif()
  file(READ "${traces}" trace)
  string(REGEX MATCHALL "${expression}" events "${trace}")
  list(LENGTH events count)
  set(count_${name} ${count} PARENT_SCOPE)
  list(TRANSFORM events REPLACE ".*:\"" "")
  set(events_${name} "${events}" PARENT_SCOPE)
endfunction()

foreach(name IN ITEMS alone umbrella feed_forward ten_products)
  count_instantiations(${name})
endforeach()
if(count_alone LESS 1000)
  message(FATAL_ERROR "only ${count_alone} instantiations were counted in Kokkos and MPI: the check does not see them")
endif()
set(over)
set(base alone)
foreach(name IN ITEMS umbrella feed_forward ten_products)
  math(EXPR more "${count_${name}} - ${count_${base}}")
  message(STATUS "${name}: ${more} instantiations over ${base}, of ${budget_${name}}")
  if(more LESS 1)
    message(FATAL_ERROR "${name} instantiates no more than ${base}: the check does not see it")
  endif()
  if(more GREATER budget_${name})
    # The templates of Tessera that are instantiated more often than in the base.
    set(mine ${events_${name}})
    list(FILTER mine INCLUDE REGEX "^tessera::")
    set(names ${mine})
    list(REMOVE_DUPLICATES names)
    set(table)
    foreach(template IN LISTS names)
      set(here ${mine})
      set(there ${events_${base}})
      list(FILTER here INCLUDE REGEX "^${template}$")
      list(FILTER there INCLUDE REGEX "^${template}$")
      list(LENGTH here here)
      list(LENGTH there there)
      math(EXPR difference "${here} - ${there}")
      if(difference GREATER 4)
        string(APPEND table "\n    ${difference}  ${template}")
      endif()
    endforeach()
    string(APPEND over "\n  ${name}: ${more} instantiations over ${base}, the budget is ${budget_${name}}; most of Tessera's own:${table}")
  endif()
  set(base ${name})
endforeach()
if(over)
  message(FATAL_ERROR "compiling has become dearer than its budget:${over}\n  Make templates shallower or move code beneath the erased operators; the budgets stand in cmake/checks/compile_budget.cmake.")
endif()
