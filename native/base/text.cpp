// SPDX-License-Identifier: Apache-2.0
#include "native/base/text.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace windlass {

void Text::add(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = std::vsnprintf(at_, left_, format, arguments);
  va_end(arguments);
  const size_t step = std::min(left_ - 1, static_cast<size_t>(std::max(0, written)));
  at_ += step;
  left_ -= step;
}

}  // namespace windlass
