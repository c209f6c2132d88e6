// SPDX-License-Identifier: Apache-2.0
// Collectives of the target cuda over the stand-in for NVIDIA's driver: ranks share a GPU or have
// several, whichever call fails every rank is told, and nothing stays behind.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "kernels/offload.h"
#include "native/device/offload_seats.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"
#include "tests/native/cuda/given_back.h"
#include "tests/native/cuda/no_memory.h"
#include "tests/native/device/expert_exchange.h"
#include "tests/native/memory/failing_allocation.h"

namespace windlass_test {
namespace gpus_test {

constexpr int kRanks = 3;

struct Outcome {
  int32_t code = WL_OK;
  Error error;
};

// A rank's i-th element is rank + i.
int32_t sumOnce(wl_comm_t* comm, int rank, int count, int32_t algorithm, int64_t deadlineNs,
                Error* error) {
  std::vector<int32_t> in(static_cast<size_t>(count));
  std::vector<int32_t> out(in.size(), -1);
  for (int i = 0; i < count; ++i) in[static_cast<size_t>(i)] = rank + i;
  const int32_t code = allReduce(comm, in.data(), out.data(), in.size(), WL_I32, WL_SUM, algorithm,
                                 deadlineNs, error);
  const int ranks = wl_comm_size(comm);
  for (int i = 0; code == WL_OK && i < count; ++i) {
    if (out[static_cast<size_t>(i)] == ranks * (ranks - 1) / 2 + ranks * i) continue;
    ADD_FAILURE() << "rank " << rank << " has " << out[static_cast<size_t>(i)] << " at " << i;
    break;
  }
  return code;
}

// The second time more elements, so that the window grows.
std::vector<Outcome> sumTwice() {
  std::vector<Outcome> outcomes(kRanks);
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Outcome& own = outcomes[static_cast<size_t>(rank)];
    for (const int count : {1000, 600'000}) {
      own.code = sumOnce(comm, rank, count, WL_TWO_PHASE, 0, &own.error);
      if (own.code != WL_OK) return;
    }
  });
  return outcomes;
}

TEST(WithoutADriver, NoGroupIsMade) {
  wl_error_t error = {};
  error.struct_size = sizeof error;
  if (wl_cuda_find(&error) == WL_OK) GTEST_SKIP() << "a driver opens: core_cuda_no_driver has none";
  wl_group_config_t config = {};
  config.struct_size = sizeof config;
  config.ranks = 2;
  wl_group_t* group = nullptr;
  EXPECT_EQ(wl_group_create(&config, &group, &error), WL_UNSUPPORTED);
  EXPECT_EQ(group, nullptr);
  EXPECT_NE(std::string(error.message).find("NVIDIA's driver"), std::string::npos) << error.message;
}

class Gpus : public testing::Test {
 protected:
  // Whatever else this program tests has the stand-in as it is at first.
  Gpus() { gpus::reset(); }
  ~Gpus() override { gpus::reset(); }
};

TEST_F(Gpus, RunWhatTheirRanksBringAndGiveAllBack) {
  for (const int devices : {1, 2, 3}) {
    gpus::reset();
    gpus::devices(devices);
    for (const Outcome& one : sumTwice()) EXPECT_EQ(one.code, WL_OK) << one.error.message;
    // One grid for each operation and device.
    EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 2 * devices);
    EXPECT_EQ(gpus::held(), "");
  }
}

TEST_F(Gpus, GiveBackWhatTheyHoldOnceTheLastRankHasClosed) {
  gpus::devices(2);
  LocalRanks ranks(kRanks);
  ranks.run([](int rank, wl_comm_t* comm) {
    Error error;
    EXPECT_EQ(sumOnce(comm, rank, 1000, WL_TWO_PHASE, 0, &error), WL_OK) << error.message;
  });
  for (wl_comm_t* comm : ranks.comms) {
    EXPECT_NE(gpus::held(), "");
    // Whoever closes takes no memory for it.
    const FailingAllocation failing(1);
    EXPECT_EQ(wl_comm_close(comm, nullptr), WL_OK);
  }
  // The handles are there still, and what they say of the communicator.
  EXPECT_EQ(gpus::held(), "");
  Error error;
  EXPECT_EQ(sumOnce(ranks.comms[0], 0, 1000, WL_TWO_PHASE, 0, &error), WL_CLOSED);
  EXPECT_EQ(wl_comm_close(ranks.comms[0], &error), WL_OK) << error.message;
  EXPECT_EQ(gpus::held(), "");
}

TEST_F(Gpus, AStepOfSomethingElseGoesThroughThem) {
  gpus::reset();
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    const int64_t counts[kRanks] = {5, 0, 3000};
    const std::vector<unsigned char> own(static_cast<size_t>(counts[rank]),
                                         static_cast<unsigned char>(rank + 1));
    std::vector<unsigned char> all(3005, 0);
    Error error;
    EXPECT_EQ(callExchangeV(comm, WL_OP_LINK, own.data(), own.size(), all.data(), all.size(),
                            counts, 0, &error),
              WL_OK)
        << error.message;
    for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i < 5 ? 1 : 3) << i;
  });
}

// Each rank's tensors lie on device rank % devices or, where they are strangers, on the next one.
void sumTensors(int devices, bool areStrangers, bool isInPlace) {
  constexpr int kCount = 5000;
  gpus::reset();
  gpus::devices(devices);
  {
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      const int device = (rank + (areStrangers ? 1 : 0)) % devices;
      auto* const in = gpus::tensor<int32_t>(device, kCount);
      auto* const out = isInPlace ? in : gpus::tensor<int32_t>(device, kCount);
      for (int i = 0; i < kCount; ++i) in[i] = rank + i;
      Error error;
      ASSERT_EQ(allReduce(comm, in, out, kCount, WL_I32, WL_SUM, WL_TWO_PHASE, 0, &error), WL_OK)
          << error.message;
      for (int i = 0; i < kCount; ++i)
        ASSERT_EQ(out[i], kRanks * (kRanks - 1) / 2 + kRanks * i) << "rank " << rank << " at " << i;
    });
  }
  int staged = 0;
  int copied = 0;
  for (const std::string& line : gpus::log()) {
    staged += line == "cuMemcpyHtoDAsync 20000" || line == "cuMemcpyDtoHAsync 20000" ? 1 : 0;
    copied += line == "cuMemcpyAsync 20000" ? 1 : 0;
  }
  EXPECT_EQ(staged, 0);
  // In, out and out again, unless all kernels reach them.
  EXPECT_EQ(copied, devices == 1 ? 0 : 3 * kRanks);
}

TEST_F(Gpus, TensorsThatAllRanksReachAreUsedWhereTheyLie) {
  sumTensors(1, false, false);
  sumTensors(1, false, true);
}

TEST_F(Gpus, TensorsOfOtherDevicesAreCopiedByThem) {
  sumTensors(2, false, false);
  sumTensors(2, true, false);
  sumTensors(3, true, true);
}

// Tensors that one rank has on the device and other ranks on the host.
TEST_F(Gpus, TensorsOfDevicesAndOfTheHostInOneCall) {
  gpus::reset();
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    std::vector<int32_t> in(700);
    std::vector<int32_t> out(in.size() * kRanks, -1);
    int32_t* own = rank == 1 ? gpus::tensor<int32_t>(0, in.size()) : in.data();
    for (size_t i = 0; i < in.size(); ++i) own[i] = static_cast<int32_t>(1000 * rank + i);
    int32_t* all = rank == 2 ? gpus::tensor<int32_t>(0, out.size()) : out.data();
    Error error;
    ASSERT_EQ(allGather(comm, own, all, in.size(), WL_I32, 0, &error), WL_OK) << error.message;
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(all[i], static_cast<int32_t>(1000 * (i / in.size()) + i % in.size())) << i;
  });
}

// Rank 1 refuses the tensor; the other ranks get the error, and all go on.
TEST_F(Gpus, TensorsOfNoMemoryAreRefusedAndTheCommunicatorLives) {
  constexpr size_t kCount = 100;
  const NoMemory none;
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      std::vector<int32_t> host(kCount, -1);
      Error error;
      const auto isRefused = [&](void* in, void* out, const std::string& because) {
        const bool isOwn = rank == 1;
        EXPECT_EQ(allReduce(comm, isOwn ? in : host.data(), isOwn ? out : host.data(), kCount,
                            WL_I32, WL_SUM, WL_TWO_PHASE, 0, &error),
                  WL_INVALID_ARGUMENT);
        EXPECT_TRUE(contains(error.message, "rank " + std::to_string(rank) + ": all"))
            << error.message;
        EXPECT_TRUE(contains(error.message, isOwn ? because : "rank 1 does not take"))
            << error.message;
        EXPECT_EQ(error.operation, WL_OP_ALL_REDUCE);
        EXPECT_EQ(error.observer, rank);
        ASSERT_EQ(error.faulty_rank_count, 1);
        EXPECT_EQ(error.faulty_ranks[0], 1);
      };
      const std::string lost = "nor mapped in this process";
      isRefused(none.begin(), host.data(), "in, 400 bytes at 0x");
      isRefused(none.begin(), host.data(), lost);
      isRefused(host.data(), none.begin(), "out, 400 bytes at 0x");
      isRefused(host.data(), none.begin(), lost);
      isRefused(none.before(396), host.data(), lost);
      if (rank == 1) gpus::pin(none.before(200), 200);
      isRefused(none.before(200), host.data(), "which ends before");
      // A device's, which is shorter.
      auto* const isShort = gpus::tensor<int32_t>(rank % devices, kCount - 1);
      isRefused(isShort, host.data(), "which has 396 from there on");
      isRefused(host.data(), isShort + 1, "which has 392 from there on");
      const size_t most = (size_t{2} << 20) / sizeof(int32_t);
      auto* const isMapped = gpus::mappedTensor<int32_t>(rank % devices, 2 * most, devices);
      isRefused(isMapped + 2 * most - kCount + 1, host.data(), "ends");
      EXPECT_EQ(host, std::vector<int32_t>(kCount, -1));
      // A tensor over both mappings, whole and up to the last byte with memory.
      std::fill_n(isMapped, 2 * most, 1);
      const size_t count = 2 * most;
      ASSERT_EQ(allReduce(comm, isMapped, isMapped, count, WL_I32, WL_SUM, WL_TWO_PHASE, 0, &error),
                WL_OK)
          << error.message;
      EXPECT_EQ(std::count(isMapped, isMapped + count, kRanks), static_cast<ptrdiff_t>(count));
      auto* last = static_cast<int32_t*>(none.before(400));
      if (rank != 1) last = host.data();
      EXPECT_EQ(allReduce(comm, last, last, kCount, WL_I32, WL_SUM, WL_TWO_PHASE, 0, &error), WL_OK)
          << error.message;
    });
  }
}

void sendToExperts(int devices, bool isOnDevice) {
  gpus::reset();
  gpus::devices(devices);
  const ExpertExchange exchange(kRanks);
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    EXPECT_EQ(exchange.run(comm, isOnDevice ? rank % devices : kOnHost, kOnHost, 2), "");
  });
  // Both operations, both times.
  EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 4 * devices);
}

TEST_F(Gpus, ExpertsGetTheirTokensAndGiveThemBack) {
  for (const int devices : {1, 2}) {
    sendToExperts(devices, false);
    sendToExperts(devices, true);
  }
}

void failSums(int devices, const std::string& call, int number, bool isDone) {
  SCOPED_TRACE(call + " " + std::to_string(number) + (isDone ? ", which is done" : ""));
  gpus::reset();
  gpus::devices(devices);
  gpus::failOnce(call, number, isDone);
  for (const Outcome& one : sumTwice()) {
    if (one.code == WL_OK) continue;
    EXPECT_EQ(one.code, WL_DEVICE) << one.error.message;
    EXPECT_EQ(one.error.faulty_rank_count, 1);
    EXPECT_TRUE(contains(one.error.message, call + " of device"));
    EXPECT_TRUE(contains(one.error.message, "CUDA_ERROR_LAUNCH_FAILED (719)"));
  }
  EXPECT_TRUE(gpus::isGivenBack(call, isDone));
}

TEST_F(Gpus, AFailureOfAnyCallIsToldToAllAndLeavesNothing) {
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    sumTwice();
    std::map<std::string, int> calls;
    for (const std::string& line : gpus::log()) ++calls[line.substr(0, line.find(' '))];
    for (const char* once : {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount"}) calls.erase(once);
    for (const auto& [call, count] : calls) {
      const bool isLook = call == "cuStreamQuery" || call == "cuEventQuery";
      const Failing which = devices == 1 ? Failing::kFirst : Failing::kLast;
      for (const int number : callsToFail(isLook ? std::min(count, 6) : count, which))
        for (const bool isDone : gpus::waysToFail(call)) failSums(devices, call, number, isDone);
    }
  }
}

// Outcomes of all ranks at their deadline, if the cores of one rank do nothing. All ranks have to
// enter before the deadline, so a busy machine has more time.
std::vector<Outcome> sumBesideSlowOne(int slow) {
  std::vector<Outcome> outcomes(kRanks);
  for (int64_t deadlineNs = 300 * kMs; deadlineNs < 60'000 * kMs; deadlineNs *= 4) {
    gpus::reset();
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      EXPECT_EQ(sumOnce(comm, rank, 1000, WL_RING, 0, &error), WL_OK) << error.message;
    });
    gpus::isStuck(static_cast<uint32_t>(slow), true);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Outcome& own = outcomes[static_cast<size_t>(rank)];
      own.code = sumOnce(comm, rank, 1000, WL_RING, deadlineNs, &own.error);
    });
    const auto isTold = [](const Outcome& one) {
      return one.error.faulty_rank_count == 1 && contains(one.error.message, "'s has ended 0 of ");
    };
    // A deadline that passed before some ranks entered names several faulty ranks.
    const auto isEarly = [](const Outcome& one) {
      return one.code == WL_DEADLINE_EXCEEDED && one.error.faulty_rank_count != 1;
    };
    if (std::all_of(outcomes.begin(), outcomes.end(), isTold)) break;
    if (std::none_of(outcomes.begin(), outcomes.end(), isEarly)) break;
  }
  return outcomes;
}

TEST_F(Gpus, AtTheDeadlineTheRankIsNamedWhoseCoresAreLeastFar) {
  for (int slow = 0; slow < kRanks; ++slow) {
    for (const auto& [code, error] : sumBesideSlowOne(slow)) {
      EXPECT_EQ(code, WL_DEADLINE_EXCEEDED);
      ASSERT_EQ(error.faulty_rank_count, 1) << error.message;
      EXPECT_EQ(error.faulty_ranks[0], slow) << error.message;
      EXPECT_TRUE(contains(error.message, "rank " + std::to_string(slow) + "'s has ended 0 of "));
    }
    EXPECT_EQ(gpus::held(), "");
  }
}

TEST_F(Gpus, AnAbortEndsTheKernelThatRuns) {
  gpus::reset();
  {
    LocalRanks ranks(kRanks);
    gpus::isStuck(1, true);
    std::thread beside([&] {
      EXPECT_TRUE(await([] { return gpus::countCalls("cuLaunchCooperativeKernel") > 0; }));
      Error error;
      EXPECT_EQ(wl_comm_abort(ranks.comms[0], "enough of it", &error), WL_OK) << error.message;
    });
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      EXPECT_EQ(sumOnce(comm, rank, 1000, WL_TWO_PHASE, 0, &error), WL_ABORTED) << error.message;
      EXPECT_TRUE(contains(error.message, "enough of it"));
    });
    beside.join();
  }
  EXPECT_EQ(gpus::held(), "");
}

// Its windows may be touched at any time, so that they stay; nothing else runs there.
TEST_F(Gpus, AKernelThatDoesNotEndKeepsItsDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hangs = [] {
    // All have to come before the first one's deadline: else nothing is launched, or hangs.
    for (int64_t deadlineNs = 100 * kMs; deadlineNs < 60'000 * kMs; deadlineNs *= 3) {
      gpus::reset();
      LocalRanks ranks(kRanks);
      gpus::hang(1);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        EXPECT_EQ(sumOnce(comm, rank, 1000, WL_RING, deadlineNs, &error), WL_DEADLINE_EXCEEDED);
      });
      if (gpus::countCalls("cuLaunchCooperativeKernel") > 0) break;
    }
    EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 1);
    for (const char* gives : {"cuMemUnmap", "cuMemFree", "cuMemFreeHost", "cuStreamDestroy"})
      EXPECT_EQ(gpus::countCalls(gives), 0) << gives;
    for (const Outcome& one : sumTwice()) {
      EXPECT_EQ(one.code, WL_DEVICE);
      EXPECT_TRUE(contains(one.error.message, "device 0 may still run all-reduce"));
    }
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(hangs(), testing::ExitedWithCode(0), "");
}

// A captured stream of the thread hides from the driver whether a kernel has ended.
TEST_F(Gpus, AKernelOfWhichTheDriverDoesNotTellKeepsItsDevice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The other two are errors that the table of them does not know.
  const auto asks = [](int result) {
    gpus::reset();
    {
      LocalRanks ranks(kRanks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        EXPECT_EQ(sumOnce(comm, rank, 1000, WL_RING, 0, &error), WL_OK) << error.message;
      });
      gpus::hang(1);
      gpus::failCall("cuStreamQuery", 0, result);
      ranks.run([&](int rank, wl_comm_t* comm) {
        Error error;
        EXPECT_EQ(sumOnce(comm, rank, 1000, WL_RING, 0, &error),
                  result == 900 ? WL_UNSUPPORTED : WL_DEVICE);
      });
    }
    for (const char* gives : {"cuMemUnmap", "cuMemFree", "cuMemFreeHost", "cuStreamDestroy"})
      EXPECT_EQ(gpus::countCalls(gives), 0) << gives;
    gpus::failCall("", 1, 0);
    for (const Outcome& one : sumTwice()) EXPECT_EQ(one.code, WL_DEVICE);
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  };
  for (const int result : {900, 1, 999})
    EXPECT_EXIT(asks(result), testing::ExitedWithCode(0), "") << result;
}

// A single rank whose host does not see its deadline pass.
class Asleep final : public windlass::OffloadPeers {
 public:
  uint32_t rank() const override { return 0; }
  uint32_t ranks() const override { return 1; }
  windlass::Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t*) override {
    std::memcpy(everyones, own, bytes);
    return WL_OK;
  }
  uint32_t firstBeside(uint32_t) const override { return 0; }
  windlass::DeviceWait& wait() override { return wait_; }
  bool goesOn() override { return true; }
  int64_t leftNs() override { return 0; }
  windlass::Code ended(const windlass::OffloadProgress&) override { return WL_ABORTED; }
  windlass::Code busy(const std::vector<uint32_t>&, const char*) override { return WL_ABORTED; }

 private:
  const std::shared_ptr<windlass::Group> group_ = windlass::Group::create({});
  windlass::DeviceWait wait_{*group_, 0, INT64_MAX};  // lasts as long as it takes
};

TEST_F(Gpus, WhatAKernelLeftUndoneAtItsOwnDeadlineIsNoResult) {
  using K = windlass::AllReduceTwoPhase;
  gpus::reset();
  windlass::Launch launch = {};
  launch.ranks = 1;
  launch.dtype = windlass::DType::kI32;
  launch.bytes = 400;
  K::plan(launch);
  std::vector<int32_t> in(100, 7);
  std::vector<int32_t> out(100, -1);
  const windlass::DeviceOperation sum = {"all-reduce",
                                         windlass::OffloadedKernels::indexOf<K>(),
                                         &launch,
                                         K::phases(launch),
                                         2,
                                         {in.data(), 400, out.data(), 400, nullptr, 0, 0}};
  windlass::Offload offload(0);
  Asleep peers;
  uint32_t faultyRank = 1;
  Error error;
  EXPECT_EQ(offload.run(sum, peers, &faultyRank, &error), WL_OK) << error.message;
  EXPECT_EQ(out, in);
  gpus::hang(0);
  EXPECT_EQ(offload.run(sum, peers, &faultyRank, &error), WL_DEADLINE_EXCEEDED);
  EXPECT_EQ(faultyRank, 0u);
  EXPECT_TRUE(contains(error.message, "device 0 ended all-reduce by itself"));
  offload.beginToClose(false);
  EXPECT_TRUE(offload.closed(wl_clock_ns() + 20'000 * kMs));
  EXPECT_EQ(gpus::held(), "");
}

TEST_F(Gpus, ARankThatNeverComesIsNamed) {
  gpus::reset();
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    if (rank == 1) return;
    Error error;
    EXPECT_EQ(sumOnce(comm, rank, 1000, WL_TWO_PHASE, 100 * kMs, &error), WL_DEADLINE_EXCEEDED);
    ASSERT_EQ(error.faulty_rank_count, 1) << error.message;
    EXPECT_EQ(error.faulty_ranks[0], 1) << error.message;
  });
  EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 0);
}

// The kernels run longer than the host waits between two looks at the clock.
TEST_F(Gpus, ADeadlineNearTheLargestTimeEndsNothing) {
  gpus::reset();
  gpus::isStuck(1, true);
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    gpus::isStuck(1, false);
  });
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    const int64_t farAway = INT64_MAX - 1'000'000 * kMs;
    EXPECT_EQ(sumOnce(comm, rank, 1000, WL_RING, farAway, &error), WL_OK) << error.message;
  });
  later.join();
}

TEST_F(Gpus, CommunicatorsThatShareThemTakeTurns) {
  gpus::reset();
  gpus::devices(2);
  LocalRanks ofOne(kRanks);
  LocalRanks ofAnother(kRanks);
  const auto sums = [](int rank, wl_comm_t* comm) {
    for (int i = 0; i < 20; ++i) {
      Error error;
      ASSERT_EQ(sumOnce(comm, rank, 1000, WL_TWO_PHASE, 0, &error), WL_OK) << error.message;
    }
  };
  std::thread beside([&] { ofAnother.run(sums); });
  ofOne.run(sums);
  beside.join();
}

TEST_F(Gpus, ADeviceIsFreeOnceAllThatShareItAreOut) {
  gpus::devices(2);
  windlass::OffloadSeats ofOne(kRanks);
  windlass::OffloadSeats ofAnother(kRanks);
  EXPECT_EQ(ofOne[2].device, 0u);
  windlass::OffloadSeats::Busy busy = {};
  for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
    EXPECT_TRUE(ofOne.take(sequence, "one", 0, &busy));
    for (const uint32_t rank : {0u, 1u, 2u}) {
      EXPECT_FALSE(ofAnother.take(sequence, "another", 0, &busy)) << rank;
      EXPECT_STREQ(busy.with, "one");
      ofOne.leave(rank, sequence);
    }
    EXPECT_TRUE(ofAnother.take(sequence, "another", 0, &busy));
    EXPECT_FALSE(ofOne.take(sequence + 1, "one", 0, &busy));
    for (const uint32_t rank : {2u, 1u, 0u}) ofAnother.leave(rank, sequence);
  }
}

TEST_F(Gpus, RanksHaveNoMoreCoresThanTheDeviceRunsAtATime) {
  for (const int blocks : {kRanks, 2 * kRanks - 1, kRanks - 1}) {
    gpus::reset();
    gpus::blocks(blocks);
    const bool isTooFew = blocks < kRanks;
    for (const Outcome& one : sumTwice()) {
      EXPECT_EQ(one.code, isTooFew ? WL_UNSUPPORTED : WL_OK) << one.error.message;
      if (isTooFew) {
        EXPECT_TRUE(contains(one.error.message, "3 ranks share device 0, which runs 2 blocks"));
      }
    }
    const std::string launch = "cuLaunchCooperativeKernel 3 1 1, 256 1 1, 0";
    int launches = 0;
    for (const std::string& line : gpus::log()) launches += line == launch ? 1 : 0;
    EXPECT_EQ(launches, isTooFew ? 0 : 2);
    EXPECT_EQ(gpus::held(), "");
  }
}

}  // namespace gpus_test
}  // namespace windlass_test
