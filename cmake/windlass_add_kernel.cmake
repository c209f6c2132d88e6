# SPDX-License-Identifier: Apache-2.0
# windlass_add_kernel(NAME name SOURCES file... TARGETS target...)
#
# Builds a library of kernels for each of the targets, lib<name>-<target>.so in the current build folder, by the CMake
# target <name>-<target>; <name> builds them all. org.windlass.kernel.KernelLibrary.load reads one. The target cuda takes one source, and
# nvcc, which compiles it for GPUs beside the host's compiler.

include("${CMAKE_CURRENT_LIST_DIR}/windlass_nvcc.cmake")
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

  if(cuda IN_LIST kernel_TARGETS)
    if(NOT WINDLASS_NVCC)
      message(FATAL_ERROR "windlass_add_kernel(${kernel_NAME}): target cuda takes nvcc, of the CUDA toolkit: it is neither "
        "on the PATH nor under CUDA_HOME, CUDA_PATH or /usr/local/cuda; -DWINDLASS_NVCC=FILE names it")
    endif()
    list(LENGTH kernel_SOURCES count)
    if(NOT count EQUAL 1)
      message(FATAL_ERROR "windlass_add_kernel(${kernel_NAME}): target cuda takes one source, and this has ${count}: "
        "have one include the others")
    endif()
  endif()

  add_custom_target(${kernel_NAME} ALL)
  foreach(target IN LISTS kernel_TARGETS)
    set(library ${kernel_NAME}-${target})
    if(target STREQUAL cuda)
      windlass_compile_for_gpus(image ${library} "${kernel_SOURCES}")
      windlass_kernel_module(${library} ${target} ${kernel_SOURCES} "${image}")
    else()
      windlass_kernel_module(${library} ${target} ${kernel_SOURCES})
    endif()
    add_dependencies(${kernel_NAME} ${library})
  endforeach()
endfunction()

# One library of kernels, of those sources.
function(windlass_kernel_module library target)
  add_library(${library} MODULE ${ARGN})
  target_link_libraries(${library} PRIVATE windlass::kernels_${target})
  # In Windlass' own build, whose libraries load on older systems.
  if(COMMAND windlass_load_widely AND NOT WINDLASS_SANITIZE)
    windlass_load_widely(${library})
  endif()
  # A project that names no build type means one that runs fast.
  target_compile_options(${library} PRIVATE $<$<CONFIG:>:-O2>)
  set_target_properties(${library} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    PREFIX lib)
endfunction()

# Has nvcc compile the source; *holder is one that holds what comes of it, as kernels/image.cpp says.
function(windlass_compile_for_gpus holder library source)
  get_filename_component(source "${source}" ABSOLUTE)
  set(image "${CMAKE_CURRENT_BINARY_DIR}/${library}.fatbin")
  # What the host alone asks of a kernel nobody calls there.
  set(includes "$<TARGET_PROPERTY:windlass::kernels_cuda,INTERFACE_INCLUDE_DIRECTORIES>")
  add_custom_command(OUTPUT "${image}"
    COMMAND "${WINDLASS_NVCC}" ${windlass_nvcc_options} -DWINDLASS_IN_KERNEL_LIBRARY -diag-suppress 177 "-I$<JOIN:${includes},;-I>"
      ${windlass_nvcc_code} -MD -MF "${image}.d" -MT "${image}" -x cu "${source}" -o "${image}"
    DEPENDS "${source}"
    DEPFILE "${image}.d"
    COMMENT "Compiling ${library} for GPUs by ${WINDLASS_NVCC}"
    COMMAND_EXPAND_LISTS
    VERBATIM)
  set(holding "${CMAKE_CURRENT_BINARY_DIR}/${library}_image.cpp")
  configure_file("${windlass_cuda_image}" "${holding}" COPYONLY)
  set_source_files_properties("${holding}" PROPERTIES
    COMPILE_DEFINITIONS "WINDLASS_CUDA_IMAGE=\"${image}\"" OBJECT_DEPENDS "${image}")
  set(${holder} "${holding}" PARENT_SCOPE)
endfunction()
