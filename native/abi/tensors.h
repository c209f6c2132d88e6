// SPDX-License-Identifier: Apache-2.0
// Checks of tensors that callers describe.
#pragma once

#include <vector>

#include "native/abi/handles.h"
#include "native/base/dtype.h"
#include "native/base/target.h"
#include "native/base/text.h"

namespace windlass {

inline Code checkTensor(const wl_tensor_t* tensor, const char* name, bool isTarget,
                        wl_error_t* error) {
  if (Code code = checkNotNull(tensor, name, error)) return code;
  if (tensor->struct_size < sizeof(wl_tensor_t)) {
    return fail(error, WL_INVALID_ARGUMENT, "%s: struct_size is %u, not %zu", name,
                tensor->struct_size, sizeof(wl_tensor_t));
  }
  if (Code code = checkDType(tensor->dtype, error)) return code;
  if (tensor->ndim > WL_MAX_DIMS ||
      (tensor->ndim > 0 && (tensor->shape == nullptr || tensor->strides == nullptr))) {
    return fail(error, WL_INVALID_ARGUMENT,
                "%s: %u dimensions (at most %d), with shape and strides", name, tensor->ndim,
                WL_MAX_DIMS);
  }
  bool empty = false;
  for (uint32_t d = 0; d < tensor->ndim; ++d) {
    const int64_t stride = tensor->strides[d];
    if (tensor->shape[d] < 0 || stride < 0 || (isTarget && stride == 0 && tensor->shape[d] > 1)) {
      return fail(error, WL_INVALID_ARGUMENT, "%s: dimension %u has size %lld and stride %lld",
                  name, d, text(tensor->shape[d]), text(stride));
    }
    empty = empty || tensor->shape[d] == 0;
  }
  if (!empty && tensor->data == nullptr)
    return fail(error, WL_INVALID_ARGUMENT, "%s: data is NULL", name);
  return WL_OK;
}

// Checks that the target has GPU kernels. `what` names the device operation in errors.
inline Code checkGpus(const char* what, wl_error_t* error) {
  if (kTarget.hasGpus()) return WL_OK;
  return fail(error, WL_UNSUPPORTED,
              "%s by a device: target %s has no devices on which callers have tensors", what,
              kTarget.limits.name);
}

inline StridedView viewOf(const wl_tensor_t& tensor) {
  return {tensor.data, static_cast<DType>(tensor.dtype), tensor.ndim, tensor.shape, tensor.strides};
}

// Formats dtype and shape, for example "f32[4, 1024]".
class TensorText {
 public:
  explicit TensorText(const wl_tensor_t& tensor) {
    Text to(text_, sizeof text_);
    to.add("%s[", dtypeName(tensor.dtype));
    for (uint32_t d = 0; d < tensor.ndim; ++d)
      to.add("%s%lld", d == 0 ? "" : ", ", windlass::text(tensor.shape[d]));
    to.add("]");
  }
  const char* text() const { return text_; }

 private:
  char text_[16 + WL_MAX_DIMS * 22];
};

inline bool haveSameShape(const wl_tensor_t& a, const wl_tensor_t& b) {
  bool same = a.ndim == b.ndim;
  for (uint32_t d = 0; same && d < a.ndim; ++d) same = a.shape[d] == b.shape[d];
  return same;
}

inline Code checkSameShape(const wl_tensor_t& a, const char* aName, const wl_tensor_t& b,
                           const char* bName, wl_error_t* error) {
  if (haveSameShape(a, b)) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "%s is %s, %s %s; shapes must agree", aName,
              TensorText(a).text(), bName, TensorText(b).text());
}

inline Code checkSourceCount(uint32_t count, wl_error_t* error) {
  if (count >= 1 && count <= WL_MAX_RANKS) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "count %u is not 1 to %d", count, WL_MAX_RANKS);
}

// Checks the number of a fold's sources, and its op.
inline Code checkFold(const wl_tensor_t* const* sources, uint32_t count, int32_t op,
                      wl_error_t* error) {
  if (Code code = checkNotNull(sources, "sources", error)) return code;
  if (Code code = checkSourceCount(count, error)) return code;
  if (op >= 0 && op < WL_REDUCE_OP_COUNT) return WL_OK;
  return fail(error, WL_INVALID_ARGUMENT, "op %d is unknown", op);
}

// Sets *views to the sources of a fold. First checks that they have the shape and the dtype of
// `like`, which may be the first of them. Throws std::bad_alloc.
inline Code readSources(const wl_tensor_t* const* sources, uint32_t count,
                        const wl_tensor_t* like, const char* likeName,
                        std::vector<StridedView>* views, wl_error_t* error) {
  views->resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (Code code = checkTensor(sources[i], "a source", false, error)) return code;
    if (Code code = checkSameShape(*like, likeName, *sources[i], "a source", error)) return code;
    if (sources[i]->dtype != like->dtype)
      return fail(error, WL_INVALID_ARGUMENT, "source %u has another dtype", i);
    (*views)[i] = viewOf(*sources[i]);
  }
  return WL_OK;
}

}  // namespace windlass
