// SPDX-License-Identifier: Apache-2.0
// Streaming XXH64, the hash of Yann Collet's xxHash. Specification: doc/xxhash_spec.md of xxHash
// 0.8.
#pragma once

#include <cstdint>
#include <cstring>

namespace windlass {

class Xxh64 {
 public:
  explicit Xxh64(uint64_t seed)
      : lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1}, seed_(seed) {}

  void update(const void* data, uint64_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    total_ += bytes;
    if (pending_ + bytes < kStripe) {
      std::memcpy(tail_ + pending_, at, bytes);
      pending_ += bytes;
      return;
    }
    if (pending_ > 0) {
      const uint64_t missing = kStripe - pending_;
      std::memcpy(tail_ + pending_, at, missing);
      stripes(tail_, 1);
      at += missing;
      bytes -= missing;
    }
    stripes(at, bytes / kStripe);
    pending_ = bytes % kStripe;
    std::memcpy(tail_, at + bytes - pending_, pending_);
  }

  uint64_t value() const {
    uint64_t hash = seed_ + kPrime5;
    if (total_ >= kStripe) {
      hash = rotated(lanes_[0], 1) + rotated(lanes_[1], 7) + rotated(lanes_[2], 12) +
             rotated(lanes_[3], 18);
      for (const uint64_t lane : lanes_) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
    }
    hash += total_;
    const unsigned char* at = tail_;
    uint64_t left = pending_;
    for (; left >= 8; left -= 8, at += 8)
      hash = rotated(hash ^ round(0, load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
    for (; left >= 4; left -= 4, at += 4)
      hash = rotated(hash ^ load<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    for (; left > 0; --left, ++at) hash = rotated(hash ^ *at * kPrime5, 11) * kPrime1;
    hash = (hash ^ hash >> 33) * kPrime2;
    hash = (hash ^ hash >> 29) * kPrime3;
    return hash ^ hash >> 32;
  }

 private:
  static constexpr uint64_t kStripe = 32;
  static constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u;
  static constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;
  static constexpr uint64_t kPrime3 = 0x165667B19E3779F9u;
  static constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63u;
  static constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5u;

  // Assumes little-endian byte order, which every target has.
  template <typename T>
  static uint64_t load(const unsigned char* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  static uint64_t rotated(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }
  static uint64_t round(uint64_t lane, uint64_t input) {
    return rotated(lane + input * kPrime2, 31) * kPrime1;
  }

  void stripes(const unsigned char* at, uint64_t count) {
    uint64_t a = lanes_[0], b = lanes_[1], c = lanes_[2], d = lanes_[3];
    for (; count > 0; --count, at += kStripe) {
      a = round(a, load<uint64_t>(at));
      b = round(b, load<uint64_t>(at + 8));
      c = round(c, load<uint64_t>(at + 16));
      d = round(d, load<uint64_t>(at + 24));
    }
    lanes_[0] = a, lanes_[1] = b, lanes_[2] = c, lanes_[3] = d;
  }

  uint64_t lanes_[4];
  uint64_t seed_;
  uint64_t total_ = 0;
  uint64_t pending_ = 0;  // bytes in tail_
  unsigned char tail_[kStripe];
};

}  // namespace windlass
