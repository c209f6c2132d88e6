// SPDX-License-Identifier: Apache-2.0
// C ABI: tensors in local memory.
#include <cstring>

#include "native/abi/tensors.h"
#include "native/base/extent.h"
#include "native/base/target.h"

using namespace windlass;

static_assert(kDTypeCount == WL_DTYPE_COUNT && DType{WL_C64} == DType::kC64 &&
                  DType{WL_BF16} == DType::kBF16 && DType{WL_F8E4M3} == DType::kF8E4M3 &&
                  DType{WL_F32} == DType::kF32 && DType{WL_U64} == DType::kU64,
              "one numbering of dtypes");
static_assert(kReduceOpCount == WL_REDUCE_OP_COUNT && ReduceOp{WL_AVG} == ReduceOp::kAvg &&
                  ReduceOp{WL_PRODUCT} == ReduceOp::kProduct &&
                  ReduceOp{WL_AND} == ReduceOp::kAnd && ReduceOp{WL_XOR} == ReduceOp::kXor &&
                  ReduceOp{WL_PREMULTIPLIED_SUM} == ReduceOp::kPremultipliedSum,
              "one numbering of ops");
static_assert(kMaxDims == WL_MAX_DIMS, "one limit of dimensions");

extern "C" {

int32_t wl_tensor_copy(const wl_tensor_t* dst, const wl_tensor_t* src, wl_error_t* error) {
  if (Code code = checkTensor(dst, "dst", true, error)) return code;
  if (Code code = checkTensor(src, "src", false, error)) return code;
  if (Code code = checkSameShape(*dst, "dst", *src, "src", error)) return code;
  if (!canCast(static_cast<DType>(src->dtype), static_cast<DType>(dst->dtype))) {
    return fail(error, WL_UNSUPPORTED, "src has dtype %s, which doesn't cast to dst's %s",
                dtypeName(src->dtype), dtypeName(dst->dtype));
  }
  const StridedView to = viewOf(*dst);
  const StridedView from = viewOf(*src);
  if (shareBytes(from, to)) {
    return fail(error, WL_INVALID_ARGUMENT, "copy: source (%s) overlaps target (%s)",
                TensorText(*src).text(), TensorText(*dst).text());
  }
  kTarget.move(&to, 1, from, to.dtype, Stores::kCached);
  return WL_OK;
}

int32_t wl_tensor_fill(const wl_tensor_t* dst, const void* element, wl_error_t* error) {
  if (Code code = checkTensor(dst, "dst", true, error)) return code;
  if (Code code = checkNotNull(element, "element", error)) return code;
  const int64_t zeros[WL_MAX_DIMS] = {};
  StridedView one = viewOf(*dst);
  alignas(8) unsigned char value[8];
  std::memcpy(value, element, sizeOf(one.dtype));
  one.data = value;
  one.strides = zeros;
  const StridedView to = viewOf(*dst);
  kTarget.move(&to, 1, one, to.dtype, Stores::kCached);
  return WL_OK;
}

int32_t wl_tensor_fold(const wl_tensor_t* dst, const wl_tensor_t* const* sources, uint32_t count,
                       int32_t op, wl_error_t* error) {
  if (Code code = checkTensor(dst, "dst", true, error)) return code;
  if (Code code = checkFold(sources, count, op, error)) return code;
  if (!canReduce(static_cast<DType>(dst->dtype), static_cast<ReduceOp>(op))) {
    return fail(error, WL_UNSUPPORTED, "dtype %s doesn't reduce with %s",
                dtypeName(dst->dtype), reduceOpName(op));
  }
  const auto fold = [&] {
    std::vector<StridedView> views;
    if (Code code = readSources(sources, count, dst, "dst", &views, error)) return code;
    const StridedView target = viewOf(*dst);
    kTarget.fold(&target, 1, views.data(), count, static_cast<ReduceOp>(op), target.dtype,
                 Stores::kCached);
    return WL_OK;
  };
  return withMemory(error, fold, "out of memory for %u views", count);
}

int32_t wl_tensors_overlap(const wl_tensor_t* a, const wl_tensor_t* b) {
  if (checkTensor(a, "a", false, nullptr) != WL_OK || checkTensor(b, "b", false, nullptr) != WL_OK)
    return 0;
  return shareBytes(viewOf(*a), viewOf(*b)) ? 1 : 0;
}

int32_t wl_dtype_size(int32_t dtype) {
  return dtype >= 0 && dtype < WL_DTYPE_COUNT
             ? static_cast<int32_t>(sizeOf(static_cast<DType>(dtype)))
             : 0;
}

int32_t wl_dtype_can_cast(int32_t from, int32_t to) {
  return wl_dtype_size(from) > 0 && wl_dtype_size(to) > 0 &&
         canCast(static_cast<DType>(from), static_cast<DType>(to));
}

int32_t wl_dtype_can_reduce(int32_t dtype, int32_t op) {
  return wl_dtype_size(dtype) > 0 && op >= 0 && op < WL_REDUCE_OP_COUNT &&
         canReduce(static_cast<DType>(dtype), static_cast<ReduceOp>(op)) &&
         kTarget.limits.hasReduce(static_cast<DType>(dtype), static_cast<ReduceOp>(op));
}

}  // extern "C"
