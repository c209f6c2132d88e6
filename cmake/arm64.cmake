# SPDX-License-Identifier: Apache-2.0
# Builds for aarch64 Linux with Debian's cross compiler, g++-aarch64-linux-gnu, and runs what was
# built by qemu-aarch64 of Debian's qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
find_program(windlass_arm64_compiler aarch64-linux-gnu-g++)
if(NOT windlass_arm64_compiler)
  message(FATAL_ERROR "there is no aarch64-linux-gnu-g++ here: install g++-aarch64-linux-gnu")
endif()
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc) # of Google Test
set(CMAKE_CXX_COMPILER "${windlass_arm64_compiler}")
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64;-L;/usr/aarch64-linux-gnu")
# What lies in this machine's own folders is for its own processor.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
