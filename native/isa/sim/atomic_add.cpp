// SPDX-License-Identifier: Apache-2.0
// dst += src by atomic read-modify-writes, with the arithmetic of TFOLD's sum. Contiguous elements
// are added in blocks: one vector loop computes the sums of a block, and an exchange writes each
// word unless it changed meanwhile. A word that only partly belongs to dst, and elements that are
// not contiguous, are exchanged one element at a time. Exchanges of both widths are atomic to one
// another.
#include <cassert>

#include "native/isa/sim/float_mode.h"
#include "native/isa/sim/fold_steps.h"
#include "native/isa/sim/loops.h"
#include "native/isa/sim/traversal.h"
#include "native/isa/sim/vector_table.h"

namespace windlass {
namespace {

// The widest type that one exchange takes. Every x86-64 processor made since 2006, or with a table
// other than the portable one, has CMPXCHG16B. ThreadSanitizer uses a lock and two moves for 16
// bytes, and narrower exchanges of the same bytes ignore that lock.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
__extension__ using Word = unsigned __int128;
#define WINDLASS_WIDE_EXCHANGE __attribute__((target("cx16")))
#else
using Word = uint64_t;
#define WINDLASS_WIDE_EXCHANGE
#endif
constexpr size_t kWordBytes = sizeof(Word);
// Short, so that other threads seldom change a block between its sums and its exchanges.
constexpr size_t kBlockBytes = 256;
// Maximum size of a block's accumulator. One-byte elements accumulate in their own type.
constexpr size_t kAccumulatorBytes = 2 * kBlockBytes;

class Adder {
 public:
  Adder(const VectorTable& table, DType dtype) noexcept
      : bytes_(sizeOf(dtype)), steps_(table, dtype, ReduceOp::kSum) {}

  // dst += src for `count` elements. Their addresses are `dstStep` and `srcStep` bytes apart.
  void run(unsigned char* dst, int64_t dstStep, const unsigned char* src, int64_t srcStep,
           int64_t count) const noexcept {
    const auto step = static_cast<int64_t>(bytes_);
    if (dstStep != step || srcStep != step) {
      for (int64_t i = 0; i < count; ++i) addElement(dst + i * dstStep, src + i * srcStep);
      return;
    }
    const unsigned char* end = dst + count * step;
    while (dst < end) {
      size_t taken = bytes_;
      const size_t whole = static_cast<size_t>(end - dst) / kWordBytes * kWordBytes;
      if (whole > 0 && reinterpret_cast<uintptr_t>(dst) % kWordBytes == 0) {
        taken = whole < kBlockBytes ? whole : kBlockBytes;
        addBlock(dst, src, taken);
      } else {
        addElement(dst, src);
      }
      dst += taken;
      src += taken;
    }
  }

 private:
  void sum(void* out, const void* seen, const void* src, size_t bytes) const noexcept {
    alignas(64) unsigned char accumulator[kAccumulatorBytes];
    const size_t count = bytes / bytes_;
    auto* folded = steps_.finish == nullptr ? static_cast<unsigned char*>(out) : accumulator;
    steps_.run(folded, 2, 2, count, [&](uint32_t i) {
      return static_cast<const unsigned char*>(i == 0 ? seen : src);
    });
    if (steps_.finish != nullptr) steps_.finish(out, accumulator, count);
  }

  // Adds whole words. The first word of dst is aligned.
  WINDLASS_WIDE_EXCHANGE void addBlock(unsigned char* dst, const unsigned char* src,
                                       size_t bytes) const noexcept {
    alignas(64) unsigned char seen[kBlockBytes];
    alignas(64) unsigned char next[kBlockBytes];
    for (size_t at = 0; at < bytes; at += kWordBytes) look(seen + at, dst + at);
    sum(next, seen, src, bytes);
    for (size_t at = 0; at < bytes; at += kWordBytes) {
      while (!exchange(dst + at, seen + at, next + at)) {
        look(seen + at, dst + at);
        sum(next + at, seen + at, src + at, kWordBytes);
      }
    }
  }

  // Reads a word, possibly its two halves at different times. In that case its exchange fails.
  static void look(unsigned char* seen, const unsigned char* word) noexcept {
    for (size_t at = 0; at < kWordBytes; at += sizeof(uint64_t)) {
      const uint64_t half =
          __atomic_load_n(reinterpret_cast<const uint64_t*>(word + at), __ATOMIC_RELAXED);
      __builtin_memcpy(seen + at, &half, sizeof half);
    }
  }

  WINDLASS_WIDE_EXCHANGE static bool exchange(unsigned char* word, const unsigned char* seen,
                                              const unsigned char* next) noexcept {
    Word from;
    Word to;
    __builtin_memcpy(&from, seen, kWordBytes);
    __builtin_memcpy(&to, next, kWordBytes);
    // This builtin compiles to the instruction. __atomic_* calls a library for 16 bytes.
    return __sync_bool_compare_and_swap(reinterpret_cast<Word*>(word), from, to);
  }

  void addElement(unsigned char* dst, const unsigned char* src) const noexcept {
    switch (bytes_) {
      case 1:
        return addElement<uint8_t>(dst, src);
      case 2:
        return addElement<uint16_t>(dst, src);
      default:
        return addElement<uint32_t>(dst, src);
    }
  }

  template <typename T>
  void addElement(unsigned char* dst, const unsigned char* src) const noexcept {
    auto* target = reinterpret_cast<T*>(dst);
    T seen = __atomic_load_n(target, __ATOMIC_RELAXED);
    T next;
    do {
      sum(&next, &seen, src, sizeof next);
    } while (!__atomic_compare_exchange_n(target, &seen, next, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
  }

  size_t bytes_;
  FoldSteps steps_;
};

}  // namespace

void detail::atomicAdd(const StridedView& dst, const StridedView& src) noexcept {
  assert(dst.dtype == src.dtype && canAccumulate(dst.dtype));
  ViewList to(&dst, 1);
  ViewList from(&src, 1);
  const Traversal t = makeTraversal(to, from);
  if (t.isEmpty) return;
  const DefaultFloatMode mode;
  const Adder adder(activeTable(), dst.dtype);
  const auto bytes = static_cast<int64_t>(sizeOf(dst.dtype));
  int64_t boxExtent[kMaxDims];
  for (uint32_t d = 0; d < t.ndim; ++d) boxExtent[d] = 1;
  if (t.ndim > 0) boxExtent[t.ndim - 1] = t.extent[t.ndim - 1];
  const int64_t dstStep = t.ndim > 0 ? strideOf(t, dst, t.ndim - 1) * bytes : bytes;
  const int64_t srcStep = t.ndim > 0 ? strideOf(t, src, t.ndim - 1) * bytes : bytes;
  forEachBox(t, boxExtent, [&](const Box& box) {
    adder.run(addressOf(t, dst, box), dstStep, addressOf(t, src, box), srcStep, box.count);
  });
}

}  // namespace windlass
