# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs under SimGrid's SMPI: platforms, and the words that start a program on one.

find_program(TESSERA_SMPIRUN NAMES smpirun)
if(NOT TESSERA_SMPIRUN)
  message(FATAL_ERROR "TESSERA_MPI is 'simgrid', and smpirun was not found; install it (Debian's libsimgrid-dev), or name it in TESSERA_SMPIRUN.")
endif()
mark_as_advanced(TESSERA_SMPIRUN)

# The network alone is simulated, by fluid flows: no time for computing, no factors by a message's size, no traffic by acknowledgements.
# Collectives are those that plans are priced for (program/network/rounds.hpp).
set(TESSERA_SMPI_FLAGS --cfg=smpi/simulate-computation:no --cfg=network/crosstraffic:0 "--cfg=smpi/bw-factor:0:1.0$<SEMICOLON>65472:1.0"
  "--cfg=smpi/lat-factor:0:1.0$<SEMICOLON>65472:1.0" --cfg=network/weight-S:0.0 --cfg=network/TCP-gamma:0
  --cfg=smpi/allreduce:rab_rdb --cfg=smpi/allgather:rdb --cfg=smpi/allgatherv:mpich_rdb --cfg=smpi/alltoall:pair
  --cfg=smpi/alltoallv:pair --cfg=smpi/reduce_scatter:ompi_basic_recursivehalving --cfg=smpi/bcast:binomial_tree
  --log=root.thres:warning)

# tessera_platform(RESULT SHAPE PROCESSES): the words that start a program on a platform; PROCESSES is a multiple of 16.
#   fat_tree    8 hosts a switch, full bisection      thin_tree  the same, a quarter of the links above the switches
#   torus       4 x 4 x n                             nodes      8 processes a host, and a switch that is never full
function(tessera_platform result shape processes)
  set(hosts ${processes})
  math(EXPR eighth "${processes} / 8")
  math(EXPR sixteenth "${processes} / 16")
  set(each 1)
  if(shape STREQUAL "fat_tree")
    set(about "A fat tree")
    set(attributes "topology=\"FAT_TREE\" topo_parameters=\"2;8,${eighth};1,8;1,1\"")
  elseif(shape STREQUAL "thin_tree")
    set(about "A tree with a quarter of a fat tree's links above its switches")
    set(attributes "topology=\"FAT_TREE\" topo_parameters=\"2;8,${eighth};1,2;1,1\"")
  elseif(shape STREQUAL "torus")
    set(about "A torus")
    set(attributes "topology=\"TORUS\" topo_parameters=\"4,4,${sixteenth}\"")
  elseif(shape STREQUAL "nodes")
    set(about "Hosts of 8 processes, which have 50 GB/s among themselves, at a switch")
    set(attributes "loopback_bw=\"50GBps\" loopback_lat=\"100ns\"")
    set(hosts ${eighth})
    set(each 8)
  else()
    message(FATAL_ERROR "A platform '${shape}' is asked for; there are fat_tree, thin_tree, torus and nodes.")
  endif()
  math(EXPR last "${hosts} - 1")
  set(platform "${CMAKE_CURRENT_BINARY_DIR}/${shape}_${processes}")
  set(shape "${attributes}")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/simgrid/platform.xml.in" "${platform}.xml" @ONLY)
  set(lines "")
  foreach(host RANGE ${last})
    foreach(process RANGE 1 ${each})
      string(APPEND lines "host-${host}\n")
    endforeach()
  endforeach()
  file(WRITE "${platform}.hosts" "${lines}")
  set(${result} "${TESSERA_SMPIRUN}" -np ${processes} -platform "${platform}.xml" -hostfile "${platform}.hosts" ${TESSERA_SMPI_FLAGS} PARENT_SCOPE)
endfunction()
