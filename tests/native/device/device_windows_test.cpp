// SPDX-License-Identifier: Apache-2.0
// Windows in the memory of GPUs, over the stand-in for NVIDIA's driver, whose devices' memory this
// process reads and writes too: one-sided moves bit for bit, tensors of collectives where they lie,
// refusals by name, and whichever call fails, nothing stays behind.
#include <array>
#include <map>
#include <string>

#include "native/device/cuda/polling.h"
#include "native/device/kept_devices.h"
#include "tests/native/collective_calls.h"
#include "tests/native/cuda/given_back.h"
#include "tests/native/device/device_window_moves.h"

namespace windlass_test {
namespace device_windows_test {

constexpr int kRanks = 3;

class DeviceWindows : public testing::Test {
 protected:
  DeviceWindows() { gpus::reset(); }
  ~DeviceWindows() override { gpus::reset(); }
};

TEST_F(DeviceWindows, PutAndGetMoveTheElementsOfAViewAndNoOther) {
  const uint64_t firstSeed = seed();
  // GpusWindows has all ranks on one device.
  for (const int devices : {2, 3}) {
    gpus::reset();
    gpus::devices(devices);
    moveViews(kRanks, devices, firstSeed + static_cast<uint64_t>(devices));
  }
}

TEST_F(DeviceWindows, AddsOfAllRanksToTheSameElementsLoseNothing) {
  for (const int devices : {1, 2}) {
    for (const bool isOnHost : {false, true}) {
      gpus::reset();
      gpus::devices(devices);
      addAllDTypes(kRanks, devices, isOnHost);
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

// Runs `body` on rank 1 once all ranks have a window of 4,096 bytes. Its error contains `why`, and
// the other ranks go on.
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
    EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
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

// A put of a strided tensor from the host, and of one on the device. What the ranks came to is in
// `codes`, and in `failures` how many calls had failed by then that were told to.
std::vector<std::string> putTwice(std::vector<int32_t>* codes, int* failures) {
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
    if (code == WL_OK) code = callBarrier(comm, 0, &error);
    errors[static_cast<size_t>(rank)] = error.message;
  });
  *failures = gpus::failures();
  return errors;
}

// Memory that the move may still access stays, and nothing else runs on its device.
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
    const uint64_t kept = windlass::KeptDevices::windows();
    const int reserved = gpus::countCalls("cuMemAddressReserve");
    for (int attempt = 0; attempt < 3; ++attempt) {
      LocalRanks ranks(kRanks);
      Handles windows(ranks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        EXPECT_EQ(windows.make(comm, rank, 4096, &error), WL_DEVICE);
        EXPECT_TRUE(contains(error.message, "device 0 may still run " + what));
      });
    }
    EXPECT_EQ(windlass::KeptDevices::windows(), kept);
    EXPECT_EQ(gpus::countCalls("cuMemAddressReserve"), reserved);
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(hangs("cuStreamQuery", "a move"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(hangs("cuEventQuery", "a copy"), testing::ExitedWithCode(0), "");
}

// A device that has failed ends the communicator on all ranks; what it lacks does not.
TEST_F(DeviceWindows, ARankWhoseDeviceFailsIsNamedToAll) {
  for (const int devices : {1, 2}) {
    for (const int result : {2, 719}) {
      gpus::reset();
      gpus::devices(devices);
      std::array<Error, kRanks> errors;
      LocalRanks ranks(kRanks);
      Handles windows(ranks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error& error = errors[static_cast<size_t>(rank)];
        ASSERT_EQ(windows.make(comm, rank, 4096, &error), WL_OK) << error.message;
        wl_window_free(windows[rank]);
        ASSERT_EQ(callBarrier(comm, 0, &error), WL_OK) << error.message;
        if (rank == 0) {
          constexpr const char* kCall = "cuMemsetD8Async";
          gpus::failCall(kCall, gpus::countCalls(kCall) + 1, result);
        }
        ASSERT_EQ(callBarrier(comm, 0, &error), WL_OK) << error.message;
        const int32_t code = result == 2 ? WL_RESOURCE : WL_DEVICE;
        EXPECT_EQ(windows.make(comm, rank, 4096, &error), code) << error.message;
        Error after;
        EXPECT_EQ(callBarrier(comm, 0, &after), result == 2 ? WL_OK : WL_DEVICE) << after.message;
      });
      for (const Error& error : errors) {
        ASSERT_EQ(error.faulty_rank_count, 1);
        EXPECT_EQ(error.faulty_ranks[0], errors[0].faulty_ranks[0]);
        const std::string named = "rank " + std::to_string(error.faulty_ranks[0]) +
                                  ": device window creation: cuMemsetD8Async of device " +
                                  std::to_string(error.faulty_ranks[0] % devices);
        EXPECT_EQ(std::string(error.message).rfind(named, 0), 0u) << error.message;
      }
    }
  }
}

void failPuts(int devices, const std::string& call, int number, bool isDone) {
  SCOPED_TRACE(call + " " + std::to_string(number) + (isDone ? ", which is done" : ""));
  gpus::reset();
  gpus::devices(devices);
  gpus::failOnce(call, number, isDone);
  std::vector<int32_t> codes;
  int failures = 0;
  const std::vector<std::string> errors = putTwice(&codes, &failures);
  const bool isAtTheEnd = gpus::givesBack(call) || call == "cuCtxPopCurrent";
  // How often a wait looks depends on when work ends.
  const bool isLook = call == "cuStreamQuery" || call == "cuEventQuery";
  if (!isLook && !isAtTheEnd) {
    EXPECT_EQ(failures, 1);
  }
  const bool isTold = failures > 0 && !isAtTheEnd;
  for (size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(codes[rank] != WL_OK, isTold)
        << errors[rank];
    if (codes[rank] == WL_OK) continue;
    EXPECT_EQ(codes[rank], WL_DEVICE) << errors[rank];
    EXPECT_TRUE(contains(errors[rank].c_str(), "CUDA_ERROR_LAUNCH_FAILED (719)"));
  }
  EXPECT_TRUE(gpus::isGivenBack(call, isDone));
}

TEST_F(DeviceWindows, AFailureOfAnyCallIsToldToAllAndLeavesNothing) {
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    std::vector<int32_t> codes;
    int failures = 0;
    putTwice(&codes, &failures);
    for (const int32_t code : codes) ASSERT_EQ(code, WL_OK);
    ASSERT_EQ(gpus::held(), "");
    std::map<std::string, int> calls;
    for (const std::string& line : gpus::log()) ++calls[line.substr(0, line.find(' '))];
    for (const char* once : {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount"}) calls.erase(once);
    for (const auto& [call, count] : calls) {
      const bool isLook = call == "cuStreamQuery" || call == "cuEventQuery";
      for (const int number : callsToFail(isLook ? std::min(count, 4) : count, Failing::kLast))
        for (const bool isDone : gpus::waysToFail(call)) failPuts(devices, call, number, isDone);
    }
  }
}

}  // namespace device_windows_test
}  // namespace windlass_test
