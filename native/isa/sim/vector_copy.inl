// SPDX-License-Identifier: Apache-2.0
// Part of vector_loops.inl: the copy by registers of 32 or 64 bytes.

constexpr size_t kRegister = WINDLASS_PATH_WIDTH;

// Copies four registers an iteration to an aligned destination. The caller copies the ends
// unaligned; they may overlap the body.
template <bool streaming>
void copyBody(unsigned char* d, const unsigned char* s, size_t bytes) {
  for (; bytes >= 4 * kRegister; bytes -= 4 * kRegister, d += 4 * kRegister, s += 4 * kRegister) {
    for (size_t k = 0; k < 4 * kRegister; k += kRegister) {
      const Register block = load(s + k);
      if (streaming) {
        stream(d + k, block);
      } else {
        storeAligned(d + k, block);
      }
    }
  }
  for (; bytes >= kRegister; bytes -= kRegister, d += kRegister, s += kRegister) {
    if (streaming) {
      stream(d, load(s));
    } else {
      storeAligned(d, load(s));
    }
  }
}

template <bool streaming>
void copyRange(void* dst, const void* src, size_t bytes) {
  if (dst == src) return;
  auto* d = static_cast<unsigned char*>(dst);
  const auto* s = static_cast<const unsigned char*>(src);
  if (bytes < kRegister) {
    __builtin_memcpy(dst, src, bytes);
    return;
  }
  const size_t skip = -reinterpret_cast<uintptr_t>(d) & (kRegister - 1);
  if (skip != 0 || !streaming) storeAnywhere(d, load(s));
  if (bytes <= 8 * kRegister && !streaming) {
    for (size_t at = kRegister; at + kRegister <= bytes; at += kRegister)
      storeAnywhere(d + at, load(s + at));
    storeAnywhere(d + bytes - kRegister, load(s + bytes - kRegister));
    return;
  }
  if ((bytes - skip) % kRegister != 0 || !streaming) {
    storeAnywhere(d + bytes - kRegister, load(s + bytes - kRegister));
  }
  copyBody<streaming>(d + skip, s + skip, bytes - skip);
}

void streamLoop(void* dst, const void* src, size_t bytes) {
  copyRange<true>(dst, src, bytes);
}

void copyLoop(void* dst, const void* src, size_t bytes) {
  if (bytes >= kStreamingCopyBytes) {
    copyRange<true>(dst, src, bytes);
    _mm_sfence();
  } else {
    copyRange<false>(dst, src, bytes);
  }
}
