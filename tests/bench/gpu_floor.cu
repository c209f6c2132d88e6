// SPDX-License-Identifier: Apache-2.0
// Kernels beside which operations on GPUs are measured: one that does nothing, a plain copy and a
// plain cast.
#include <cuda_bf16.h>

extern "C" __global__ void nothing() {}

extern "C" __global__ void copy(const uint4* from, uint4* to, unsigned long long vectors) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
       i < vectors; i += step)
    to[i] = from[i];
}

extern "C" __global__ void toBf16(const float4* from, uint2* to, unsigned long long vectors) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
       i < vectors; i += step) {
    const float4 four = from[i];
    const __nv_bfloat162 low = __floats2bfloat162_rn(four.x, four.y);
    const __nv_bfloat162 high = __floats2bfloat162_rn(four.z, four.w);
    to[i] = {*reinterpret_cast<const unsigned*>(&low), *reinterpret_cast<const unsigned*>(&high)};
  }
}
