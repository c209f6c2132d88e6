// SPDX-License-Identifier: Apache-2.0
// Windows in the memory of GPUs, over the stand-in for NVIDIA's driver, whose devices' memory this
// process reads and writes too: one-sided moves bit for bit, tensors of collectives where they lie,
// refusals by name, and whichever call fails, nothing stays behind.
#include <map>
#include <string>

#include "native/window/cuda/polling.h"
#include "tests/native/comm/windows.h"
#include "tests/native/cuda/stand_in.h"

namespace windlass_test {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr int kRanks = 3;

// Of each rank, one of these.
class Handles {
 public:
  explicit Handles(LocalRanks& ranks) : handles_(static_cast<size_t>(ranks.size())) {}
  ~Handles() {
    for (wl_window_t* window : handles_) wl_window_free(window);
  }
  Handles(const Handles&) = delete;

  int32_t make(wl_comm_t* comm, int rank, uint64_t bytes, Error* error) {
    return wl_device_window_create(comm, bytes, 0, &(*this)[rank], error);
  }
  wl_window_t*& operator[](int rank) { return handles_[static_cast<size_t>(rank)]; }
  uint8_t* at(int rank, uint64_t offset) {
    return static_cast<uint8_t*>(wl_window_address((*this)[rank], rank)) + offset;
  }

 private:
  std::vector<wl_window_t*> handles_;
};

class DeviceWindows : public testing::Test {
 protected:
  DeviceWindows() { gpus::reset(); }
  ~DeviceWindows() override { gpus::reset(); }
};

// Local tensors lie on the host, on the rank's device, and in its part of the window.
void moveViews(int devices, uint64_t firstSeed) {
  gpus::reset();
  gpus::devices(devices);
  LocalRanks ranks(kRanks);
  constexpr uint64_t kInbox = 20'000'000;
  constexpr uint64_t kSource = kInbox * kRanks;
  Windows signals(ranks, 0, 1);
  Handles windows(ranks);
  const std::vector<std::vector<int64_t>> shapes = {
      {},           {0},          {1},          {13},           {9, 7},
      {3, 0, 2},    {33, 5, 2},   {2, 3, 4, 5}, {700, 30, 3},   {3, 900'000},
      {3, 900'000}, {3, 900'000}, {100'000},    {2, 1, 3, 1, 2}};
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    ASSERT_EQ(windows.make(comm, rank, kSource + kInbox, &error), WL_OK) << error.message;
    for (size_t i = 0; i < 64; ++i) ASSERT_EQ(*windows.at(rank, i * 1000), 0) << i;
    std::mt19937_64 random(firstSeed);  // the same choices on every rank
    uint32_t round = 0;
    for (const int dtype : {WL_U8, WL_BF16, WL_F32, WL_C64}) {
      const auto size = static_cast<size_t>(wl_dtype_size(dtype));
      for (const auto& shape : shapes) {
        // Of more bytes than go through a stage at a time.
        const bool isLarge = shape.size() == 2 && shape[1] > 1000;
        if (isLarge && dtype != WL_F32) continue;
        ++round;
        const View local(shape, isLarge || random() % 2 == 0, random);
        const View remote(shape, random() % 2 == 0, random);
        const auto lies = static_cast<int>(round % 3);
        const int step = static_cast<int>(random() % kRanks);
        const int to = (rank + step) % kRanks;
        const int from = (rank - step + kRanks) % kRanks;
        const auto stampOf = [&](int sender, size_t i) {
          return static_cast<uint8_t>(stamp(round, static_cast<uint32_t>(sender), 0, i));
        };
        Bytes own(local.elements * size), theirs(own.size());
        for (size_t i = 0; i < own.size(); ++i) {
          own[i] = stampOf(rank, i);
          theirs[i] = stampOf(from, i);
        }
        Bytes plain(own.size());
        uint8_t* out = lies == 0   ? plain.data()
                       : lies == 1 ? gpus::tensor<uint8_t>(rank % devices, own.size())
                                   : windows.at(rank, kSource);
        std::memcpy(out, own.data(), own.size());
        uint8_t* inbox = windows.at(rank, static_cast<uint64_t>(from) * kInbox);
        Bytes expected(remote.elements * size, 0xa5);
        std::memset(inbox, 0xa5, expected.size());
        moveSlowly(expected.data(), remote, theirs.data(), local, size);
        ASSERT_EQ(WL_OK, wl_barrier(comm, 0, &error)) << error.message;

        const auto where = [&] {
          return "devices " + std::to_string(devices) + ", local lies " + std::to_string(lies) +
                 ", dtype " + std::to_string(dtype) + ", shape " + testing::PrintToString(shape) +
                 ", local strides " + testing::PrintToString(local.strides) + ", remote strides " +
                 testing::PrintToString(remote.strides);
        };
        const wl_tensor_t outbox =
            remote.tensor(windows.at(rank, static_cast<uint64_t>(rank) * kInbox), dtype);
        const wl_tensor_t sent = local.tensor(out, dtype);
        ASSERT_EQ(WL_OK, wl_put(comm, windows[rank], &sent, to, &outbox, &error)) << error.message;
        std::memset(out, 0x11, own.size());
        ASSERT_EQ(WL_OK, signals.notify(rank, to, 0, round, &error)) << error.message;
        ASSERT_EQ(WL_OK, signals.wait(rank, from, 0, round, &error)) << error.message;
        ASSERT_EQ(std::memcmp(inbox, expected.data(), expected.size()), 0) << where();

        // What came back is what was sent, and the rest is as it was.
        Bytes whole(own.size(), 0x11);
        moveSlowly(whole.data(), local, own.data(), local, size);
        ASSERT_EQ(WL_OK, wl_get(comm, windows[rank], &sent, to, &outbox, &error)) << error.message;
        ASSERT_EQ(std::memcmp(out, whole.data(), whole.size()), 0) << where();
        ASSERT_EQ(WL_OK, wl_barrier(comm, 0, &error)) << error.message;
      }
    }
  });
}

TEST_F(DeviceWindows, PutAndGetMoveTheElementsOfAViewAndNoOther) {
  const uint64_t firstSeed = seed();
  for (const int devices : {1, 2, 3})
    moveViews(devices, firstSeed + static_cast<uint64_t>(devices));
}

wl_tensor_t row(void* data, int32_t dtype, const int64_t* count) {
  static const int64_t kOne = 1;
  return {sizeof(wl_tensor_t), dtype, 1, 0, data, count, &kOne};
}

// Small integers, whose sums are exact in any order.
template <class T>
void addFromAll(int devices, int32_t dtype, bool isOnHost) {
  constexpr int64_t kCount = 1237;
  constexpr int kTimes = 3;
  gpus::reset();
  gpus::devices(devices);
  LocalRanks ranks(kRanks);
  Handles windows(ranks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    ASSERT_EQ(windows.make(comm, rank, 2 * kCount * sizeof(T), &error), WL_OK) << error.message;
    ASSERT_EQ(WL_OK, wl_barrier(comm, 0, &error)) << error.message;
    std::vector<T> own(kCount);
    T* terms = isOnHost ? own.data() : gpus::tensor<T>(rank % devices, kCount);
    for (int64_t i = 0; i < kCount; ++i) terms[i] = static_cast<T>(rank + i % 5);
    const wl_tensor_t local = row(terms, dtype, &kCount);
    // Every other element, of rank 1.
    const int64_t step = 2;
    wl_tensor_t sums = local;
    sums.data = windows.at(rank, 0);
    sums.strides = &step;
    for (int times = 0; times < kTimes; ++times) {
      ASSERT_EQ(WL_OK, wl_accumulate(comm, windows[rank], &local, 1, &sums, &error))
          << error.message;
    }
    ASSERT_EQ(WL_OK, wl_barrier(comm, 0, &error)) << error.message;
    if (rank != 1) return;
    const auto* found = reinterpret_cast<const T*>(windows.at(1, 0));
    for (int64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(found[2 * i], static_cast<T>(kTimes * (3 + 3 * (i % 5)))) << i;
      ASSERT_EQ(found[2 * i + 1], T{0}) << i;
    }
  });
}

TEST_F(DeviceWindows, AddsOfAllRanksToTheSameElementsLoseNothing) {
  for (const int devices : {1, 2}) {
    for (const bool isOnHost : {false, true}) {
      addFromAll<float>(devices, WL_F32, isOnHost);
      addFromAll<int32_t>(devices, WL_I32, isOnHost);
      addFromAll<int8_t>(devices, WL_I8, isOnHost);
    }
  }
}

TEST_F(DeviceWindows, CollectivesUseWhatLiesThereOnOneDevice) {
  constexpr int kCount = 5000;
  LocalRanks ranks(kRanks);
  Handles windows(ranks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    ASSERT_EQ(windows.make(comm, rank, kCount * sizeof(int32_t), &error), WL_OK) << error.message;
    auto* const own = reinterpret_cast<int32_t*>(windows.at(rank, 0));
    for (int i = 0; i < kCount; ++i) own[i] = rank + i;
    ASSERT_EQ(allReduce(comm, own, own, kCount, WL_I32, WL_SUM, WL_TWO_PHASE, 0, &error), WL_OK)
        << error.message;
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(own[i], 3 + kRanks * i) << i;
  });
  for (const std::string& line : gpus::log())
    EXPECT_EQ(line.find("Async 20000"), std::string::npos) << line;
}

// What rank 1 does once all have a window of 4,096 bytes says `why`, and the others go on.
template <class Body>
void refused(int devices, const std::string& why, Body&& body) {
  gpus::reset();
  gpus::devices(devices);
  LocalRanks ranks(kRanks);
  Handles windows(ranks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    ASSERT_EQ(windows.make(comm, rank, 4096, &error), WL_OK) << error.message;
    if (rank == 1) {
      EXPECT_EQ(body(comm, windows, &error), WL_UNSUPPORTED);
      EXPECT_TRUE(contains(error.message, why)) << error.message;
    }
    EXPECT_EQ(WL_OK, wl_barrier(comm, 0, &error)) << error.message;
  });
}

TEST_F(DeviceWindows, WhatDevicesDontDoIsRefusedAndTheRestGoesOn) {
  static const int64_t kCount = 16;
  static const int64_t kTwo = 2;
  refused(2, "does not add to the memory of device 0 of rank 2",
          [](auto* comm, auto& windows, Error* error) {
            gpus::atomics(false);
            std::vector<float> own(kCount);
            const wl_tensor_t local = row(own.data(), WL_F32, &kCount);
            const wl_tensor_t remote = row(windows.at(1, 0), WL_F32, &kCount);
            return wl_accumulate(comm, windows[1], &local, 2, &remote, error);
          });
  refused(2, "copy it to the rank's own device first", [](auto* comm, auto& windows, Error* error) {
    wl_tensor_t local = row(gpus::tensor<float>(0, 64), WL_F32, &kCount);
    local.strides = &kTwo;
    const wl_tensor_t remote = row(windows.at(1, 0), WL_F32, &kCount);
    return wl_put(comm, windows[1], &local, 2, &remote, error);
  });
  refused(1, "make those in a window of the host", [](auto* comm, auto& windows, Error* error) {
    return wl_notify(comm, windows[1], 0, 0, 1, error);
  });
}

TEST_F(DeviceWindows, OfRanksWhoseDevicesDontReachOneAnotherAreNotMade) {
  for (const bool losesCopies : {false, true}) {
    gpus::reset();
    gpus::devices(2);
    gpus::reaches(losesCopies);
    gpus::losesCopies(losesCopies);
    {
      LocalRanks ranks(kRanks);
      Handles windows(ranks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        EXPECT_EQ(windows.make(comm, rank, 100, &error), WL_UNSUPPORTED);
        EXPECT_TRUE(contains(error.message, "does not reach device")) << error.message;
      });
    }
    EXPECT_EQ(gpus::held(), "");
  }
}

TEST_F(DeviceWindows, AndWindowsOfTheHostAreNoneOfOneAnother) {
  LocalRanks ranks(kRanks);
  Handles windows(ranks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    const int32_t code = rank == 0 ? wl_window_create(comm, 100, 0, &windows[rank], &error)
                                   : windows.make(comm, rank, 100, &error);
    EXPECT_EQ(code, WL_MISMATCH) << error.message;
    EXPECT_TRUE(contains(error.message, "device window creation")) << error.message;
  });
}

// A put of a strided tensor from the host, and of one on the device.
std::vector<std::string> putTwice(std::vector<int32_t>* codes) {
  static const int64_t kCount = 500;
  static const int64_t kTwo = 2;
  std::vector<std::string> errors(kRanks);
  codes->assign(kRanks, WL_OK);
  LocalRanks ranks(kRanks);
  Handles windows(ranks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    int32_t& code = (*codes)[static_cast<size_t>(rank)];
    Error error;
    code = windows.make(comm, rank, 8192, &error);
    std::vector<float> own(2 * kCount);
    for (float* data :
         {own.data(), code == WL_OK ? reinterpret_cast<float*>(windows.at(rank, 4096)) : nullptr}) {
      wl_tensor_t local = row(data, WL_F32, &kCount);
      if (data == own.data()) local.strides = &kTwo;
      void* const there = code == WL_OK ? windows.at(rank, 0) : nullptr;
      const wl_tensor_t remote = row(there, WL_F32, &kCount);
      if (code == WL_OK)
        code = wl_put(comm, windows[rank], &local, (rank + 1) % kRanks, &remote, &error);
    }
    if (code == WL_OK) code = wl_barrier(comm, 0, &error);
    errors[static_cast<size_t>(rank)] = error.message;
  });
  return errors;
}

// What it may touch at any time stays, and nothing else runs on its device.
TEST_F(DeviceWindows, AMoveOrACopyThatDoesNotEndKeepsItsDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hangs = [](const std::string& look, const std::string& what) {
    gpus::reset();
    windlass::cuda::copyLimitNs = 50 * kMs;
    constexpr int64_t kCount = 100;
    std::vector<float> terms(kCount);
    {
      LocalRanks ranks(kRanks);
      Handles windows(ranks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        ASSERT_EQ(windows.make(comm, rank, 4096, &error), WL_OK) << error.message;
        if (rank != 0) return;
        gpus::failCall(look, 0, windlass::cuda::kCuNotReady);
        const wl_tensor_t local = row(terms.data(), WL_F32, &kCount);
        const wl_tensor_t sums = row(windows.at(rank, 0), WL_F32, &kCount);
        EXPECT_EQ(wl_accumulate(comm, windows[rank], &local, 1, &sums, &error), WL_DEVICE);
        EXPECT_TRUE(contains(error.message, "device 0 did not end " + what + " within 50 ms"));
      });
    }
    for (const char* gives : {"cuMemUnmap", "cuMemFree", "cuMemFreeHost", "cuStreamDestroy"})
      EXPECT_EQ(gpus::countCalls(gives), 0) << gives;
    gpus::failCall("", 1, 0);
    LocalRanks ranks(kRanks);
    Handles windows(ranks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      EXPECT_EQ(windows.make(comm, rank, 4096, &error), WL_DEVICE);
      EXPECT_TRUE(contains(error.message, "device 0 still runs " + what));
    });
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(hangs("cuStreamQuery", "a move"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(hangs("cuEventQuery", "a copy"), testing::ExitedWithCode(0), "");
}

TEST_F(DeviceWindows, AFailureOfAnyCallIsToldToAllAndLeavesNothing) {
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    std::vector<int32_t> codes;
    putTwice(&codes);
    for (const int32_t code : codes) ASSERT_EQ(code, WL_OK);
    ASSERT_EQ(gpus::held(), "");
    std::map<std::string, int> calls;
    for (const std::string& line : gpus::log()) ++calls[line.substr(0, line.find(' '))];
    for (const char* once : {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount"}) calls.erase(once);
    for (const auto& [call, count] : calls) {
      const bool isLook = call == "cuStreamQuery" || call == "cuEventQuery";
      const int most = isLook || !longForm() ? std::min(count, 4) : count;
      const bool gives = call.find("Free") != std::string::npos ||
                         call.find("Release") != std::string::npos || call == "cuMemUnmap" ||
                         call.find("Destroy") != std::string::npos || call == "cuModuleUnload";
      for (int number = 1; number <= most; ++number) {
        gpus::reset();
        gpus::devices(devices);
        gpus::failCall(call, number, 719);
        const std::vector<std::string> errors = putTwice(&codes);
        for (size_t rank = 0; rank < kRanks; ++rank) {
          EXPECT_EQ(codes[rank] == WL_OK, gives || call == "cuCtxPopCurrent")
              << call << " " << number << ": " << errors[rank];
          if (codes[rank] == WL_OK) continue;
          EXPECT_EQ(codes[rank], WL_DEVICE) << call << ": " << errors[rank];
          EXPECT_TRUE(contains(errors[rank].c_str(), "CUDA_ERROR_LAUNCH_FAILED (719)"));
        }
        if (!gives) {
          EXPECT_EQ(gpus::held(), "") << call << " " << number;
        }
      }
    }
  }
}

}  // namespace
}  // namespace windlass_test
