# SPDX-License-Identifier: Apache-2.0
# find_package(windlass): what builds libraries of kernels. Each build that was installed has its file.
include("${CMAKE_CURRENT_LIST_DIR}/windlass_add_kernel.cmake")
file(GLOB windlass_targets "${CMAKE_CURRENT_LIST_DIR}/windlass_kernels_*.cmake")
# Those with a build type in their names are read by the others.
list(FILTER windlass_targets EXCLUDE REGEX "-[a-z]+\\.cmake$")
foreach(file IN LISTS windlass_targets)
  include("${file}")
endforeach()
unset(windlass_targets)
