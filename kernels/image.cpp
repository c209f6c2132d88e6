// SPDX-License-Identifier: Apache-2.0
// The kernels of the cuda target as data. WINDLASS_CUDA_IMAGE names the file that nvcc made from
// kernels/entry.cu.
__asm__(
    ".section .rodata, \"a\", @progbits\n"
    ".balign 64\n"
    ".global windlass_cuda_image\n"
    ".hidden windlass_cuda_image\n"
    ".type windlass_cuda_image, @object\n"
    "windlass_cuda_image:\n"
    ".incbin \"" WINDLASS_CUDA_IMAGE "\"\n"
    "windlass_cuda_image_end:\n"
    ".size windlass_cuda_image, windlass_cuda_image_end - windlass_cuda_image\n"
    ".balign 8\n"
    ".global windlass_cuda_image_bytes\n"
    ".hidden windlass_cuda_image_bytes\n"
    ".type windlass_cuda_image_bytes, @object\n"
    ".size windlass_cuda_image_bytes, 8\n"
    "windlass_cuda_image_bytes:\n"
    ".quad windlass_cuda_image_end - windlass_cuda_image\n"
    ".text\n");
