# SPDX-License-Identifier: Apache-2.0
# libwindlass-cuda.so: the host side, as windlass_library() has it, and in it the kernels, as nvcc compiles them for
# NVIDIA's GPUs. It takes nvcc, of CUDA 12.4 or later; what it makes opens the driver when it runs.
set(WINDLASS_CUDA ON CACHE BOOL "Build libwindlass-cuda.so where nvcc is found")
set(WINDLASS_FAST_GPU_KERNELS OFF CACHE BOOL "Compile kernels for GPUs fast, as tests without a GPU take them")
include("${CMAKE_CURRENT_LIST_DIR}/windlass_nvcc.cmake")

# windlass_cuda_library(NAME): the library, by a target of that name. What ptxas says stands beside the image, in
# cuda/ptxas.log, and its PTX; NAME_image makes these alone.
function(windlass_cuda_library name)
  set(folder "${CMAKE_BINARY_DIR}/cuda")
  set(image "${folder}/windlass.fatbin")
  file(MAKE_DIRECTORY "${folder}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
    "${PROJECT_SOURCE_DIR}/kernels/*.h" "${PROJECT_SOURCE_DIR}/native/isa/*.h" "${PROJECT_SOURCE_DIR}/native/include/*.h")
  add_custom_command(OUTPUT "${image}"
    BYPRODUCTS "${folder}/${windlass_nvcc_ptx}"
    COMMAND "${CMAKE_COMMAND}" "-DLOG=${folder}/ptxas.log" -P "${PROJECT_SOURCE_DIR}/cmake/run_logged.cmake" --
      "${WINDLASS_NVCC}" ${windlass_nvcc_options} -Werror all-warnings "-I${PROJECT_SOURCE_DIR}" "-I${PROJECT_SOURCE_DIR}/native/include"
      -Xptxas -v --keep --keep-dir "${folder}" ${windlass_nvcc_code}
      # nvcc names functions by the folder of the file that it compiles: an empty one that is the same everywhere.
      -include kernels/entry.cu -x cu /dev/null -o "${image}"
    DEPENDS "${PROJECT_SOURCE_DIR}/kernels/entry.cu" "${PROJECT_SOURCE_DIR}/cmake/run_logged.cmake" ${sources}
    COMMENT "Compiling the kernels of cuda by ${WINDLASS_NVCC}"
    VERBATIM)
  windlass_library(${name} cuda)
  set_source_files_properties("${windlass_cuda_image}" PROPERTIES
    COMPILE_DEFINITIONS "WINDLASS_CUDA_IMAGE=\"${image}\"" OBJECT_DEPENDS "${image}")
  foreach(library ${name} ${name}_static)
    target_sources(${library} PRIVATE "${windlass_cuda_image}")
    target_link_libraries(${library} PRIVATE windlass_options)
  endforeach()
  add_custom_target(${name}_image DEPENDS "${image}")
  add_dependencies(${name} ${name}_image)
  add_dependencies(${name}_static ${name}_image)
  set_target_properties(${name} PROPERTIES OUTPUT_NAME windlass-cuda)
  # The host runs no kernel of this target; entry.cpp has them for what rides with ENTER.
  target_compile_options(${name}_kernels PRIVATE -O1)
endfunction()
