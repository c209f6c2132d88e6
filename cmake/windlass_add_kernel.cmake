# SPDX-License-Identifier: Apache-2.0
# windlass_add_kernel(NAME name SOURCES file... TARGETS target...)
#
# Builds a library of kernels for each of the targets, lib<name>-<target>.so in the current build folder, by the CMake
# target <name>-<target>; <name> builds them all. org.windlass.KernelLibrary.load reads one.

set(WINDLASS_KNOWN_TARGETS sim a2a3sim a5sim a2a3 a5 cuda)

function(windlass_add_kernel)
  cmake_parse_arguments(PARSE_ARGV 0 kernel "" "NAME" "SOURCES;TARGETS")
  if(kernel_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "windlass_add_kernel: ${kernel_UNPARSED_ARGUMENTS} is no argument of it; "
      "it takes NAME, SOURCES and TARGETS")
  endif()
  foreach(needed NAME SOURCES TARGETS)
    if(NOT kernel_${needed})
      message(FATAL_ERROR "windlass_add_kernel(${kernel_NAME}): ${needed} is missing; "
        "it takes NAME, SOURCES and TARGETS")
    endif()
  endforeach()
  foreach(target IN LISTS kernel_TARGETS)
    if(NOT target IN_LIST WINDLASS_KNOWN_TARGETS)
      list(JOIN WINDLASS_KNOWN_TARGETS ", " known)
      message(FATAL_ERROR "windlass_add_kernel(${kernel_NAME}): there is no target ${target}; known are ${known}")
    endif()
    if(NOT TARGET windlass::kernels_${target})
      set(available "")
      foreach(other IN LISTS WINDLASS_KNOWN_TARGETS)
        if(TARGET windlass::kernels_${other})
          list(APPEND available ${other})
        endif()
      endforeach()
      list(JOIN available ", " available)
      message(FATAL_ERROR "windlass_add_kernel(${kernel_NAME}): this Windlass has no kernels of target ${target}; "
        "it has ${available}")
    endif()
  endforeach()

  add_custom_target(${kernel_NAME} ALL)
  foreach(target IN LISTS kernel_TARGETS)
    set(library ${kernel_NAME}-${target})
    add_library(${library} MODULE ${kernel_SOURCES})
    target_link_libraries(${library} PRIVATE windlass::kernels_${target})
    # A project that names no build type means one that runs fast.
    target_compile_options(${library} PRIVATE $<$<CONFIG:>:-O2>)
    set_target_properties(${library} PROPERTIES
      CXX_EXTENSIONS OFF
      CXX_VISIBILITY_PRESET hidden
      VISIBILITY_INLINES_HIDDEN ON
      PREFIX lib)
    add_dependencies(${kernel_NAME} ${library})
  endforeach()
endfunction()
