// SPDX-License-Identifier: Apache-2.0
// Kernels of libraries on GPUs, over the stand-in for NVIDIA's driver: where tensors may lie, what
// is loaded and when, what is refused, and whichever call fails, nothing stays behind.
#include <map>
#include <numeric>

#include "tests/native/collective_calls.h"
#include "tests/native/core/launches.h"
#include "tests/native/cuda/failing_calls.h"
#include "tests/native/cuda/no_memory.h"
#include "tests/native/cuda/stand_in.h"

namespace windlass_test {
namespace launches_test {

constexpr int kRanks = 3;
constexpr int64_t kCount = 5000;

class GpusLaunches : public testing::Test {
 protected:
  GpusLaunches() { gpus::reset(); }
  ~GpusLaunches() override { gpus::reset(); }
};

// Windows of all ranks, on their GPUs.
class DeviceWindows {
 public:
  DeviceWindows(LocalRanks& ranks, uint64_t bytes) : handles_(static_cast<size_t>(ranks.size())) {
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      ASSERT_EQ(WL_OK, wl_device_window_create(comm, bytes, 0, &handle(rank), &error))
          << error.message;
    });
  }
  ~DeviceWindows() {
    for (wl_window_t* window : handles_) wl_window_free(window);
  }
  DeviceWindows(const DeviceWindows&) = delete;

  wl_window_t*& handle(int rank) { return handles_[static_cast<size_t>(rank)]; }
  float* at(int rank) { return static_cast<float*>(wl_window_address(handle(rank), rank)); }

 private:
  std::vector<wl_window_t*> handles_;
};

int shift(wl_comm_t* comm, const float* in, const float* out, const wl_window_t* window,
          int32_t steps, Error* error) {
  Words words;
  words.tensor(WL_F32, in, {kCount}).tensor(WL_F32, out, {kCount}, window);
  return words.scalar(WL_I32, steps).launch(comm, "shift", error);
}

void fill(float* in, int rank) {
  std::iota(in, in + kCount, 10'000.0f * static_cast<float>(rank));
}
void expectFrom(int rank, const float* out) {
  for (int64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(out[i], 10'000.0f * static_cast<float>(rank) + static_cast<float>(i)) << i;
}

TEST_F(GpusLaunches, UseTensorsOnTheirOwnGpuWhereTheyLie) {
  for (const int devices : {1, 2, 3}) {
    gpus::reset();
    gpus::devices(devices);
    {
      LocalRanks ranks(kRanks);
      DeviceWindows windows(ranks, kCount * sizeof(float));
      ranks.run([&](int rank, wl_comm_t* comm) {
        float* const in = gpus::tensor<float>(rank % devices, kCount);
        fill(in, rank);
        for (const int32_t steps : {1, 2}) {
          Error error;
          ASSERT_EQ(shift(comm, in, windows.at(rank), windows.handle(rank), steps, &error), WL_OK)
              << error.message;
          expectFrom((rank + kRanks - steps) % kRanks, windows.at(rank));
          ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
        }
      });
    }
    for (const std::string& line : gpus::log())
      EXPECT_EQ(line.find(" " + std::to_string(kCount * sizeof(float))), std::string::npos) << line;
    // Windlass' own kernels and the library's, once each, before the first grid.
    EXPECT_EQ(gpus::countCalls("cuModuleLoadData"), 2 * devices);
    EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 2 * devices);
    int loaded = 0;
    for (const std::string& line : gpus::log()) {
      if (line.rfind("cuLaunchCooperativeKernel", 0) == 0) break;
      loaded += line == "cuModuleLoadData" ? 1 : 0;
    }
    EXPECT_EQ(loaded, 2 * devices);
    EXPECT_EQ(gpus::held(), "3 allocations") << "the tensors";
  }
}

TEST_F(GpusLaunches, CopyTensorsOfTheHostAndOfOtherGpus) {
  for (const int devices : {1, 3}) {
    for (const bool isOnHost : {false, true}) {
      gpus::reset();
      gpus::devices(devices);
      LocalRanks ranks(kRanks);
      Windows windows(ranks, kCount * sizeof(float) + 64, 0);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<float> own(kCount);
        float* const in =
            isOnHost ? own.data() : gpus::tensor<float>((rank + 1) % devices, kCount);
        fill(in, rank);
        auto* const out = reinterpret_cast<float*>(windows.at(rank, 64));
        Error error;
        ASSERT_EQ(shift(comm, in, out, windows.handle(rank), 1, &error), WL_OK) << error.message;
        expectFrom((rank + kRanks - 1) % kRanks, out);
      });
    }
  }
}

// Elements become what the kernel `vocabulary` makes of them.
int work(wl_comm_t* comm, const float* in, const float* out, int64_t count, Error* error) {
  Words words;
  words.tensor(WL_F32, in, {count}).tensor(WL_F32, out, {count});
  return words.launch(comm, "vocabulary", error);
}

TEST_F(GpusLaunches, TakeOneTensorAsTwoArguments) {
  LocalRanks ranks(2);
  ranks.run([&](int, wl_comm_t* comm) {
    std::vector<float> data(100, 5.0f);
    Error error;
    ASSERT_EQ(work(comm, data.data(), data.data(), 100, &error), WL_OK) << error.message;
    for (const float each : data) ASSERT_EQ(each, 4.0f);
  });
}

TEST_F(GpusLaunches, RefuseTensorsOfWhichEachHoldsPartOfTheOther) {
  LocalRanks ranks(1);
  ranks.run([&](int, wl_comm_t* comm) {
    std::vector<float> data(100, 5.0f);
    Error error;
    EXPECT_EQ(work(comm, data.data(), data.data() + 10, 90 - 1, &error), WL_UNSUPPORTED);
    EXPECT_TRUE(contains(error.message, "argument 0, in, and argument 1, out, overlap in part"));
  });
}

TEST_F(GpusLaunches, RefuseTensorsOfNoMemoryAndTheCommunicatorLives) {
  const NoMemory none;
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    std::vector<float> data(100, 5.0f);
    const auto* in = rank == 1 ? static_cast<const float*>(none.begin()) : data.data();
    Error error;
    EXPECT_EQ(work(comm, in, data.data(), 100, &error), WL_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(error.message, rank == 1 ? "in of kernel vocabulary, 400 bytes at 0x"
                                                  : "rank 1 does not take"))
        << error.message;
    EXPECT_EQ(error.operation, WL_OP_LAUNCH);
    ASSERT_EQ(error.faulty_rank_count, 1);
    EXPECT_EQ(error.faulty_ranks[0], 1);
    ASSERT_EQ(work(comm, data.data(), data.data(), 100, &error), WL_OK) << error.message;
  });
}

TEST_F(GpusLaunches, OfMoreRanksThanRunAtATimeAreRefused) {
  gpus::libraryBlocks(0);
  LocalRanks ranks(2);
  ranks.run([&](int, wl_comm_t* comm) {
    std::vector<float> in(100, 5.0f);
    std::vector<float> out(100);
    Error error;
    EXPECT_EQ(work(comm, in.data(), out.data(), 100, &error), WL_UNSUPPORTED);
    EXPECT_TRUE(contains(error.message, "runs fewer blocks of vocabulary's library at a time"));
  });
}

// Every rank whose launch fails says of which call, and nothing is left.
TEST_F(GpusLaunches, AFailureOfAnyCallIsTold) {
  const auto launch = [] {
    std::vector<std::pair<int32_t, std::string>> outcomes(2);
    LocalRanks ranks(2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      std::vector<float> in(100, 5.0f);
      std::vector<float> out(100);
      Error error;
      const int32_t code = work(comm, in.data(), out.data(), 100, &error);
      outcomes[static_cast<size_t>(rank)] = {code, error.message};
      for (const float each : out) {
        EXPECT_EQ(each, code == WL_OK ? 4.0f : each);
      }
    });
    return outcomes;
  };
  launch();
  std::map<std::string, int> calls;
  for (const std::string& line : gpus::log()) ++calls[line.substr(0, line.find(' '))];
  for (const char* once : {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount"}) calls.erase(once);
  EXPECT_EQ(calls["cuModuleLoadData"], 2);
  int failed = 0;
  for (const auto& [call, count] : calls) {
    for (const int number : callsToFail(count, Failing::kLast)) {
      gpus::reset();
      gpus::failCall(call, number, 719);
      for (const auto& [code, message] : launch()) {
        if (code == WL_OK) continue;
        ++failed;
        EXPECT_EQ(code, WL_DEVICE) << call << ": " << message;
        EXPECT_TRUE(contains(message.c_str(), call + " of device"));
      }
      const bool gives = call.find("Free") != std::string::npos ||
                         call.find("Release") != std::string::npos || call == "cuMemUnmap" ||
                         call.find("Destroy") != std::string::npos || call == "cuModuleUnload";
      if (!gives) {
        EXPECT_EQ(gpus::held(), "") << call << " " << number;
      }
    }
  }
  EXPECT_GT(failed, 20);
}

}  // namespace launches_test
}  // namespace windlass_test
