// SPDX-License-Identifier: Apache-2.0
// Messages from one rank to another in the control block. Each ordered pair of ranks has a lane: a
// ring of heads that the sender fills, and a line in which the receiver answers. Every line has one
// writer.
//
// A short message travels inside its head. The head of a longer one has the address of its data,
// and the receiver acknowledges the message once it has read the data. The data is in the sender's
// buffer, or in a block of the control block to which the sender has copied it, so that the send
// is complete. Messages of a lane are numbered in order, and acknowledged in any order.
//
// If the receiver does not reach the data, it asks for the message's data by its number. The sender
// then fills the two halves of its staging buffer in turn.
//
// Lanes and blocks take memory once they are used.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/core/group_config.h"
#include "windlass/kernel.h"

namespace windlass {

// Longest message that travels inside its head.
constexpr uint64_t kShortMessageBytes = 48;
// Longest message that its sender copies, if it has a free block. Between processes, two copies of
// up to kMessageBlockBytes take less time than process_vm_readv.
constexpr uint64_t kEagerMessageBytes = 4096;
constexpr uint64_t kMessageBlockBytes = 16384;
// Half of a rank's staging buffer for messages.
constexpr uint64_t kMessageHalfBytes = uint64_t{64} << 10;

// The sender stores `number` with release after the rest.
struct alignas(kLine) MessageHead {
  uint32_t number;
  int32_t tag;
  uint64_t what;  // elements << 8 | dtype
  union {
    unsigned char data[kShortMessageBytes];
    Place place;
  };

  static uint64_t whatOf(uint64_t count, DType dtype) {
    return count << 8 | static_cast<uint64_t>(dtype);
  }
  uint64_t count() const { return what >> 8; }
  DType dtype() const { return static_cast<DType>(what & 0xff); }
  uint64_t bytes() const { return count() * sizeOf(dtype()); }
};
static_assert(sizeof(MessageHead) == kLine, "a short message is one line");

struct MessageLane {
  // A message, and the number of its pieces that are filled or read.
  struct Staged {
    uint32_t number;
    uint32_t pieces;

    uint64_t word() const { return uint64_t{number} << 32 | pieces; }
    static Staged of(uint64_t word) {
      return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
    }
  };
  // Acknowledgements that the receiver may write before the sender takes them: a power of two.
  static constexpr uint32_t kAnswers = 8;

  // Written by the receiver. Counts only increase.
  struct alignas(kLine) Answers {
    std::atomic<uint32_t> taken;     // heads that it has taken; updated now and then
    std::atomic<uint32_t> answered;  // acknowledgements so far
    std::atomic<uint64_t> read;      // Staged
    uint32_t numbers[kAnswers];      // of acknowledged messages, in turn
  } answers;
  // Written by the sender.
  struct alignas(kLine) Sender {
    std::atomic<uint32_t> heard;   // acknowledgements that it has taken
    std::atomic<uint64_t> filled;  // Staged
  } sender;

  static constexpr uint64_t bytes(uint32_t slots) {
    return sizeof(MessageLane) + slots * sizeof(MessageHead);
  }
  MessageHead& slot(uint32_t index) { return reinterpret_cast<MessageHead*>(this + 1)[index]; }
};

// A rank's memory for messages on their way.
struct MessageRoom {
  // Bit r % 64 of word r / 64: rank r has sent this rank a message. Each sender sets its own bit.
  std::atomic<uint64_t> senders[WL_MAX_RANKS / 64];
  // The rank's staging buffer, and its blocks below, hold what the rank sends.
  unsigned char halves[2][kMessageHalfBytes];

  static uint64_t bytes(const GroupConfig& config) {
    return sizeof(MessageRoom) + config.messageBlocks() * kMessageBlockBytes;
  }
  unsigned char* block(uint32_t index) {
    return reinterpret_cast<unsigned char*>(this + 1) + index * kMessageBlockBytes;
  }
};

}  // namespace windlass
