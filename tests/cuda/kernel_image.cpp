// SPDX-License-Identifier: Apache-2.0
// What the stand-in for NVIDIA's driver takes for the kernels of a library that nvcc compiles: its
// devices run those that the library has for the host.
#include "windlass/kernel_table.h"

namespace {

struct Image {
  windlass::FatBinary header;
  char text[24];
};

}  // namespace

extern "C" {
extern const Image windlass_cuda_image;
extern const uint64_t windlass_cuda_image_bytes;
const Image windlass_cuda_image = {
    {windlass::kFatBinaryMagic, 1, sizeof(windlass::FatBinary), sizeof Image::text},
    "kernels of a stand-in"};
const uint64_t windlass_cuda_image_bytes = sizeof windlass_cuda_image;
}
