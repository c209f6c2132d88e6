// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <new>

#include "native/isa/sim/types.h"

namespace windlass {
namespace {

struct Aligned {
  static constexpr std::align_val_t kLine{64};
  void operator()(void* bytes) const { ::operator delete(bytes, kLine); }
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
  thread_local const std::unique_ptr<void, Aligned> buffer(
      ::operator new(kUnifiedBufferBytes, Aligned::kLine));
  return static_cast<unsigned char*>(buffer.get());
}

}  // namespace windlass
