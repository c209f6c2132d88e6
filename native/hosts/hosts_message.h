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

  static constexpr uint32_t kMostRanges = 4;

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

// A message and its data, as parts for the wire.
struct Hosts::Outgoing {
  Outgoing(Message::Kind kind, uint32_t about) {
    head.kind = kind;
    head.about = about;
  }
  // Stores a word of the control block, after the ranges.
  Outgoing(const Hosts& hosts, const Word& word, Message::Kind kind = Message::kStore,
           uint32_t about = 0)
      : Outgoing(kind, about) {
    head.wordAt = hosts.offsetOf(word.at);
    head.word = word.value;
    head.wordBytes = word.bytes;
  }
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  void add(const void* from, uint64_t bytes) { parts[count++] = {from, bytes}; }
  // Adds bytes of the control block, which the receiver stores at the same offset.
  void addRange(const Hosts& hosts, const void* at, uint64_t bytes) {
    head.ranges[head.count++] = {hosts.offsetOf(at), bytes};
    add(at, bytes);
  }

  Message head;
  Wire::Part parts[1 + Message::kMostRanges] = {{&head, sizeof head}};
  uint32_t count = 1;  // of parts
};

}  // namespace windlass
