// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
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
  char text[192];
};
thread_local Noted noted = {};

}  // namespace

void detail::misuse(const char* format, int64_t a, int64_t b) noexcept {
  if (noted.isAny) return;
  noted.isAny = true;
  std::snprintf(noted.text, sizeof noted.text, format, static_cast<long long>(a),
                static_cast<long long>(b));
}

const char* detail::takeMisuse() noexcept {
  if (!noted.isAny) return nullptr;
  noted.isAny = false;
  return noted.text;
}

unsigned char* detail::unifiedBuffer() noexcept {
  thread_local const UnifiedBuffer buffer;
  return buffer.bytes();
}

}  // namespace windlass
