// SPDX-License-Identifier: Apache-2.0
// State that a rank with a device publishes to the other ranks on the host while they hand over an
// operation. Also the progress of an operation on devices, as far as the host knows it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

namespace windlass {

// The name of a call of a rank's driver. Other processes may read it at any time, one word after
// another.
class ToldCall {
 public:
  static constexpr size_t kRoom = 64;

  // nullptr: no call.
  void set(const char* call) {
    uint64_t words[kWords] = {};
    if (call != nullptr) std::strncpy(reinterpret_cast<char*>(words), call, kRoom - 1);
    for (size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
  }
  // Returns true if there is a call.
  bool read(char (&text)[kRoom]) const {
    uint64_t words[kWords];
    for (size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_relaxed);
    std::memcpy(text, words, kRoom);
    text[kRoom - 1] = 0;
    return text[0] != 0;
  }

 private:
  static constexpr size_t kWords = kRoom / sizeof(uint64_t);

  std::atomic<uint64_t> words_[kWords] = {};
};

struct OffloadLine {
  static constexpr uint64_t kMostBytes = 128;

  alignas(64) std::atomic<uint64_t> turn{0};
  std::atomic<uint64_t> taken{0};  // last operation that got the devices of the rank's process
  std::atomic<uint64_t> come{0};   // last stream operation that the rank's stream reached
  alignas(64) unsigned char said[2][kMostBytes] = {};
  alignas(64) ToldCall call;  // a call of the rank's driver that has lasted for some time
};

// Progress of an operation on the devices of its ranks, as one of these devices sees it.
struct OffloadProgress {
  struct Rank {
    uint32_t over;  // phases that all of its cores have ended
    uint32_t core;  // the first core that has ended only this many
    bool hasBegun;  // all of its cores have reported that they began
  };
  uint32_t phases;
  std::vector<Rank> ranks;

  // The smallest number of phases that any rank has ended.
  uint32_t fewest() const {
    uint32_t fewest = phases;
    for (const Rank& rank : ranks) fewest = std::min(fewest, rank.over);
    return fewest;
  }
};

}  // namespace windlass
