# SPDX-License-Identifier: Apache-2.0
# libwindlass-ucx.so: what carries bytes between hosts, over UCX, which it alone links. libwindlass.so opens it when a
# communicator spans hosts.
find_path(WINDLASS_UCX_HEADERS ucp/api/ucp.h)
find_library(WINDLASS_UCP ucp)
find_library(WINDLASS_UCT uct)
find_library(WINDLASS_UCS ucs)
if(CMAKE_CROSSCOMPILING OR WINDLASS_SANITIZE STREQUAL "thread")
  # Not in this build.
elseif(WINDLASS_UCX_HEADERS AND WINDLASS_UCP AND WINDLASS_UCT AND WINDLASS_UCS)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/native/hosts/ucx/library/*.cpp")
  add_library(windlass_ucx MODULE ${sources} native/base/error.cpp)
  target_link_libraries(windlass_ucx PRIVATE windlass_options "${WINDLASS_UCP}" "${WINDLASS_UCT}" "${WINDLASS_UCS}")
  target_include_directories(windlass_ucx SYSTEM PRIVATE "${WINDLASS_UCX_HEADERS}")
  set(ucx_exports "${CMAKE_CURRENT_SOURCE_DIR}/native/hosts/ucx/library/export.map")
  target_link_options(windlass_ucx PRIVATE
    "-Wl,--version-script=${ucx_exports}" -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,-z,noexecstack)
  set_property(TARGET windlass_ucx PROPERTY LINK_DEPENDS "${ucx_exports}")
  if(NOT WINDLASS_SANITIZE)
    windlass_load_widely(windlass_ucx)
  endif()
  set_target_properties(windlass_ucx PROPERTIES OUTPUT_NAME windlass-ucx UNITY_BUILD ${WINDLASS_UNITY})
  add_dependencies(windlass_libraries_checked windlass_ucx)
else()
  message(STATUS "libwindlass-ucx.so, without which ranks of several hosts don't start, is left out: there are no "
    "headers of UCX (Debian: libucx-dev)")
endif()
