// SPDX-License-Identifier: Apache-2.0
// Accesses of one thread to global memory: aligned accesses of 16 bytes, and elements of any
// alignment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "windlass/kernel.h"

// Unroll directives for a loop that nvcc compiles.
#if defined(__CUDACC__)
#define WL_UNROLL _Pragma("unroll")
#define WL_NO_UNROLL _Pragma("unroll 1")
#else
#define WL_UNROLL
#define WL_NO_UNROLL
#endif

namespace windlass::cuda {

// Bytes of one vector access.
constexpr uint32_t kVectorBytes = 16;

struct alignas(kVectorBytes) Vector {
  uint32_t word[4];
};

WL_CORE_INLINE bool isAligned(const void* pointer, uint64_t to) {
  return (reinterpret_cast<uint64_t>(pointer) & (to - 1)) == 0;
}

#if defined(__CUDA_ARCH__)
WL_CORE_INLINE size_t globalOf(const void* pointer) {
  return __cvta_generic_to_global(pointer);
}
WL_CORE_INLINE Vector load(const Vector* from) {
  Vector v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
               : "l"(globalOf(from))
               : "memory");
  return v;
}
WL_CORE_INLINE void store(Vector* to, const Vector& v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(globalOf(to)), "r"(v.word[0]),
               "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3])
               : "memory");
}
// Load or store if `holds`; otherwise loadIf returns zeros. They use a predicate, because a branch
// would need more registers and a point where the threads reconverge.
WL_CORE_INLINE Vector loadIf(bool holds, const Vector* from) {
  Vector v;
  asm volatile(
      "{\n\t.reg .pred holds;\n\tsetp.ne.u32 holds, %5, 0;\n\t"
      "mov.u32 %0, 0;\n\tmov.u32 %1, 0;\n\tmov.u32 %2, 0;\n\tmov.u32 %3, 0;\n\t"
      "@holds ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
      : "=&r"(v.word[0]), "=&r"(v.word[1]), "=&r"(v.word[2]), "=&r"(v.word[3])
      : "l"(globalOf(from)), "r"(holds ? 1 : 0)
      : "memory");
  return v;
}
WL_CORE_INLINE void storeIf(bool holds, Vector* to, const Vector& v) {
  asm volatile(
      "{\n\t.reg .pred holds;\n\tsetp.ne.u32 holds, %5, 0;\n\t"
      "@holds st.global.v4.u32 [%0], {%1, %2, %3, %4};\n\t}" ::"l"(globalOf(to)),
      "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3]), "r"(holds ? 1 : 0)
      : "memory");
}
#endif
// Accesses aligned to their size. A GPU refuses any other access, and so does a host test.
template <typename T>
WL_CORE_INLINE T load(const T* from) {
#if !defined(__CUDA_ARCH__)
  if (!isAligned(from, sizeof(T))) __builtin_trap();
#endif
  return *from;
}
template <typename T>
WL_CORE_INLINE void store(T* to, const T& value) {
#if !defined(__CUDA_ARCH__)
  if (!isAligned(to, sizeof(T))) __builtin_trap();
#endif
  *to = value;
}
#if !defined(__CUDA_ARCH__)
WL_CORE_INLINE Vector loadIf(bool holds, const Vector* from) {
  return holds ? load(from) : Vector{};
}
WL_CORE_INLINE void storeIf(bool holds, Vector* to, const Vector& v) {
  if (holds) store(to, v);
}
#endif

template <typename Raw>
WL_CORE_INLINE Raw loadAnywhere(const unsigned char* from) {
  if (isAligned(from, sizeof(Raw))) return *reinterpret_cast<const Raw*>(from);
  uint64_t bits = 0;
  for (uint32_t i = 0; i < sizeof(Raw); ++i) bits |= uint64_t{from[i]} << (8 * i);
  return static_cast<Raw>(bits);
}
template <typename Raw>
WL_CORE_INLINE void storeAnywhere(unsigned char* to, Raw value) {
  if (isAligned(to, sizeof(Raw))) {
    *reinterpret_cast<Raw*>(to) = value;
    return;
  }
  const auto bits = static_cast<uint64_t>(value);
  for (uint32_t i = 0; i < sizeof(Raw); ++i) to[i] = static_cast<unsigned char>(bits >> (8 * i));
}

// Calls visit(Raw()) for the unsigned integer of `bytes` bytes.
template <class Visit>
WL_CORE_INLINE auto withRaw(uint64_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1:
      return visit(uint8_t());
    case 2:
      return visit(uint16_t());
    case 4:
      return visit(uint32_t());
    default:
      return visit(uint64_t());
  }
}
// Loads or stores the bits of an element of `bytes` bytes.
WL_CORE_INLINE uint64_t loadBits(const unsigned char* from, uint64_t bytes) {
  return withRaw(bytes, [&](auto raw) { return uint64_t{loadAnywhere<decltype(raw)>(from)}; });
}
WL_CORE_INLINE void storeBits(unsigned char* to, uint64_t bits, uint64_t bytes) {
  withRaw(bytes, [&](auto raw) { storeAnywhere(to, static_cast<decltype(raw)>(bits)); });
}

// The kCount elements of a vector. Computations use type Value.
template <class E>
struct InVector {
  using Raw = typename E::Raw;
  using Value = typename E::Value;
  static constexpr uint32_t kCount = kVectorBytes / sizeof(Raw);
  static constexpr uint32_t kInWord = sizeof(Raw) > 4 ? 1 : 4 / sizeof(Raw);

  WL_CORE_INLINE static Raw raw(const Vector& v, uint32_t i) {
    if constexpr (sizeof(Raw) == 8) {
      return v.word[2 * i] | uint64_t{v.word[2 * i + 1]} << 32;
    } else {
      return static_cast<Raw>(v.word[i / kInWord] >> (8 * sizeof(Raw) * (i % kInWord)));
    }
  }
  // Call this in ascending order: setting the first element of a word clears the others.
  WL_CORE_INLINE static void setRaw(Vector* v, uint32_t i, Raw raw) {
    if constexpr (sizeof(Raw) == 8) {
      v->word[2 * i] = static_cast<uint32_t>(raw);
      v->word[2 * i + 1] = static_cast<uint32_t>(raw >> 32);
    } else if (i % kInWord == 0) {
      v->word[i / kInWord] = raw;
    } else {
      v->word[i / kInWord] |= static_cast<uint32_t>(raw) << (8 * sizeof(Raw) * (i % kInWord));
    }
  }
  WL_CORE_INLINE static Value value(const Vector& v, uint32_t i) { return E::load(raw(v, i)); }
};

}  // namespace windlass::cuda
