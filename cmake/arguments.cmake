# SPDX-License-Identifier: Apache-2.0
# For scripts that `cmake -P` runs: sets `arguments` to what follows -- on the command line.
set(arguments "")
set(isAfter FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(isAfter)
    list(APPEND arguments "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(isAfter TRUE)
  endif()
endforeach()
