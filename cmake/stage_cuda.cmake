# SPDX-License-Identifier: Apache-2.0
# What the natives' jar of the cuda flavour holds, in the folder TO: libwindlass-cuda.so of the folder FROM under PLACE, and
# the licence. Without that library TO is not there, and no jar is made.
#
# usage: cmake -DFROM=FOLDER -DTO=FOLDER -DPLACE=PATH -DLICENSE=FILE -P stage_cuda.cmake
file(REMOVE_RECURSE "${TO}")
if(EXISTS "${FROM}/libwindlass-cuda.so")
  file(COPY "${FROM}/libwindlass-cuda.so" DESTINATION "${TO}/${PLACE}")
  file(COPY "${LICENSE}" DESTINATION "${TO}/META-INF")
endif()
