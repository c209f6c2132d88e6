// SPDX-License-Identifier: Apache-2.0
// Moves and atomic adds without a cast: MTE2 fills one tile while MTE3 empties the other.
#pragma once

#include <cstdint>

#include "native/isa/ascend/buffers.h"

namespace windlass::ascend {

// dst[0], dst[1], ... = src, or += src, for elements of T's size.
template <typename T, AtomicType kAtomic, class Form>
WL_CORE inline void moveBoxes(uint32_t room, const Walk& walk, const Views& dst,
                              const StridedView& src) {
  uint32_t turn = 0;
  bool filled[2] = {false, false};
  forEachBox<Form>(walk, [&](const Box& box) {
    const event_t id = eventOf(turn);
    typename Form::template Of<T> tile(box.rows, box.columns);
    TASSIGN(tile, room + kInputs + turn * kInputBytes);
    Region<T> from = regionOf<T>(walk, box, src);
    if (filled[turn]) wait_flag(PIPE_MTE3, PIPE_MTE2, id);
    TLOAD(tile, from);
    set_flag(PIPE_MTE2, PIPE_MTE3, id);
    wait_flag(PIPE_MTE2, PIPE_MTE3, id);
    for (uint32_t d = 0; d < dst.count; ++d) {
      Region<T> to = regionOf<T>(walk, box, dst[d]);
      TSTORE<typename Form::template Of<T>, Region<T>, kAtomic>(to, tile);
    }
    set_flag(PIPE_MTE3, PIPE_MTE2, id);
    filled[turn] = true;
    turn = 1 - turn;
  });
  for (turn = 0; turn < 2; ++turn) {
    if (filled[turn]) wait_flag(PIPE_MTE3, PIPE_MTE2, eventOf(turn));
  }
}

template <typename T, AtomicType kAtomic>
WL_CORE inline void moveAs(uint32_t room, const Walk& walk, const Views& dst,
                           const StridedView& src) {
  inForm(walk, [&](auto form) { moveBoxes<T, kAtomic, decltype(form)>(room, walk, dst, src); });
}

// Copies every bit unchanged, for any dtype.
WL_CORE inline void moveBits(uint32_t room, const Walk& walk, const Views& dst,
                             const StridedView& src) {
  switch (sizeOf(src.dtype)) {
    case 1:
      return moveAs<uint8_t, AtomicType::AtomicNone>(room, walk, dst, src);
    case 2:
      return moveAs<uint16_t, AtomicType::AtomicNone>(room, walk, dst, src);
    case 4:
      return moveAs<uint32_t, AtomicType::AtomicNone>(room, walk, dst, src);
    default:
      return moveAs<uint64_t, AtomicType::AtomicNone>(room, walk, dst, src);
  }
}

WL_CORE inline void addAtomically(uint32_t room, const Walk& walk, const Views& dst,
                                  const StridedView& src) {
  constexpr AtomicType kAdd = AtomicType::AtomicAdd;
  switch (src.dtype) {
    case DType::kF32:
      return moveAs<float, kAdd>(room, walk, dst, src);
    case DType::kF16:
      return moveAs<half, kAdd>(room, walk, dst, src);
    case DType::kBF16:
      return moveAs<bfloat16_t, kAdd>(room, walk, dst, src);
    case DType::kI32:
      return moveAs<int32_t, kAdd>(room, walk, dst, src);
    case DType::kI16:
      return moveAs<int16_t, kAdd>(room, walk, dst, src);
    case DType::kI8:
      return moveAs<int8_t, kAdd>(room, walk, dst, src);
    default:
      return refuse("TMOVE_ADD", src.dtype);
  }
}

}  // namespace windlass::ascend
