# SPDX-License-Identifier: Apache-2.0
# The package that builds libraries of kernels outside this tree: the headers of the vocabulary, its code for the targets
# of this build, and windlass_add_kernel. The CMake target kernel_package builds what `cmake --install FOLDER --prefix PREFIX`
# then copies.
include(CMakePackageConfigHelpers)
include("${CMAKE_CURRENT_LIST_DIR}/windlass_add_kernel.cmake")

# The include folder of the package holds them as this tree does.
set(kernel_headers
  kernels/bytes.h
  native/include/windlass/in_line.h
  native/include/windlass/kernel.h
  native/include/windlass/kernel_entries.h
  native/include/windlass/kernel_library.h
  native/include/windlass/kernel_list.h
  native/include/windlass/kernel_table.h
  native/include/windlass/library_on_gpu.h
  native/include/windlass/offload.h
  native/include/windlass/on_gpu.h
  native/isa/arithmetic.h
  native/isa/ascend/boxes.h
  native/isa/ascend/buffers.h
  native/isa/ascend/fused.h
  native/isa/ascend/target.h
  native/isa/boxes.h
  native/isa/checked/architecture.h
  native/isa/checked/arithmetic.h
  native/isa/checked/breach.h
  native/isa/checked/clock.h
  native/isa/checked/core.h
  native/isa/checked/declared.h
  native/isa/checked/global_memory.h
  native/isa/checked/host_side.h
  native/isa/checked/instructions.h
  native/isa/checked/kernel_side.h
  native/isa/checked/machine.h
  native/isa/checked/operands.h
  native/isa/checked/profile.h
  native/isa/checked/session.h
  native/isa/checked/transfer.h
  native/isa/checked/types.h
  native/isa/checked/unified_buffer.h
  native/isa/conversions.h
  native/isa/cuda/adds.h
  native/isa/cuda/cores.h
  native/isa/cuda/elements.h
  native/isa/cuda/folds.h
  native/isa/cuda/fused.h
  native/isa/cuda/job.h
  native/isa/cuda/memory.h
  native/isa/cuda/moves.h
  native/isa/cuda/scaled.h
  native/isa/cuda/tile_work.h
  native/isa/cuda/tiles.h
  native/isa/cuda/work.h
  native/isa/element_types.h
  native/isa/enums.h
  native/isa/isa.h
  native/isa/library_image.h
  native/isa/limits.h
  native/isa/lists.h
  native/isa/one_thread.h
  native/isa/shape.h
  native/isa/signals.h
  native/isa/sim/fused.h
  native/isa/sim/host_side.h
  native/isa/sim/loops.h
  native/isa/sim/move.h
  native/isa/sim/phase_scope.h
  native/isa/sim/sync.h
  native/isa/sim/types.h
  native/isa/sim/vector.h
  native/base/cpu.h
  native/base/dtype.h
  native/base/profile.h)

# A library that was compiled with other headers may read a launch otherwise than it is written: what tells one set of
# them from another stands in the library's table, and in what loads it.
set(contents "")
foreach(header IN LISTS kernel_headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${header}")
  file(SHA256 "${PROJECT_SOURCE_DIR}/${header}" hash)
  string(APPEND contents "${header} ${hash}\n")
endforeach()
string(SHA256 fingerprint "${contents}")
string(SUBSTRING "${fingerprint}" 0 16 fingerprint)
set(fingerprint "WINDLASS_KERNEL_FINGERPRINT=0x${fingerprint}ull")
set_source_files_properties("${PROJECT_SOURCE_DIR}/native/core/launch/kernel_library.cpp" PROPERTIES
  COMPILE_DEFINITIONS "${fingerprint}")

# The code of the vocabulary, of which a library takes what its target needs. On checked targets each library has its own
# copy of what checks it.
set(of_phases "(copy_strided|fold|move_cvt)\\.cpp") # what native/isa/sim/phase_scope.h is for
set(sources_of_phases ${sim_sources})
list(FILTER sources_of_phases INCLUDE REGEX "${of_phases}")
add_library(windlass_vocabulary STATIC EXCLUDE_FROM_ALL ${sources_of_phases} "${PROJECT_SOURCE_DIR}/native/base/dtype.cpp"
  "$<FILTER:$<TARGET_OBJECTS:windlass_sim_objects>,EXCLUDE,${of_phases}>")
target_link_libraries(windlass_vocabulary PRIVATE "$<BUILD_INTERFACE:windlass_options>")
target_compile_definitions(windlass_vocabulary PUBLIC WINDLASS_IN_KERNEL_LIBRARY)
set_target_properties(windlass_vocabulary PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME vocabulary)
set_target_properties(windlass_checked PROPERTIES EXPORT_NAME checked)
# And what a library is compiled with.
target_compile_features(windlass_vocabulary INTERFACE cxx_std_17)
target_compile_definitions(windlass_vocabulary INTERFACE "${fingerprint}")
target_compile_options(windlass_vocabulary INTERFACE -ffp-contract=off -fno-omit-frame-pointer)
target_include_directories(windlass_vocabulary INTERFACE
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR};${PROJECT_SOURCE_DIR}/native/include>"
  "$<INSTALL_INTERFACE:include/windlass>")
if(WINDLASS_SANITIZE)
  target_compile_options(windlass_vocabulary INTERFACE -fsanitize=${WINDLASS_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(windlass_vocabulary INTERFACE -fsanitize=${WINDLASS_SANITIZE})
else()
  target_link_options(windlass_vocabulary INTERFACE
    -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,-z,noexecstack -static-libstdc++ -Wl,--no-undefined
    -Wl,--exclude-libs,ALL)
endif()

# For each target that this build has a library of.
set(kernel_targets sim)
if(TARGET windlass-a5sim)
  list(APPEND kernel_targets a2a3sim a5sim)
endif()
# And for cuda, for which whoever builds a library brings nvcc.
set(interfaces "")
foreach(target IN LISTS kernel_targets ITEMS cuda)
  set(interface windlass_kernels_${target})
  list(APPEND interfaces ${interface})
  add_library(${interface} INTERFACE)
  add_library(windlass::kernels_${target} ALIAS ${interface})
  set_target_properties(${interface} PROPERTIES EXPORT_NAME kernels_${target})
  if(target MATCHES "^a.*sim$")
    target_link_libraries(${interface} INTERFACE windlass_checked)
  endif()
  target_link_libraries(${interface} INTERFACE windlass_vocabulary)
  string(TOUPPER "${target}" upper)
  target_compile_definitions(${interface} INTERFACE "WINDLASS_TARGET_${upper}")
endforeach()

foreach(header IN LISTS kernel_headers)
  string(REGEX REPLACE "^native/include/" "" as "${header}")
  get_filename_component(folder "${as}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/${header}" DESTINATION "include/windlass/${folder}")
endforeach()
add_custom_target(kernel_package DEPENDS windlass_vocabulary windlass_checked)
install(TARGETS windlass_vocabulary windlass_checked ${interfaces} EXPORT windlass_kernels_sim ARCHIVE DESTINATION lib)
install(EXPORT windlass_kernels_sim NAMESPACE windlass:: DESTINATION lib/cmake/windlass)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/windlassConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES
  "${CMAKE_CURRENT_LIST_DIR}/windlassConfig.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/windlass_add_kernel.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/windlass_nvcc.cmake"
  "${windlass_cuda_image}"
  "${PROJECT_BINARY_DIR}/windlassConfigVersion.cmake"
  DESTINATION lib/cmake/windlass)
