# SPDX-License-Identifier: Apache-2.0
# Copies the libraries beside libwindlass.so that TARGETS (sim, checked, tested or all) names from the build folder FROM to the folder TO,
# and removes others there, which an earlier build may have left. A library that this build cannot have is left out.
#
# usage: cmake -DFROM=FOLDER -DTO=FOLDER -DTARGETS=NAME -P stage_libraries.cmake
cmake_minimum_required(VERSION 3.25)
set(targets_of_sim "")
set(targets_of_checked ${targets_of_sim} ucx a2a3sim a5sim)
set(targets_of_all ${targets_of_checked} cuda)
set(targets_of_tested ${targets_of_all})
if(NOT DEFINED targets_of_${TARGETS})
  message(FATAL_ERROR "windlass.targets is '${TARGETS}': name sim, checked, tested or all")
endif()
foreach(target IN LISTS targets_of_all)
  set(library "libwindlass-${target}.so")
  if(target IN_LIST targets_of_${TARGETS} AND EXISTS "${FROM}/${library}")
    file(COPY "${FROM}/${library}" DESTINATION "${TO}")
  else()
    file(REMOVE "${TO}/${library}")
  endif()
endforeach()
