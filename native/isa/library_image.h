// SPDX-License-Identifier: Apache-2.0
// Image of this library's kernels for cores that the host compiler doesn't target. For cuda, nvcc
// compiles it from kernels/entry.cu or from the source of a library of kernels, and
// kernels/image.cpp embeds it.
#pragma once

#include <cstdint>

#if defined(WINDLASS_TARGET_CUDA)
extern "C" const unsigned char windlass_cuda_image[];
extern "C" const uint64_t windlass_cuda_image_bytes;
#endif

namespace windlass {

#if defined(WINDLASS_TARGET_CUDA)
constexpr const unsigned char* kLibraryImage = windlass_cuda_image;
constexpr const uint64_t* kLibraryImageBytes = &windlass_cuda_image_bytes;
#else
constexpr const unsigned char* kLibraryImage = nullptr;
constexpr const uint64_t* kLibraryImageBytes = nullptr;
#endif

}  // namespace windlass
