# SPDX-License-Identifier: Apache-2.0
# Lets shared libraries that are linked on a newer system load with glibc 2.28, as RHEL 8 and Ubuntu 20.04 need it.
#
# Since 2.34, glibc has the functions of threads and of dlopen in libc.so.6, by versions that older systems lack. There
# they are in libpthread.so.0 and libdl.so.2, which newer systems have as well. A stub of each, for the linker alone,
# names the functions by their first versions; the linker takes a function from the first library that has it. What
# glibc got later is in native/base/glibc_2_28.cpp. libgcc is not linked statically: its unwinder asks for 2.35.

# Stub NAME of functions, which follow the version that x86-64 has them by. On aarch64 that is 2.17 for all.
function(windlass_glibc_stub name)
  set(source "extern \"C\" {\n")
  set(map "")
  foreach(word IN LISTS ARGN)
    if(NOT word MATCHES "^[0-9]")
      string(APPEND source "void ${word}() {}\n")
      string(APPEND map " ${word};")
    elseif(map STREQUAL "")
      if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
        set(word 2.17)
      endif()
      set(map "GLIBC_${word} {")
    elseif(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
      string(APPEND map " };\nGLIBC_${word} {")
    endif()
  endforeach()
  set(stub "${CMAKE_BINARY_DIR}/glibc/${name}")
  file(CONFIGURE OUTPUT "${stub}.cpp" CONTENT "${source}}\n")
  file(CONFIGURE OUTPUT "${stub}.map" CONTENT "${map} };\n")
  add_custom_command(OUTPUT "${stub}"
    COMMAND "${CMAKE_CXX_COMPILER}" -shared -fPIC -nostdlib -fno-builtin "-Wl,-soname,${name}"
      "-Wl,--version-script=${stub}.map" "${stub}.cpp" -o "${stub}"
    DEPENDS "${stub}.cpp" "${stub}.map" VERBATIM)
endfunction()

windlass_glibc_stub(libpthread.so.0 2.2.5 pthread_create pthread_join pthread_detach pthread_once pthread_sigmask
  pthread_mutex_trylock pthread_key_create __pthread_key_create pthread_key_delete pthread_getspecific
  pthread_setspecific 2.3.4 pthread_setaffinity_np)
windlass_glibc_stub(libdl.so.2 2.2.5 dlopen dlclose dlsym dlerror dladdr 2.3.3 dlinfo)

add_library(windlass_glibc_object OBJECT native/base/glibc_2_28.cpp)
target_compile_options(windlass_glibc_object PRIVATE -Wall -Wextra -Werror -fno-builtin)
set(windlass_glibc_libraries "${CMAKE_BINARY_DIR}/glibc/libpthread.so.0" "${CMAKE_BINARY_DIR}/glibc/libdl.so.2")
add_custom_target(windlass_glibc DEPENDS ${windlass_glibc_libraries})
add_dependencies(windlass_glibc windlass_glibc_object)
list(JOIN windlass_glibc_libraries " " libraries)
# What a linker takes of this file, for the library of JavaCPP.
file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/glibc/options"
  CONTENT "$<JOIN:$<TARGET_OBJECTS:windlass_glibc_object>, > -Wl,--push-state,--no-as-needed ${libraries} -Wl,--pop-state\n")

# Links the shared library TARGET so that it loads with glibc 2.28 and takes its C++ library along.
function(windlass_load_widely target)
  add_dependencies(${target} windlass_glibc)
  target_link_options(${target} PRIVATE "@${CMAKE_BINARY_DIR}/glibc/options" -static-libstdc++ -Wl,--no-undefined)
endfunction()
