// SPDX-License-Identifier: Apache-2.0
// Layout of the macro-instructions' buffers in the tile of a kernel, and the flags between the
// pipes that fill and empty them.
#pragma once

#include <cstdint>

#include "native/isa/ascend/boxes.h"
#include "native/isa/ascend/target.h"

namespace windlass::ascend {

// Offsets and sizes in bytes within the kernel's tile:
// - inputs: two buffers, used alternately, for elements of up to 8 bytes
// - sums: two buffers, used alternately, in f32 or an integer type
// - term: one term of a sum
// - step: the intermediate type of a cast
// - results: two buffers, used alternately, for elements of up to 2 bytes
constexpr uint32_t kInputs = 0;
constexpr uint32_t kInputBytes = kTileElements * 8;
constexpr uint32_t kSums = kInputs + 2 * kInputBytes;
constexpr uint32_t kSumBytes = kTileElements * 4;
constexpr uint32_t kTerm = kSums + 2 * kSumBytes;
constexpr uint32_t kStep = kTerm + kSumBytes;
constexpr uint32_t kResults = kStep + kSumBytes;
constexpr uint32_t kResultBytes = kTileElements * 2;
constexpr uint32_t kRoomBytes = kResults + 2 * kResultBytes;

// Offset of the kernel's tile in the unified buffer.
template <typename TileT>
WL_CORE inline uint32_t roomOf(TileT& tile) {
  static_assert(TileT::Rows * TileT::Cols * sizeof(typename TileT::DType) >= kRoomBytes,
                "the tile has room for what macro-instructions stage");
  return offsetOf(tile);
}

WL_CORE inline event_t eventOf(uint32_t turn) {
  return turn == 0 ? EVENT_ID0 : EVENT_ID1;
}

// Two buffers that MTE2 fills alternately for V.
class Inputs {
 public:
  WL_CORE explicit Inputs(uint32_t room) : room_(room) {}

  // Loads the view's box and calls use(tile) to issue V's instructions on it.
  template <typename T, class Form, typename Use>
  WL_CORE void load(const Walk& walk, const Box& box, const StridedView& view, const Use& use) {
    const event_t id = eventOf(turn_);
    typename Form::template Of<T> tile(box.rows, box.columns);
    TASSIGN(tile, room_ + kInputs + turn_ * kInputBytes);
    Region<T> from = regionOf<T>(walk, box, view);
    if (filled_[turn_]) wait_flag(PIPE_V, PIPE_MTE2, id);
    TLOAD(tile, from);
    set_flag(PIPE_MTE2, PIPE_V, id);
    wait_flag(PIPE_MTE2, PIPE_V, id);
    use(tile);
    set_flag(PIPE_V, PIPE_MTE2, id);
    filled_[turn_] = true;
    turn_ = 1 - turn_;
  }
  // Like load(), but without a load: calls use() to issue V's instructions between the same flags.
  template <typename Use>
  WL_CORE void none(const Use& use) {
    const event_t id = eventOf(turn_);
    if (filled_[turn_]) wait_flag(PIPE_V, PIPE_MTE2, id);
    set_flag(PIPE_MTE2, PIPE_V, id);
    wait_flag(PIPE_MTE2, PIPE_V, id);
    use();
    set_flag(PIPE_V, PIPE_MTE2, id);
    filled_[turn_] = true;
    turn_ = 1 - turn_;
  }
  // Makes MTE2 wait until V has finished with both buffers.
  WL_CORE void end() {
    for (uint32_t turn = 0; turn < 2; ++turn) {
      if (filled_[turn]) wait_flag(PIPE_V, PIPE_MTE2, eventOf(turn));
    }
  }

 private:
  const uint32_t room_;
  uint32_t turn_ = 0;
  bool filled_[2] = {false, false};
};

// Two buffers that V fills alternately for MTE3.
class Results {
 public:
  WL_CORE explicit Results(uint32_t room) : room_(room) {}

  // Makes V wait until MTE3 has emptied the next sum and result buffer.
  WL_CORE void begin() {
    if (filled_[turn_]) wait_flag(PIPE_MTE3, PIPE_V, eventOf(turn_));
  }
  WL_CORE uint32_t sum() const { return room_ + kSums + turn_ * kSumBytes; }
  WL_CORE uint32_t result() const { return room_ + kResults + turn_ * kResultBytes; }
  WL_CORE uint32_t term() const { return room_ + kTerm; }
  WL_CORE uint32_t step() const { return room_ + kStep; }

  // Stores the tile to the box of each destination.
  template <typename T, typename TileT>
  WL_CORE void store(const Walk& walk, const Box& box, const Views& dst, TileT& tile) {
    const event_t id = eventOf(turn_);
    set_flag(PIPE_V, PIPE_MTE3, id);
    wait_flag(PIPE_V, PIPE_MTE3, id);
    for (uint32_t d = 0; d < dst.count; ++d) {
      Region<T> to = regionOf<T>(walk, box, dst[d]);
      TSTORE(to, tile);
    }
    set_flag(PIPE_MTE3, PIPE_V, id);
    filled_[turn_] = true;
    turn_ = 1 - turn_;
  }
  // Makes V and MTE2 wait until MTE3 has finished all stores.
  WL_CORE void end() {
    for (uint32_t turn = 0; turn < 2; ++turn) {
      if (filled_[turn]) wait_flag(PIPE_MTE3, PIPE_V, eventOf(turn));
    }
    set_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
    wait_flag(PIPE_MTE3, PIPE_MTE2, EVENT_ID0);
  }

 private:
  const uint32_t room_;
  uint32_t turn_ = 0;
  bool filled_[2] = {false, false};
};

}  // namespace windlass::ascend
