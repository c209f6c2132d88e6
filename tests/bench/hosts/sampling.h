// SPDX-License-Identifier: Apache-2.0
// How operations over several hosts are timed, by every contender alike: rank 0's time for a batch
// of them one after another, and of so many batches the median.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace hosts_bench {

constexpr int kBatches = 11;
// Bytes of a put: one whose latency counts, and one whose bandwidth does.
constexpr uint64_t kShortPut = 8;
constexpr uint64_t kLongPut = uint64_t{16} << 20;

inline std::vector<uint64_t> sizes() {
  std::vector<uint64_t> all;
  for (uint64_t bytes = 4 << 10; bytes <= uint64_t{64} << 20; bytes *= 4) all.push_back(bytes);
  return all;
}

inline int callsOf(uint64_t bytes) {
  return static_cast<int>(std::clamp<uint64_t>((uint64_t{8} << 20) / bytes, 2, 512));
}

// us a call.
template <class Call>
double sample(uint64_t bytes, Call&& call) {
  const int calls = callsOf(bytes);
  std::vector<double> batches;
  for (int i = 0; i < calls; ++i) call();
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - start;
    batches.push_back(took.count() / calls);
  }
  std::nth_element(batches.begin(), batches.begin() + kBatches / 2, batches.end());
  return batches[kBatches / 2];
}

inline void print(const char* operation, uint64_t bytes, double us) {
  std::printf("%s %llu %.2f\n", operation, static_cast<unsigned long long>(bytes), us);
  std::fflush(stdout);
}

}  // namespace hosts_bench
