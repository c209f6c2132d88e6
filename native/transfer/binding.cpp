// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/binding.h"

#include <algorithm>

namespace windlass {
namespace {

Code readBinding(Words& in, bool isSource, Binding* binding, wl_error_t* error) {
  const int64_t dtype = in.take();
  const int64_t ndim = in.take();
  const auto address = static_cast<uint64_t>(in.take());
  const auto low = static_cast<uint64_t>(in.take());
  const auto bytes = static_cast<uint64_t>(in.take());
  if (dtype < 0 || dtype >= kDTypeCount)
    return fail(error, WL_INVALID_ARGUMENT, "dtype %lld is unknown", text(dtype));
  if (ndim < 0 || ndim > kMaxDims || !in.has(2 * static_cast<uint64_t>(ndim))) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%lld dimensions, not 0 to %u, or its words end early", text(ndim), kMaxDims);
  }
  binding->dtype = static_cast<DType>(dtype);
  binding->ndim = static_cast<uint32_t>(ndim);
  binding->data = reinterpret_cast<unsigned char*>(address);
  std::copy_n(in.take(binding->ndim), ndim, binding->shape);
  std::copy_n(in.take(binding->ndim), ndim, binding->strides);
  for (uint32_t d = 0; d < binding->ndim; ++d) {
    const int64_t size = binding->shape[d];
    const int64_t stride = binding->strides[d];
    if (size < 0 || stride < 0 || (stride == 0 && size > 1 && !isSource)) {
      return fail(error, WL_INVALID_ARGUMENT, "dimension %u has size %lld and stride %lld", d,
                  text(size), text(stride));
    }
  }
  const uint64_t size = sizeOf(binding->dtype);
  int64_t reach = 0;
  if (!extentOf(binding->ndim, binding->shape, binding->strides, size, &reach))
    return fail(error, WL_INVALID_ARGUMENT, "its size overflows 63 bits");
  if (reach > 0 && (address == 0 || address % size != 0)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "address %#llx is not aligned to its dtype's %llu bytes", text(address),
                text(size));
  }
  if (reach > 0 && (address < low || address - low > bytes ||
                    static_cast<uint64_t>(reach) > bytes - (address - low))) {
    return fail(error, WL_INVALID_ARGUMENT, "reaches outside its allocation of %llu bytes",
                text(bytes));
  }
  return WL_OK;
}

}  // namespace

Code readBindings(const wl_transfer_config_t& config, bool isSource, std::vector<Binding>* bindings,
                  wl_error_t* error) {
  const auto read = [&](Words& in, wl_error_t* why) {
    bindings->push_back({});
    return readBinding(in, isSource, &bindings->back(), why);
  };
  return isSource ? readWords({"source_bindings", "binding", "bindings", "source binding"},
                              config.source_bindings, config.source_binding_words,
                              config.source_binding_count, 5, error, read)
                  : readWords({"target_bindings", "binding", "bindings", "target binding"},
                              config.target_bindings, config.target_binding_words,
                              config.target_binding_count, 5, error, read);
}

}  // namespace windlass
