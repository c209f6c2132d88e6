// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "native/isa/sim/types.h"

namespace windlass {
namespace {

constexpr std::align_val_t kLine{64};

class UnifiedBuffer {
 public:
  UnifiedBuffer()
      : bytes_(static_cast<unsigned char*>(::operator new(kUnifiedBufferBytes, kLine))) {}
  ~UnifiedBuffer() { ::operator delete(bytes_, kLine); }
  UnifiedBuffer(const UnifiedBuffer&) = delete;
  UnifiedBuffer& operator=(const UnifiedBuffer&) = delete;
  unsigned char* bytes() const { return bytes_; }

 private:
  unsigned char* bytes_;
};

struct Noted {
  bool isAny;
  TileMisuse first;
};
thread_local Noted noted = {};

}  // namespace

void detail::misuse(const TileMisuse& misuse) noexcept {
  if (!noted.isAny) noted = {true, misuse};
}

bool detail::takeMisuse(TileMisuse* first) noexcept {
  if (!noted.isAny) return false;
  noted.isAny = false;
  *first = noted.first;
  return true;
}

unsigned char* detail::unifiedBuffer() noexcept {
  thread_local const UnifiedBuffer buffer;
  return buffer.bytes();
}

}  // namespace windlass
