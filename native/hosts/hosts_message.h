// SPDX-License-Identifier: Apache-2.0
// Messages between processes of several hosts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/base/copy.h"
#include "native/hosts/hosts.h"

namespace windlass {

// Bytes of a rank's state that its peers receive: those before `closing`.
constexpr uint64_t kStateBytes = offsetof(State, closing);

// Head of a message. The bytes of each range follow. The receiver stores the word last.
struct Hosts::Message {
  enum Kind : uint32_t { kStore = 1, kEntry, kLeft, kLost, kFailure, kDropped, kMove };

  static constexpr uint32_t kMostRanges = 2 + kMostRiding;

  Kind kind = kStore;
  uint32_t count = 0;  // number of ranges
  uint64_t wordAt = 0;
  uint64_t word = 0;
  uint32_t wordBytes = 0;  // 4 or 8; 0: no word
  // kEntry, kLeft, kLost: the rank. kFailure: a rank of the sender. kDropped: the window.
  uint32_t about = 0;
  struct Range {
    uint64_t at;
    uint64_t bytes;
  } ranges[kMostRanges] = {};
};

// Data after a message's head that is not taken yet.
struct Hosts::Rest {
  Run first;
  Run second;

  uint64_t bytes() const { return first.bytes + second.bytes; }
  // Takes the next `bytes`. False, and nothing is taken, if no run has as many.
  bool take(void* to, uint64_t bytes) {
    Run& run = first.bytes > 0 ? first : second;
    if (bytes > run.bytes) return false;
    copyMemory(to, run.at, bytes);
    run.at += bytes;
    run.bytes -= bytes;
    return true;
  }
};

struct Hosts::Parts {
  Parts(const Message& message, const Wire::Part* ranges, uint32_t count)
      : parts{{&message, sizeof message}} {
    for (uint32_t i = 0; i < count; ++i) parts[1 + i] = ranges[i];
  }

  Wire::Part parts[1 + Message::kMostRanges];
};

}  // namespace windlass
