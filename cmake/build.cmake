# SPDX-License-Identifier: Apache-2.0
# Configures the build folder FOLDER by PRESET and builds TARGET in it, while no other run of this script does so in that
# folder. Maven runs it twice: beside the compilation of Java, and to wait for the result.
#
# usage: cmake -DFOLDER=FOLDER -DPRESET=NAME -DTARGET=NAME -P build.cmake -- OPTION...   options configure the folder
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/arguments.cmake")
file(MAKE_DIRECTORY "${FOLDER}")
file(LOCK "${FOLDER}" DIRECTORY GUARD PROCESS TIMEOUT 1800)
execute_process(COMMAND "${CMAKE_COMMAND}" --preset "${PRESET}" -B "${FOLDER}" ${arguments} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${FOLDER}" --target "${TARGET}" COMMAND_ERROR_IS_FATAL ANY)
