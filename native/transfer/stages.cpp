// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/stages.h"

#include <algorithm>
#include <cstring>

namespace windlass {
namespace {

// Sets the view's strides to those of a dense box, and `bytes` to its size. Returns false if the
// box is empty or its size overflows 63 bits.
bool makeDense(Binding* view, int64_t* bytes) {
  *bytes = 1;
  for (uint32_t d = view->ndim; d-- > 0;) {
    view->strides[d] = *bytes;
    if (view->shape[d] <= 0 || __builtin_mul_overflow(*bytes, view->shape[d], bytes)) return false;
  }
  return !__builtin_mul_overflow(*bytes, static_cast<int64_t>(sizeOf(view->dtype)), bytes);
}

}  // namespace

Code Stages::read(const int64_t* words, uint64_t wordCount, uint64_t count, wl_error_t* error) {
  if (words == nullptr && wordCount != 0) return fail(error, WL_INVALID_ARGUMENT, "stages is NULL");
  Words in(words, wordCount);
  std::vector<int64_t> offsets;
  uint64_t half[2] = {0, 0};
  for (uint64_t i = 0; i < count; ++i) {
    const auto index = static_cast<unsigned long long>(i);
    if (!in.has(5)) return fail(error, WL_INVALID_ARGUMENT, "stages end within box %llu", index);
    const int64_t phase = in.take();
    const int64_t dtype = in.take();
    const int64_t ndim = in.take();
    const int64_t offset = in.take();
    const int64_t readers = in.take();
    if (phase < 0 || phase >= WL_MAX_PHASES) {
      return fail(error, WL_UNSUPPORTED,
                  "staged box %llu: phase %lld of at most %d; larger buckets take fewer phases",
                  index, static_cast<long long>(phase), WL_MAX_PHASES);
    }
    if (dtype < 0 || dtype >= kDTypeCount || ndim < 0 || ndim > kMaxDims || readers < 0 ||
        readers > WL_MAX_RANKS || !in.has(static_cast<uint64_t>(ndim + readers))) {
      return fail(error, WL_INVALID_ARGUMENT,
                  "staged box %llu: dtype %lld, %lld dimensions, %lld readers, or its words end "
                  "early",
                  index, static_cast<long long>(dtype), static_cast<long long>(ndim),
                  static_cast<long long>(readers));
    }
    Box box = {};
    box.phase = static_cast<uint32_t>(phase);
    box.view.dtype = static_cast<DType>(dtype);
    box.view.ndim = static_cast<uint32_t>(ndim);
    const int64_t* shape = in.take(static_cast<uint64_t>(ndim));
    std::copy(shape, shape + ndim, box.view.shape);
    int64_t end = 0;
    if (!makeDense(&box.view, &end) || offset < 0 ||
        offset % static_cast<int64_t>(sizeOf(box.view.dtype)) != 0 ||
        __builtin_add_overflow(end, offset, &end)) {
      return fail(error, WL_INVALID_ARGUMENT,
                  "staged box %llu: offset %lld is negative or not aligned to its dtype, or its "
                  "shape is empty or overflows 63 bits",
                  index, static_cast<long long>(offset));
    }
    // Limits each half, so that the sum of both does not overflow.
    if (static_cast<uint64_t>(end) > kLargest) {
      return fail(error, WL_RESOURCE,
                  "staged box %llu: ends at byte %lld, more than a process can address", index,
                  static_cast<long long>(end));
    }
    box.readers = static_cast<uint32_t>(readers);
    box.firstReader = readers_.size();
    for (int64_t r = 0; r < readers; ++r) {
      const int64_t reader = in.take();
      if (reader < 0 || reader >= WL_MAX_RANKS) {
        return fail(error, WL_INVALID_ARGUMENT, "staged box %llu: reader %lld is no rank", index,
                    static_cast<long long>(reader));
      }
      readers_.push_back(static_cast<uint32_t>(reader));
    }
    half[box.phase & 1] = std::max(half[box.phase & 1], static_cast<uint64_t>(end));
    offsets.push_back(offset);
    boxes_.push_back(box);
  }
  if (!in.ended()) {
    return fail(error, WL_INVALID_ARGUMENT, "stages hold more words than %llu boxes need",
                static_cast<unsigned long long>(count));
  }
  return boxes_.empty() ? WL_OK : allocate(offsets, half, error);
}

Code Stages::allocate(const std::vector<int64_t>& offsets, const uint64_t (&half)[2],
                      wl_error_t* error) {
  bytes_ = wholeLines(half[0]) + wholeLines(half[1]);
  void* memory = nullptr;
  if (Code code = allocateMemory(bytes_, 0, &memory, error); code != WL_OK) return code;
  memory_.reset(memory);
  for (size_t i = 0; i < boxes_.size(); ++i) {
    auto* base = static_cast<unsigned char*>(memory);
    if ((boxes_[i].phase & 1) != 0) base += wholeLines(half[0]);
    boxes_[i].view.data = base + offsets[i];
  }
  return WL_OK;
}

}  // namespace windlass
