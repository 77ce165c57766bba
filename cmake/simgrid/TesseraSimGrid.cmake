# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Programs under SimGrid's SMPI: the words that start a program on a platform.

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

# tessera_smpirun(RESULT NAME PROCESSES): the words that start a program on the network that NAME.xml and NAME.hosts tell, as
# Network::simgrid_platform and simgrid_hosts write them.
function(tessera_smpirun result name processes)
  set(${result} "${TESSERA_SMPIRUN}" -np ${processes} -platform "${name}.xml" -hostfile "${name}.hosts" ${TESSERA_SMPI_FLAGS} PARENT_SCOPE)
endfunction()
