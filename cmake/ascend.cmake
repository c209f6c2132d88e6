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

# How the toolkit compiles for the vector cores of each, and links what it compiled.
set(bisheng_common -fPIC -xcce -O2 -std=c++17 -DWINDLASS_ON_CORES)
set(bisheng_a2a3 --cce-aicore-arch=dav-c220-vec -DMEMORY_BASE -DWINDLASS_TARGET_A2A3)
set(bisheng_a5 --cce-aicore-arch=dav-c310-vec -DREGISTER_BASE -DWINDLASS_TARGET_A5 -Xhost-start -Xhost-end
  -mllvm -cce-aicore-stack-size=0x8000 -mllvm -cce-aicore-function-stack-size=0x8000
  -mllvm -cce-aicore-addr-transform -mllvm -cce-aicore-dcci-insert-for-scalar=false)
set(bisheng_link_a2a3 --cce-fatobj-link)
set(bisheng_link_a5 --cce-fatobj-link)

# libwindlass-TARGET.so: the host side, as windlass_library() has it, and the kernels as the toolkit compiles them.
function(windlass_ascend_library target)
  set(name "windlass-${target}")
  set(launcher "${CMAKE_BINARY_DIR}/launcher-${target}.o")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/kernels/*.h" "${PROJECT_SOURCE_DIR}/native/isa/*" "${PROJECT_SOURCE_DIR}/native/include/*")
  add_custom_command(OUTPUT "${launcher}"
    COMMAND "${WINDLASS_BISHENG}" ${bisheng_common} ${bisheng_${target}}
      "-I$ENV{PTO_ISA_ROOT}/include" "-I${PROJECT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/native/include"
      -c "${PROJECT_SOURCE_DIR}/kernels/launcher.cpp" -o "${launcher}"
    DEPENDS "${PROJECT_SOURCE_DIR}/kernels/launcher.cpp" ${sources}
    COMMENT "Compiling the kernels of ${target} by ${WINDLASS_BISHENG}"
    VERBATIM)
  add_custom_target(${name}_launcher DEPENDS "${launcher}")
  add_library(${name}_kernels OBJECT "${PROJECT_SOURCE_DIR}/kernels/entry.cpp")
  target_link_libraries(${name}_kernels PUBLIC windlass_options)
  string(TOUPPER "${target}" upper)
  target_compile_definitions(${name}_kernels PRIVATE "WINDLASS_TARGET_${upper}")
  set(library "${CMAKE_BINARY_DIR}/lib${name}.so")
  add_custom_command(OUTPUT "${library}"
    COMMAND "${WINDLASS_BISHENG}" -shared -fPIC ${bisheng_link_${target}} "${launcher}"
      "$<TARGET_OBJECTS:windlass_objects>" "$<TARGET_OBJECTS:windlass_seldom_objects>"
      "$<TARGET_OBJECTS:windlass_sim_objects>" "$<TARGET_OBJECTS:${name}_kernels>"
      "-Wl,--version-script=${export_map}" -Wl,-soname,libwindlass.so -Wl,-z,noexecstack
      "-L$ENV{ASCEND_HOME_PATH}/lib64" -lruntime -lpthread -o "${library}"
    DEPENDS "${launcher}" windlass_objects windlass_seldom_objects windlass_sim_objects ${name}_kernels
      "$<TARGET_OBJECTS:windlass_objects>" "$<TARGET_OBJECTS:windlass_seldom_objects>"
      "$<TARGET_OBJECTS:windlass_sim_objects>" "$<TARGET_OBJECTS:${name}_kernels>" "${export_map}"
    COMMENT "Linking lib${name}.so"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${library}")
  add_dependencies(${name} ${name}_launcher)
endfunction()
