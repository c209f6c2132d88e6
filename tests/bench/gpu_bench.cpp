// SPDX-License-Identifier: Apache-2.0
// Operations of 8 ranks on tensors in one GPU's memory, beside what that takes for their bytes:
// all-to-all and direct redistribution beside copies, the driver's and those of a plain kernel, a
// cast beside a plain cast kernel, the least operations beside an empty kernel. A line for each; by
// kernels the first three have limits, at 256 MiB a rank: docs/explanation/speed-gpu.md says why
// not by the driver's copies.
#include <atomic>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/gpu_floor.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"
#include "tests/native/transfer_configs.h"

namespace windlass_test {
namespace {

constexpr int kRanks = 8;
constexpr int kSamples = 21;

std::string imageFile() {
  const std::string own = testing::internal::GetArgvs()[0];
  return own.substr(0, own.rfind('/') + 1) + "gpu_floor.ptx";
}

double medianOf(std::vector<int64_t> ns) {
  std::sort(ns.begin(), ns.end());
  return static_cast<double>(ns[ns.size() / 2]) / 1e3;
}

template <class Body>
double medianMicros(const Body& body) {
  std::vector<int64_t> samples;
  for (int i = -2; i < kSamples; ++i) {
    const int64_t start = wl_clock_ns();
    body();
    if (i >= 0) samples.push_back(wl_clock_ns() - start);
  }
  return medianOf(samples);
}

class GpuBench : public testing::Test {
 protected:
  GpuBench() : floor_(imageFile()) {
    floor_.openStreams(kRanks);
    isWhole_ = floor_.freeBytes() > uint64_t{6} << 30;
    bytes_ = isWhole_ ? uint64_t{256} << 20 : uint64_t{256} << 10;
  }

  void allocateAll(uint64_t inBytes, uint64_t outBytes) {
    for (int rank = 0; rank < kRanks; ++rank) {
      in_.push_back(floor_.allocate(inBytes));
      out_.push_back(floor_.allocate(outBytes));
    }
  }

  // Returns the time from the last rank's entry to the last rank's exit. open() makes a rank's
  // call.
  double ofRanks(const std::function<std::function<void()>(int rank, wl_comm_t* comm)>& open) {
    LocalRanks ranks(kRanks);
    std::atomic<int> come{0};
    std::atomic<int64_t> left[2 + kSamples] = {};
    std::atomic<int64_t> began[2 + kSamples] = {};
    ranks.run([&](int rank, wl_comm_t* comm) {
      const std::function<void()> call = open(rank, comm);
      const auto latest = [](std::atomic<int64_t>* of) {
        const int64_t now = wl_clock_ns();
        int64_t seen = *of;
        while (seen < now && !of->compare_exchange_weak(seen, now)) {
        }
      };
      for (int i = 0; i < 2 + kSamples; ++i) {
        ++come;
        while (come < (i + 1) * kRanks) std::this_thread::yield();
        latest(&began[i]);
        call();
        latest(&left[i]);
      }
    });
    std::vector<int64_t> samples;
    for (int i = 2; i < 2 + kSamples; ++i) samples.push_back(left[i] - began[i]);
    return medianOf(samples);
  }

  // Prints the time, the time of the driver's copies of the same bytes, and the time of a plain
  // kernel.
  void tellBesideCopies(const char* what, double micros, int least) const {
    tell(what, bytes_, micros, "device copies",
         medianMicros([&] { floor_.copies(out_, in_, bytes_); }), 0);
    if (!floor_.hasKernels()) {
      std::printf("# %s is compared with no kernel: gpu_floor.ptx does not load here\n", what);
      return;
    }
    tell(what, bytes_, micros, "plain copy kernels",
         medianMicros([&] { floor_.copyByKernels(out_, in_, bytes_); }), least);
  }

  // `least`: lowest share of the floor's speed, in percent. 0: the floor is not printed.
  void tell(const char* what, uint64_t bytes, double micros, const char* beside, double floorMicros,
            int least) const {
    const double percent = 100 * floorMicros / micros;
    std::printf("# %s, %d ranks, %llu bytes each: %.1f us; %s: %.1f us; %.1f %% of that speed\n",
                what, kRanks, static_cast<unsigned long long>(bytes), micros, beside, floorMicros,
                percent);
    if (!isWhole_) return;
    EXPECT_GE(percent, least) << what;
  }

  GpuFloor floor_;
  bool isWhole_;    // whether the GPU has room for what limits are stated for
  uint64_t bytes_;  // of a rank's tensor
  std::vector<void*> in_;
  std::vector<void*> out_;
};

std::function<void()> transferring(wl_comm_t* comm, const Words& source, const Words& target,
                                   const Words& chunks, uint64_t count) {
  const wl_transfer_config_t config = configOf(source, 1, target, 1, chunks, count);
  Error error;
  wl_transfer_t* transfer = nullptr;
  EXPECT_EQ(wl_transfer_create(comm, &config, 0, &transfer, &error), WL_OK) << error.message;
  const std::shared_ptr<wl_transfer_t> held(transfer, wl_transfer_free);
  return [held, version = uint64_t{0}]() mutable {
    Error failed;
    EXPECT_EQ(wl_transfer_run(held.get(), ++version, 0, &failed), WL_OK) << failed.message;
  };
}

TEST_F(GpuBench, AllToAll) {
  allocateAll(bytes_, bytes_);
  const double micros = ofRanks([&](int rank, wl_comm_t* comm) {
    return [=] {
      Error error;
      const auto at = static_cast<size_t>(rank);
      EXPECT_EQ(
          allToAll(comm, in_[at], out_[at], bytes_ / 4 / kRanks, WL_F32, WL_AUTO, 0, &error), WL_OK)
          << error.message;
    };
  });
  tellBesideCopies("all-to-all", micros, 85);
}

// Redistributes from rows to columns: each rank reads its columns of the rows of all ranks.
TEST_F(GpuBench, DirectRedistribution) {
  allocateAll(bytes_, bytes_);
  const int64_t columns = 8192;
  const int64_t rows = static_cast<int64_t>(bytes_) / 4 / columns;  // of a rank
  const int64_t own = columns / kRanks;
  const double micros = ofRanks([&](int rank, wl_comm_t* comm) {
    Words source, target, chunks;
    const auto at = static_cast<size_t>(rank);
    addBinding(WL_F32, in_[at], bytes_, {rows, columns}, {columns, 1}, &source);
    addBinding(WL_F32, out_[at], bytes_, {rows * kRanks, own}, {own, 1}, &target);
    for (int64_t from = 0; from < kRanks; ++from)
      chunks.insert(chunks.end(), {0, 0, WL_F32, WL_SUM, 2, 1, rows, own, from * rows, 0, from, 0,
                                   0, rank * own});
    return transferring(comm, source, target, chunks, kRanks);
  });
  tellBesideCopies("rows to columns", micros, 85);
}

TEST_F(GpuBench, CastOfF32ToBf16) {
  allocateAll(bytes_, bytes_ / 2);
  const auto elements = static_cast<int64_t>(bytes_ / 4);
  const double micros = ofRanks([&](int rank, wl_comm_t* comm) {
    Words source, target;
    const auto at = static_cast<size_t>(rank);
    addBinding(WL_F32, in_[at], bytes_, {elements}, {1}, &source);
    addBinding(WL_BF16, out_[at], bytes_ / 2, {elements}, {1}, &target);
    const Words chunks = {0, 0, WL_F32, WL_SUM, 1, 1, elements, 0, (rank + 1) % kRanks, 0, 0};
    return transferring(comm, source, target, chunks, 1);
  });
  if (!floor_.hasKernels()) GTEST_SKIP() << "gpu_floor.ptx does not load here";
  const double floor = medianMicros(
      [&] { floor_.castByKernels(out_, in_, static_cast<uint64_t>(elements)); });
  tell("f32 to bf16", bytes_, micros, "plain cast kernels", floor, 85);
}

TEST_F(GpuBench, LeastOperations) {
  allocateAll(16, 16);
  const double barrier = ofRanks([](int, wl_comm_t* comm) {
    return [=] {
      Error error;
      EXPECT_EQ(callBarrier(comm, 0, &error), WL_OK) << error.message;
    };
  });
  const double sum = ofRanks([&](int rank, wl_comm_t* comm) {
    return [=] {
      Error error;
      const auto at = static_cast<size_t>(rank);
      EXPECT_EQ(allReduce(comm, in_[at], out_[at], 1, WL_F32, WL_SUM, WL_AUTO, 0, &error), WL_OK)
          << error.message;
    };
  });
  if (!floor_.hasKernels()) GTEST_SKIP() << "gpu_floor.ptx does not load here";
  const double floor = medianMicros([&] { floor_.emptyKernel(); });
  tell("barrier", 0, barrier, "an empty kernel", floor, 0);
  tell("all-reduce", 4, sum, "an empty kernel", floor, 0);
}

}  // namespace
}  // namespace windlass_test
