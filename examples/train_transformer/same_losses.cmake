# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs the trainer twice on one mesh and twice in stages, the second time each from the file that the first run in stages has written, and
# compares the losses of all steps, and those of text that is held out:
#
#   cmake -D TRAINER=... -D "ONE=mpiexec;-n;1" -D "TWO=mpiexec;-n;2" -D "FOUR=mpiexec;-n;4" -D FOLDER=... -P same_losses.cmake
#
# Law: sums of floats in another order change a loss of these nine steps by less than a ten-thousandth.
cmake_policy(VERSION 3.25)

set(sizes --sample 5 --context 17 --embed 24 --heads 3 --hidden 20 --experts 3 --layers 3 --batch 5 --dropout 0.1 --measure 3)

function(train name processes) # and flags
  execute_process(COMMAND ${${processes}} "${TRAINER}" ${sizes} --log "${FOLDER}/${name}" ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  message("${text}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "the trainer fails: ${status}")
  endif()
endfunction()

# Compares column `column` of two logs; numbers have six decimals, and are compared as whole numbers.
function(compare a b column)
  file(STRINGS "${FOLDER}/${a}.csv" as)
  file(STRINGS "${FOLDER}/${b}.csv" bs)
  list(LENGTH as steps)
  list(LENGTH bs others)
  if(NOT steps EQUAL others OR steps LESS 4)
    message(FATAL_ERROR "${a} has ${steps} lines and ${b} ${others}")
  endif()
  foreach(left right IN ZIP_LISTS as bs)
    foreach(side IN ITEMS left right)
      string(REPLACE "," ";" words "${${side}};")
      list(GET words ${column} ${side})
      if(${side} MATCHES "^[0-9]+[.][0-9]+$")
        string(REPLACE "." "" ${side} "${${side}}")
        string(REGEX MATCH "[1-9][0-9]*$" ${side} "${${side}}") # a zero in front would make it octal
      endif()
    endforeach()
    if(NOT left MATCHES "^[0-9]+$" OR NOT right MATCHES "^[0-9]+$")
      if(left STREQUAL right)
        continue() # the heading, and held-out losses that were not measured
      endif()
      message(FATAL_ERROR "a loss is ${left} in ${a} and ${right} in ${b}")
    endif()
    math(EXPR difference "${left} - ${right}")
    if(difference GREATER 100 OR difference LESS -100)
      message(FATAL_ERROR "a loss is ${left} millionths in ${a} and ${right} in ${b}; less than 100 may be between them")
    endif()
  endforeach()
endfunction()

file(MAKE_DIRECTORY "${FOLDER}")
set(saved "${FOLDER}/staged.safetensors")
train(whole TWO --mesh 2x1 --steps 6)
train(staged FOUR --mesh 1x2 --split tensors --stages 2 --steps 6 --save "${saved}" --trace "${FOLDER}/staged.json")
train(whole_on TWO --mesh 1x2 --split shards --steps 9 --resume "${saved}")
train(staged_on TWO --mesh 1x1 --stages 2 --schedule zero-bubble --micro-batches 3 --steps 9 --resume "${saved}")
train(one_on ONE --mesh 1x1 --stages 2 --schedule zero-bubble-v --steps 9 --resume "${saved}")
foreach(column IN ITEMS 2 3)
  compare(whole staged ${column})
  compare(whole_on staged_on ${column})
  compare(whole_on one_on ${column})
endforeach()
file(READ "${FOLDER}/staged.json" trace)
foreach(word IN ITEMS "stage 1, part 1" "\"F4\"" "\"B4\"" "process 3 (stage 1, data 0, model 1)")
  string(FIND "${trace}" "${word}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "the trace says nothing of ${word}")
  endif()
endforeach()
