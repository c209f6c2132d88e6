// SPDX-License-Identifier: Apache-2.0
// What the stand-in for NVIDIA's driver takes for the kernels that nvcc compiles.
#include "tests/cuda/image.h"

extern "C" const unsigned char windlass_cuda_image[sizeof kStandInImage] = WL_STAND_IN_IMAGE;
extern "C" const unsigned long long windlass_cuda_image_bytes = sizeof kStandInImage;
