// SPDX-License-Identifier: Apache-2.0
// Tokens that go to experts and back, of which every byte is known.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/native/comm/comms.h"

namespace windlass_test {

// Token t of rank r goes to experts t + r and t + r + 3, of 2 on each rank, and what they make of
// it is itself. Elements are small integers and weights powers of two: sums are exact.
class ExpertExchange {
 public:
  explicit ExpertExchange(int ranks) : ranks_(ranks) {
    experts_.struct_size = sizeof experts_;
    experts_.dtype = WL_F32;
    experts_.ranks = static_cast<uint32_t>(ranks);
    experts_.experts = 2 * experts_.ranks;
    experts_.top_k = 2;
    experts_.alignment = 4;
    experts_.hidden = kHidden;
    experts_.tokens = kTokens;
    experts_.rows = 2 * experts_.ranks * kTokens;
    layout_.struct_size = sizeof layout_;
    Error error;
    if (wl_experts_lay_out(&experts_, &layout_, &error) != WL_OK) std::abort();
  }

  uint64_t bufferBytes() const { return layout_.buffer_bytes; }

  // Of one rank, `times` times by the same table, which keeps its rows: the first that is wrong, or
  // nothing. Experts' rows lie in `buffer`.
  std::string run(wl_comm_t* comm, void* buffer, int times) const {
    const int rank = wl_comm_rank(comm);
    const int count = tokensOf(rank);
    std::vector<float> tokens;
    std::vector<int32_t> ids;
    std::vector<float> weights;
    for (int t = 0; t < count; ++t) {
      for (int i = 0; i < kHidden; ++i) tokens.push_back(value(rank, t, i));
      for (int k = 0; k < 2; ++k) {
        ids.push_back(expertOf(rank, t, k));
        weights.push_back(weight(k));
      }
    }
    std::vector<uint64_t> table(layout_.table_bytes / 8);
    const auto size = static_cast<uint64_t>(count);
    Error error;
    if (wl_experts_route(comm, &experts_, table.data(), 0, size, ids.data(), WL_I32, weights.data(),
                         &error) != WL_OK)
      return error.message;
    const std::vector<unsigned char> expected = bufferOf(rank);
    for (int i = 0; i < times; ++i) {
      std::memset(buffer, 0xff, layout_.buffer_bytes);
      if (wl_experts_dispatch(comm, table.data(), buffer, tokens.data(), size, 0, &error) != WL_OK)
        return error.message;
      if (std::memcmp(buffer, expected.data(), expected.size()) != 0)
        return "rank " + std::to_string(rank) + " got other rows, or records";
      std::vector<float> out(tokens.size(), -1);
      if (wl_experts_combine(comm, table.data(), buffer, WL_F32, out.data(), size, 0, &error) !=
          WL_OK)
        return error.message;
      for (size_t at = 0; at < out.size(); ++at) {
        if (out[at] != (weight(0) + weight(1)) * tokens[at])
          return "rank " + std::to_string(rank) + " got another sum at " + std::to_string(at);
      }
    }
    return "";
  }

 private:
  static constexpr int kTokens = 37;
  static constexpr int kHidden = 40;

  static int tokensOf(int rank) { return kTokens - rank; }
  static float value(int rank, int token, int i) {
    return static_cast<float>(1000 * rank + 10 * token + i % 10);
  }
  static float weight(int k) { return k == 0 ? 0.5f : 2.0f; }
  int expertOf(int rank, int token, int k) const { return (token + rank + 3 * k) % (2 * ranks_); }

  // What a dispatch leaves in the rank's buffer of 0xff bytes.
  std::vector<unsigned char> bufferOf(int rank) const {
    struct Record {
      int32_t rank, token, slot;
      float weight;
    };
    std::vector<unsigned char> all(layout_.buffer_bytes, 0xff);
    size_t row = 0;
    const auto record = [&](const Record& of) {
      std::memcpy(&all[layout_.records_at + row * sizeof of], &of, sizeof of);
      ++row;
    };
    for (int expert = 2 * rank; expert < 2 * rank + 2; ++expert) {
      for (int from = 0; from < ranks_; ++from) {
        for (int t = 0; t < tokensOf(from); ++t) {
          for (int k = 0; k < 2; ++k) {
            if (expertOf(from, t, k) != expert) continue;
            for (int i = 0; i < kHidden; ++i) {
              const float element = value(from, t, i);
              std::memcpy(&all[(row * kHidden + static_cast<size_t>(i)) * sizeof element], &element,
                          sizeof element);
            }
            record({from, t, k, weight(k)});
          }
        }
      }
      while (row % experts_.alignment != 0) record({-1, -1, -1, 0.0f});
    }
    return all;
  }

  const int ranks_;
  wl_experts_t experts_ = {};
  wl_experts_layout_t layout_ = {};
};

}  // namespace windlass_test
