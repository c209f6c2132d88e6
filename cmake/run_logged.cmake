# SPDX-License-Identifier: Apache-2.0
# cmake -DLOG=FILE -P run_logged.cmake -- COMMAND...: what it prints goes to FILE, and is shown where it fails.
include("${CMAKE_CURRENT_LIST_DIR}/arguments.cmake")
execute_process(COMMAND ${arguments} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
file(WRITE "${LOG}" "${output}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${output}")
endif()
