// SPDX-License-Identifier: Apache-2.0
// Views of local memory in a plan, decoded from the words of wl_transfer_config and checked.
#pragma once

#include <cstdint>
#include <vector>

#include "native/base/error.h"
#include "native/base/extent.h"
#include "native/transfer/words.h"
#include "windlass/kernel.h"

namespace windlass {

struct Binding {
  DType dtype;
  uint32_t ndim;
  unsigned char* data;
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];

  // Bytes from the view's first element to the end of its last one.
  uint64_t bytes() const {
    int64_t bytes = 0;
    extentOf(ndim, shape, strides, sizeOf(dtype), &bytes);
    return static_cast<uint64_t>(bytes);
  }
};

// Decodes `count` bindings of sources or of targets. Checks dtype, dimensions, alignment,
// and that every element lies inside [low, low + bytes). Targets may not have stride 0 over more
// than one element.
Code readBindings(const wl_transfer_config_t& config, bool isSource, std::vector<Binding>* bindings,
                  wl_error_t* error);

}  // namespace windlass
