// SPDX-License-Identifier: Apache-2.0
// Every collective of a rank on a stream of its own, and the same once more with its caller waiting
// for it: what comes of both is held against one another, bit for bit.
#pragma once

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/native/collective_calls.h"
#include "tests/native/device/stream_programs.h"

namespace windlass_test {

class EveryCollective {
 public:
  // Tensors of the rank, on that device of its process.
  EveryCollective(int rank, int ranks, int device)
      : rank_(static_cast<size_t>(rank)), ranks_(static_cast<size_t>(ranks)), counts_(ranks_) {
    in_ = gpus::tensor<float>(device, elements());
    for (size_t i = 0; i < kCases + kPartCases; ++i) {
      out_.push_back(gpus::tensor<float>(device, elements()));
      expected_.push_back(gpus::tensor<float>(device, elements()));
    }
    // Counts that all ranks know. Some ranks have no elements, and some have more than one part.
    std::mt19937_64 random(seed());
    const auto count = [&] { return random() % 4 == 0 ? 0 : static_cast<int64_t>(random() % 70); };
    for (int64_t& each : counts_) each = count();
    counts_[0] = 70;
    for (size_t from = 0; from < ranks_; ++from)
      for (size_t to = 0; to < ranks_; ++to) {
        const int64_t sent = count();
        if (from == rank_) sends_.push_back(sent);
        if (to == rank_) receives_.push_back(sent);
      }
    sendsAt_.resize(ranks_);
    receivesAt_.resize(ranks_);
    for (size_t peer = ranks_ - 1; peer > 0; --peer) {
      sendsAt_[peer - 1] = sendsAt_[peer] + sends_[peer] + 3;
      receivesAt_[peer - 1] = receivesAt_[peer] + receives_[peer] + 5;
    }
  }

  // Writes the rank's input of that round, and clears its output.
  void fill(uint32_t round) {
    std::mt19937_64 random(seed() + 1000 * round + rank_);
    for (size_t i = 0; i < elements(); ++i) {
      in_[i] = std::ldexp(static_cast<float>(static_cast<int32_t>(random())),
                          static_cast<int>(random() % 40) - 20);
    }
    for (auto* all : {&out_, &expected_})
      for (float* each : *all) std::memset(each, 0x5c, 4 * elements());
  }
  // *ticket: of the last one.
  int32_t enqueue(wl_comm_t* comm, uint64_t stream, uint64_t* ticket, Error* error) const {
    for (size_t i = 0; i < kCases; ++i) {
      const Case& of = kEach[i];
      const int32_t code =
          enqueueCollective(comm, stream, of.operation, in_, size(of.in), out_[i], size(of.out),
                            WL_F32, WL_SUM, of.algorithm, kRoot, kRows, 0, ticket, error);
      if (code != WL_OK) return code;
    }
    float* const* out = &out_[kCases];
    int32_t code = enqueueAllToAllV(
        comm, stream, in_, elements(), sends_.data(), sendsAt_.data(), out[0], elements(),
        receives_.data(), receivesAt_.data(), WL_F32, 0, ticket, error);
    if (code == WL_OK)
      code = enqueueAllGatherV(comm, stream, in_, own(), out[1], sum(), counts_.data(),
                               WL_F32, 0, ticket, error);
    if (code == WL_OK)
      code = enqueueReduceScatterV(comm, stream, in_, sum(), out[2], own(), counts_.data(),
                                   WL_F32, WL_SUM, 0, ticket, error);
    return code;
  }
  // The same, awaited by its caller.
  int32_t run(wl_comm_t* comm, Error* error) const {
    for (size_t i = 0; i < kCases; ++i) {
      const Case& of = kEach[i];
      const int32_t code =
          callCollective(comm, of.operation, in_, size(of.in), expected_[i], size(of.out), WL_F32,
                         WL_SUM, of.algorithm, kRoot, kRows, 0, error);
      if (code != WL_OK) return code;
    }
    float* const* out = &expected_[kCases];
    int32_t code = callAllToAllV(comm, in_, elements(), sends_.data(), sendsAt_.data(), out[0],
                                 elements(), receives_.data(), receivesAt_.data(), WL_F32, 0,
                                 error);
    if (code == WL_OK)
      code = callAllGatherV(comm, in_, own(), out[1], sum(), counts_.data(), WL_F32, 0, error);
    if (code == WL_OK)
      code = callReduceScatterV(comm, in_, sum(), out[2], own(), counts_.data(), WL_F32, WL_SUM, 0,
                                error);
    return code;
  }
  // The first that differs; -1: none.
  int differs() const {
    for (size_t i = 0; i < out_.size(); ++i)
      if (std::memcmp(out_[i], expected_[i], 4 * elements()) != 0) return static_cast<int>(i);
    return -1;
  }

 private:
  static constexpr size_t kPart = 120;
  static constexpr int32_t kRoot = 1;
  static constexpr int64_t kRows = 4;
  // Whether a buffer has a part for each rank.
  struct Case {
    int32_t operation;
    bool in, out;
    int32_t algorithm;
  };
  static constexpr Case kEach[] = {{WL_OP_ALL_TO_ALL, true, true, WL_PUSH},
                                   {WL_OP_ALL_TO_ALL, true, true, WL_PULL},
                                   {WL_OP_BROADCAST, false, false, WL_AUTO},
                                   {WL_OP_ALL_GATHER, false, true, WL_AUTO},
                                   {WL_OP_ALL_GATHER_DIM, false, true, WL_AUTO},
                                   {WL_OP_REDUCE_SCATTER, true, false, WL_AUTO},
                                   {WL_OP_ALL_REDUCE, false, false, WL_ONE_PHASE},
                                   {WL_OP_ALL_REDUCE, false, false, WL_TWO_PHASE},
                                   {WL_OP_ALL_REDUCE, false, false, WL_RING},
                                   {WL_OP_ALL_REDUCE, false, false, WL_BIDIRECTIONAL_RING},
                                   {WL_OP_SCATTER, true, false, WL_AUTO},
                                   {WL_OP_GATHER, false, true, WL_AUTO},
                                   {WL_OP_REDUCE, false, false, WL_AUTO},
                                   {WL_OP_REDUCE_SCATTER_DIM, true, false, WL_AUTO},
                                   {WL_OP_SCAN, false, false, WL_AUTO},
                                   {WL_OP_EXCLUSIVE_SCAN, false, false, WL_AUTO}};
  static constexpr size_t kCases = sizeof kEach / sizeof kEach[0];
  static constexpr size_t kPartCases = 3;

  size_t elements() const { return kPart * ranks_; }
  uint64_t size(bool isParts) const { return isParts ? elements() : kPart; }
  uint64_t own() const { return static_cast<uint64_t>(counts_[rank_]); }
  uint64_t sum() const {
    return static_cast<uint64_t>(std::accumulate(counts_.begin(), counts_.end(), int64_t{0}));
  }

  const size_t rank_;
  const size_t ranks_;
  float* in_;
  std::vector<float*> out_, expected_;
  std::vector<int64_t> counts_, sends_, receives_, sendsAt_, receivesAt_;
};

}  // namespace windlass_test
