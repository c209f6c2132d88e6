// SPDX-License-Identifier: Apache-2.0
// The image of kernels that the stand-in for NVIDIA's driver loads.
#pragma once

#define WL_STAND_IN_IMAGE "kernels of a stand-in"

constexpr unsigned char kStandInImage[] = WL_STAND_IN_IMAGE;

extern "C" const unsigned char windlass_cuda_image[sizeof kStandInImage];
extern "C" const unsigned long long windlass_cuda_image_bytes;
