# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# cmake -D ROOT=<repository> -P rooms.cmake: each header includes only what its room and its part of the room may include, and none has
# more than 400 lines or a word that the design has abolished.
cmake_minimum_required(VERSION 3.25)

# The table: the rooms that a room may include beside itself, and outside headers beside the standard library's.
set(base_rooms)
set(solve_rooms base)
set(mesh_rooms base)
set(spec_rooms base mesh)
set(plan_rooms base mesh spec)
set(kernel_rooms base)
set(program_rooms base solve mesh spec plan)
set(comm_rooms base mesh kernel)
set(tensor_rooms base mesh spec kernel comm)
set(run_rooms base mesh spec plan program kernel comm tensor)
set(op_rooms base mesh spec plan program kernel comm tensor run)
set(grad_rooms base mesh spec plan program kernel comm tensor run op)
set(nn_rooms base mesh spec plan program kernel comm tensor run op grad)
set(io_rooms base mesh spec plan program kernel comm tensor run op)
set(show_rooms base mesh spec plan program kernel comm tensor run op)

set(kernel_outside kokkos blas dnnl cuda simd)
set(comm_outside kokkos mpi system)
set(tensor_outside kokkos)
set(run_outside kokkos system)
set(op_outside kokkos system)
set(grad_outside kokkos)
set(nn_outside kokkos)
set(io_outside kokkos system)
set(show_outside kokkos fmt)

# Folders in a room are its parts. A header belongs to the part with the longest name that it lies in; x.hpp beside the folder x/ is a
# header of x, and one of x/detail/ too. A part may include what lies beside the folders of its room, itself, and the parts
# that its line names; room_parts are those that the headers beside the folders may include.
set(plan_parts check move region work)
set(plan_check_parts region)
set(plan_move_parts "")
set(plan_region_parts move)
set(plan_work_parts move region)
set(plan_step_parts check move region work)
set(plan_op_parts check move region work step)
set(program_parts "")
set(program_choice_parts "")
set(kernel_parts copy functions)
set(kernel_functions_parts "")
set(kernel_copy_parts "")
set(kernel_sort_parts copy)
set(kernel_convolve_parts copy)
set(comm_parts shared mpi)
set(comm_shared_parts "")
set(comm_loopback_parts "")
set(comm_mpi_parts shared)
set(op_parts "")
set(op_halo_parts "")
set(grad_parts adjoint derivatives)
set(grad_adjoint_parts derivatives)
set(grad_derivatives_parts "")
set(nn_parts "")
set(nn_optimizer_parts "")

# What does not keep to this yet: a header, and what it includes all the same. One that is mended leaves the list, and none is added.
set(exceptions
  "plan/move/merge_split.hpp plan/work/move_work.hpp"
  "plan/move/relocation.hpp plan/work/move_work.hpp"
  "plan/move/staged.hpp plan/work/move_work.hpp"
  "plan/region/region_work.hpp plan/work/move_work.hpp"
  "plan/typed_call.hpp plan/op/einsum.hpp"
  "plan/typed_call.hpp plan/op/reshard.hpp"
  "program/share.hpp program/choice/detail/read_copies.hpp"
  "kernel/detail/block_walk.hpp kernel/convolve/convolve_shape.hpp"
  "kernel/detail/registered.hpp kernel/convolve/convolve.hpp"
  "kernel/detail/registered.hpp kernel/sort/arrange.hpp"
  "kernel/detail/registered.hpp kernel/sort/merge.hpp"
  "kernel/detail/registered.hpp kernel/sort/sort.hpp"
  "comm/environment.hpp comm/mpi/detail/environment.hpp"
  "comm/run_main.hpp comm/mpi/detail/ending.hpp")

# The umbrella of the plan, and the version, must do without Kokkos and MPI; the umbrella of everything may name every room.
set(umbrella_plan_rooms base mesh spec plan program)
set(umbrella_version_rooms)
set(umbrella_rooms base mesh spec plan program kernel comm tensor run op grad nn io show)

set(outside_kokkos "^Kokkos_")
set(outside_mpi "^mpi\\.h$")
set(outside_blas "^cblas\\.h$")
set(outside_dnnl "dnnl")
set(outside_cuda "^(cub|cublas|cudnn|cuda)")
set(outside_simd "^emmintrin\\.h$")  # stores past the caches
set(outside_fmt "^fmt/")
set(outside_system "^(time|unistd|sched|pthread|dirent|fcntl|signal)\\.h$|^sys/")
set(worlds kokkos mpi blas dnnl cuda simd fmt system)

# What is promised is declared in namespace tessera. In these rooms only the listed headers promise anything (and the structs
# of plan/op/); all others are in tessera::detail, or in tessera::fn.
set(comm_promises check complaint dry environment ledger loopback/loopback mesh_core mesh_options mpi/transport products run_main
    shared/setting transport wait)
list(APPEND comm_promises detail/mesh_calls mpi/detail/environment mpi/detail/transport)  # which hold the bodies
set(kernel_promises fill_index lane map_several use_element)
set(plan_promises check/check_boxes check/shape_verdict check/verdict convolution deduce einsum equation kind loop operation plan
    plan_options process_classes product region/halo region/region_transfer region/shape region/window_settings sort text typed_call
    move/together work/contraction work/instruction work/instruction_list work/instructions
    work/loop_work work/memory)

set(wrong 0)
macro(reject why)
  message(SEND_ERROR "${header}:${number}: ${why}")
  math(EXPR wrong "${wrong} + 1")
endmacro()

# part_of(RESULT HEADER): the folder that a header belongs to, without detail/: "plan/move", or "plan" for those beside the folders.
function(part_of result header)
  string(REGEX REPLACE "/detail/.*$|\\.hpp$" "" folder "${header}")
  if(NOT IS_DIRECTORY "${ROOT}/include/tessera/${folder}")
    cmake_path(GET folder PARENT_PATH folder)
  endif()
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()
set(used)

file(GLOB_RECURSE headers RELATIVE "${ROOT}/include/tessera" "${ROOT}/include/tessera/*")
list(LENGTH headers count)
if(count EQUAL 0)
  message(FATAL_ERROR "There is no header under ${ROOT}/include/tessera.")
endif()
foreach(header IN LISTS headers)
  if(header MATCHES "^([a-z]+)/")
    set(room ${CMAKE_MATCH_1})
    if(NOT DEFINED ${room}_rooms AND NOT room STREQUAL "base")
      message(SEND_ERROR "${header}: '${room}' is no room; add it to the table in cmake/checks/rooms.cmake and in DESIGN.md.")
      continue()
    endif()
  elseif(header MATCHES "^(plan|version)\\.hpp$")
    set(room umbrella_${CMAKE_MATCH_1})
  else()
    set(room umbrella)
  endif()

  file(READ "${ROOT}/include/tessera/${header}" text)
  string(REGEX MATCHALL "\n" lines "${text}")
  list(LENGTH lines length)
  set(number ${length})
  if(length GREATER 400)
    reject("${length} lines; no header has more than 400: look for the second subject in it.")
  endif()
  if(room MATCHES "^(comm|kernel|plan)$" AND text MATCHES "\nnamespace tessera {" AND NOT header MATCHES "^plan/op/|^kernel/functions/")
    string(REGEX MATCH "/(.*)\\.hpp$" promise "${header}")
    if(NOT CMAKE_MATCH_1 IN_LIST ${room}_promises)
      reject("names of room '${room}' are in tessera::detail; a header with promised ones stands in cmake/checks/rooms.cmake.")
    endif()
  endif()
  # Operators are values (plan/operation.hpp): none has a key, a path, needs or a typed call of its own.
  foreach(word IN ITEMS "PlanKey" "run_operator" "needs_of_[a-z]" "StepWork" "take_regions" "communicate_joined" "merge_rounds" "compute_in_scratch" "HaloLink" "(struct|class) Communication " "struct [A-Za-z]*(Einsum|Reduce|Convolve|Take|Scatter|Slice|Halo|Window|Together|Between)Call ")
    if(text MATCHES "${word}")
      reject("'${CMAKE_MATCH_0}': operators are structs of plan/op/, and calls of them are made by detail::Typed and detail::run.")
    endif()
  endforeach()
  # The executor waits for the device where its list says so; the others copy to the host and back, and measure.
  if(text MATCHES "[^_a-z]fence\\(\\);" AND NOT room STREQUAL "plan"
     AND NOT header MATCHES "^(kernel/fence|kernel/host_copy|comm/staged_call|run/execute|run/detail/measure)\\.hpp$")
    reject("'fence()': an operator's list of instructions says where the executor waits (plan/work/instruction_list.hpp).")
  endif()
  string(REPLACE ";" "," text "${text}")  # a list has no use for C++'s semicolons
  string(REGEX REPLACE "[][]" "|" text "${text}")
  string(REPLACE "\n" ";" lines "${text}")
  set(number 0)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    if(NOT line MATCHES "^ *# *include *(.*)$")
      continue()
    endif()
    set(what "${CMAKE_MATCH_1}")
    if(NOT what MATCHES "^<([^>]+)>")
      reject("${what}: headers are included as <…>.")
      continue()
    endif()
    set(what "${CMAKE_MATCH_1}")
    if(what MATCHES "^tessera/([a-z]+)/")
      set(other ${CMAKE_MATCH_1})
      if(NOT other STREQUAL room AND NOT other IN_LIST ${room}_rooms)
        reject("<${what}>: room '${room}' may not know room '${other}'.")
      endif()
      string(REGEX REPLACE "^tessera/" "" included "${what}")
      part_of(own "${header}")
      part_of(theirs "${included}")
      string(REPLACE "/" "_" list "${own}_parts")
      if(NOT room MATCHES "^umbrella" AND own MATCHES "/" AND NOT DEFINED ${list})
        reject("'${own}' is no part of room '${room}'; add it to the table in cmake/checks/rooms.cmake.")
      endif()
      string(REGEX REPLACE "^${room}/" "" part "${theirs}")
      set(why)
      if(other STREQUAL room AND theirs MATCHES "/" AND NOT theirs STREQUAL own AND NOT part IN_LIST ${list})
        set(why "<${what}>: '${own}' may not know '${theirs}'; the table in cmake/checks/rooms.cmake says which parts it may.")
      elseif(included MATCHES "/detail/" AND NOT "${own}/" MATCHES "^${theirs}/")
        set(why "<${what}>: a detail of '${theirs}' is for the headers of that folder.")
      endif()
      if(why)
        if("${header} ${included}" IN_LIST exceptions)
          list(APPEND used "${header} ${included}")
        else()
          reject("${why}")
        endif()
      endif()
      if(NOT EXISTS "${ROOT}/include/${what}")
        reject("<${what}> does not exist.")
      endif()
    elseif(what MATCHES "^tessera/")
      if(NOT room MATCHES "^umbrella" AND NOT what STREQUAL "tessera/version.hpp")
        reject("<${what}>: a room includes what it uses, not an umbrella.")
      endif()
    elseif(what MATCHES "^[a-z0-9_]+$")
      # the standard library
    else()
      set(known FALSE)
      foreach(world IN LISTS worlds)
        if(what MATCHES "${outside_${world}}")
          set(known TRUE)
          if(NOT world IN_LIST ${room}_outside)
            reject("<${what}>: room '${room}' may not include from '${world}'.")
          endif()
          break()
        endif()
      endforeach()
      if(NOT known)
        reject("<${what}>: cmake/checks/rooms.cmake does not know it; it says which room may include what.")
      endif()
    endif()
  endforeach()
endforeach()
list(REMOVE_ITEM exceptions ${used})
foreach(exception IN LISTS exceptions)
  message(SEND_ERROR "'${exception}' is no exception any more; take it out of the list in cmake/checks/rooms.cmake.")
  math(EXPR wrong "${wrong} + 1")
endforeach()
if(wrong EQUAL 0)
  message(STATUS "${count} headers keep to their rooms")
endif()
