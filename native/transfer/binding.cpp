// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/binding.h"

#include <cstring>

namespace windlass {

Code readBindings(const int64_t* words, uint64_t wordCount, uint32_t count, const char* role,
                  std::vector<Binding>* bindings, wl_error_t* error) {
  if (words == nullptr && wordCount != 0)
    return fail(error, WL_INVALID_ARGUMENT, "%s_bindings is NULL", role);
  Words in(words, wordCount);
  for (uint32_t i = 0; i < count; ++i) {
    if (!in.has(5))
      return fail(error, WL_INVALID_ARGUMENT, "%s_bindings end within binding %u", role, i);
    Binding binding = {};
    const int64_t dtype = in.take();
    const int64_t ndim = in.take();
    const auto address = static_cast<uint64_t>(in.take());
    const auto low = static_cast<uint64_t>(in.take());
    const auto bytes = static_cast<uint64_t>(in.take());
    if (dtype < 0 || dtype >= kDTypeCount) {
      return fail(error, WL_INVALID_ARGUMENT, "%s binding %u: dtype %lld is unknown", role, i,
                  static_cast<long long>(dtype));
    }
    if (ndim < 0 || ndim > kMaxDims || !in.has(2 * static_cast<uint64_t>(ndim))) {
      return fail(error, WL_INVALID_ARGUMENT,
                  "%s binding %u: %lld dimensions, not 0 to %u, or its words end early", role, i,
                  static_cast<long long>(ndim), kMaxDims);
    }
    binding.dtype = static_cast<DType>(dtype);
    binding.ndim = static_cast<uint32_t>(ndim);
    binding.data = reinterpret_cast<unsigned char*>(address);
    if (ndim > 0) {
      std::memcpy(binding.shape, in.take(binding.ndim), binding.ndim * sizeof(int64_t));
      std::memcpy(binding.strides, in.take(binding.ndim), binding.ndim * sizeof(int64_t));
    }
    for (uint32_t d = 0; d < binding.ndim; ++d) {
      const bool spread =
          binding.strides[d] > 0 || binding.shape[d] <= 1 || std::strcmp(role, "source") == 0;
      if (binding.shape[d] < 0 || binding.strides[d] < 0 || !spread) {
        return fail(error, WL_INVALID_ARGUMENT,
                    "%s binding %u: dimension %u has size %lld and stride %lld", role, i, d,
                    static_cast<long long>(binding.shape[d]),
                    static_cast<long long>(binding.strides[d]));
      }
    }
    const uint64_t size = sizeOf(binding.dtype);
    int64_t reach = 0;
    if (!extentOf(binding.ndim, binding.shape, binding.strides, size, &reach)) {
      return fail(error, WL_INVALID_ARGUMENT, "%s binding %u: its size overflows 63 bits", role, i);
    }
    if (reach > 0 && (address == 0 || address % size != 0)) {
      return fail(error, WL_INVALID_ARGUMENT,
                  "%s binding %u: address %#llx is not aligned to its dtype's %llu bytes", role, i,
                  static_cast<unsigned long long>(address), static_cast<unsigned long long>(size));
    }
    if (reach > 0 && (address < low || address - low > bytes ||
                      static_cast<uint64_t>(reach) > bytes - (address - low))) {
      return fail(error, WL_INVALID_ARGUMENT,
                  "%s binding %u: reaches outside its allocation of %llu bytes", role, i,
                  static_cast<unsigned long long>(bytes));
    }
    bindings->push_back(binding);
  }
  return in.ended() ? WL_OK
                    : fail(error, WL_INVALID_ARGUMENT,
                           "%s_bindings hold more words than %u bindings need", role, count);
}

}  // namespace windlass
