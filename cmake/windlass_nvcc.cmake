# SPDX-License-Identifier: Apache-2.0
# How kernels are compiled for NVIDIA's GPUs, those of Windlass and those of libraries: by nvcc, of CUDA 12.4 or later.
find_program(WINDLASS_NVCC nvcc HINTS "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" /usr/local/cuda PATH_SUFFIXES bin
  DOC "The compiler of CUDA")

# Sums and products round by themselves, quotients as IEEE 754 says, and subnormals stay.
set(windlass_nvcc_options -std=c++17 -O3 -fmad=false -ftz=false -prec-div=true
  -DWINDLASS_ON_CORES -DWINDLASS_TARGET_CUDA)
# Code of its own for 8.0 and 9.0, which 8.x runs too, and PTX of 9.0 for all that come after.
set(windlass_nvcc_code --threads 2 -gencode arch=compute_80,code=sm_80
  -gencode "arch=compute_90,code=[sm_90,compute_90]" -fatbin)
# The PTX of 9.0 that --keep leaves.
set(windlass_nvcc_ptx null.compute_90.ptx)
# For tests where there is no GPU: 9.0 alone, and ptxas, which takes most of the time, optimises nothing.
if(WINDLASS_FAST_GPU_KERNELS)
  set(windlass_nvcc_code -gencode "arch=compute_90,code=[sm_90,compute_90]" -Xptxas -O0 -fatbin)
  set(windlass_nvcc_ptx null.ptx)
endif()
# What holds the file in a library.
set(windlass_cuda_image "${CMAKE_CURRENT_LIST_DIR}/image.cpp")
if(NOT EXISTS "${windlass_cuda_image}")
  set(windlass_cuda_image "${CMAKE_CURRENT_LIST_DIR}/../kernels/image.cpp")
endif()
