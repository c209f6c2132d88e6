// SPDX-License-Identifier: Apache-2.0
#include "native/transfer/stages.h"

#include <algorithm>

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

Code Stages::read(const wl_transfer_config_t& config, wl_error_t* error) {
  const auto readOne = [&](Words& in, wl_error_t* why) { return readBox(in, why); };
  const Code code = readWords({"stages", "box", "boxes", "staged box"}, config.stages,
                              config.stage_words, config.stage_count, 5, error, readOne);
  return code != WL_OK || boxes_.empty() ? code : allocate(error);
}

Code Stages::readBox(Words& in, wl_error_t* error) {
  const int64_t phase = in.take();
  const int64_t dtype = in.take();
  const int64_t ndim = in.take();
  const int64_t offset = in.take();
  const int64_t readers = in.take();
  if (phase < 0 || phase >= WL_MAX_PHASES) {
    return fail(error, WL_UNSUPPORTED,
                "phase %lld of at most %d; larger buckets take fewer phases", text(phase),
                WL_MAX_PHASES);
  }
  if (dtype < 0 || dtype >= kDTypeCount || ndim < 0 || ndim > kMaxDims || readers < 0 ||
      readers > WL_MAX_RANKS || !in.has(static_cast<uint64_t>(ndim + readers))) {
    return fail(error, WL_INVALID_ARGUMENT,
                "dtype %lld, %lld dimensions, %lld readers, or its words end early", text(dtype),
                text(ndim), text(readers));
  }
  Box box = {};
  box.phase = static_cast<uint32_t>(phase);
  box.offset = static_cast<uint64_t>(offset);
  box.view.dtype = static_cast<DType>(dtype);
  box.view.ndim = static_cast<uint32_t>(ndim);
  std::copy_n(in.take(box.view.ndim), ndim, box.view.shape);
  int64_t end = 0;
  if (!makeDense(&box.view, &end) || offset < 0 || box.offset % sizeOf(box.view.dtype) != 0 ||
      __builtin_add_overflow(end, offset, &end)) {
    return fail(error, WL_INVALID_ARGUMENT,
                "offset %lld is negative or not aligned to its dtype, or its shape is empty or "
                "overflows 63 bits",
                text(offset));
  }
  // Limits each half, so that the sum of both does not overflow.
  if (static_cast<uint64_t>(end) > kLargest) {
    return fail(error, WL_RESOURCE, "ends at byte %lld, more than a process can address",
                text(end));
  }
  box.readers = static_cast<uint32_t>(readers);
  box.firstReader = readers_.size();
  for (int64_t r = 0; r < readers; ++r) {
    const int64_t reader = in.take();
    if (reader < 0 || reader >= WL_MAX_RANKS)
      return fail(error, WL_INVALID_ARGUMENT, "reader %lld is no rank", text(reader));
    readers_.push_back(static_cast<uint32_t>(reader));
  }
  uint64_t& half = halves_[box.phase & 1];
  half = std::max(half, wholeLines(static_cast<uint64_t>(end)));
  boxes_.push_back(box);
  return WL_OK;
}

Code Stages::allocate(wl_error_t* error) {
  void* memory = nullptr;
  if (Code code = allocateMemory(bytes(), 0, &memory, error)) return code;
  memory_.reset(memory);
  for (Box& box : boxes_) {
    const uint64_t half = (box.phase & 1) != 0 ? halves_[0] : 0;
    box.view.data = static_cast<unsigned char*>(memory) + half + box.offset;
  }
  return WL_OK;
}

}  // namespace windlass
