# SPDX-License-Identifier: Apache-2.0
# The user's own Ascend toolkit, for the targets a2a3 and a5: its compiler under ASCEND_HOME_PATH, and the headers
# of the tile instructions under PTO_ISA_ROOT. Nothing of it is part of Windlass.
foreach(variable ASCEND_HOME_PATH PTO_ISA_ROOT)
  if("$ENV{${variable}}" STREQUAL "")
    message(FATAL_ERROR "the target ${WINDLASS_TARGET} takes the Ascend toolkit, and ${variable} is not set.")
  endif()
endforeach()
find_program(WINDLASS_BISHENG bisheng NO_DEFAULT_PATH
  PATHS "$ENV{ASCEND_HOME_PATH}" PATH_SUFFIXES bin compiler/ccec_compiler/bin)
if(NOT WINDLASS_BISHENG)
  message(FATAL_ERROR "the target ${WINDLASS_TARGET} takes the compiler bisheng, and $ENV{ASCEND_HOME_PATH} "
    "(ASCEND_HOME_PATH) has it neither in bin nor in compiler/ccec_compiler/bin.")
endif()
if(NOT EXISTS "$ENV{PTO_ISA_ROOT}/include/pto/pto-inst.hpp")
  message(FATAL_ERROR "the target ${WINDLASS_TARGET} takes the tile instructions, and $ENV{PTO_ISA_ROOT} "
    "(PTO_ISA_ROOT) has no include/pto/pto-inst.hpp.")
endif()
message(FATAL_ERROR "the toolkit for ${WINDLASS_TARGET} is here, and this version has no kernels for it yet.")
