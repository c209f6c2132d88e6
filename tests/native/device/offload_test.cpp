// SPDX-License-Identifier: Apache-2.0
// Collectives that the host hands to devices, on a2a3 and a5, over the stand-in for their runtime:
// whichever of its calls fails, every rank is told, the rank whose call it was is named, and
// nothing stays behind.
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"
#include "tests/native/cuda/failing_calls.h"
#include "tests/native/device/stand_in.h"

namespace windlass_test {
namespace offload_test {

using namespace stand_in;

constexpr int kRanks = 3;

struct Outcome {
  int32_t code = WL_OK;
  Error error;
  bool isRight = true;
};

// Each rank's i-th element is rank + i; the second time more elements, so that the window grows.
std::vector<Outcome> allReduceTwice() {
  std::vector<Outcome> outcomes(kRanks);
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Outcome& own = outcomes[static_cast<size_t>(rank)];
    for (const int count : {1000, 300'000}) {
      std::vector<int32_t> in(static_cast<size_t>(count));
      std::vector<int32_t> out(in.size(), -1);
      for (int i = 0; i < count; ++i) in[static_cast<size_t>(i)] = rank + i;
      own.code = allReduce(comm, in.data(), out.data(), in.size(), WL_I32, WL_SUM, WL_TWO_PHASE, 0,
                           &own.error);
      if (own.code != WL_OK) return;
      for (int i = 0; i < count; ++i) {
        const int32_t sum = kRanks * (kRanks - 1) / 2 + kRanks * i;
        own.isRight = own.isRight && out[static_cast<size_t>(i)] == sum;
      }
    }
  });
  return outcomes;
}

TEST(Offload, GoesThroughTheDevicesAndGivesAllBack) {
  reset();
  for (const Outcome& one : allReduceTwice()) {
    EXPECT_EQ(one.code, WL_OK) << one.error.message;
    EXPECT_TRUE(one.isRight);
  }
  int copies = 0;
  int waits = 0;
  for (int i = 1; i <= callsOn(1); ++i) {
    copies += call(1, i).rfind("aclrtMemcpy 4000 4000", 0) == 0 ? 1 : 0;
    waits += call(1, i).rfind("aclrtSynchronizeStreamWithTimeout", 0) == 0 ? 1 : 0;
  }
  EXPECT_EQ(copies, 3) << "in and out to the device, out from there";
  EXPECT_GE(waits, 2);
  EXPECT_EQ(held(), 0);
}

// Ranks agree on what it is a step of, and the kernel is that of all-gather-v.
TEST(Offload, AStepOfSomethingElseGoesThroughTheDevices) {
  reset();
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

TEST(Offload, AFailureOfAnyCallIsToldToAllAndLeavesNothing) {
  reset();
  allReduceTwice();
  ASSERT_GT(callsOn(1), 20);
  std::map<std::string, std::vector<int>> ofFunctions;
  for (int number = 1; number <= callsOn(1); ++number) {
    const std::string text = call(1, number);
    ofFunctions[text.substr(0, text.find(' '))].push_back(number);
  }
  std::vector<int> numbers;
  for (const auto& [name, all] : ofFunctions)
    for (const int i : callsToFail(static_cast<int>(all.size()), Failing::kBoth))
      numbers.push_back(all[static_cast<size_t>(i) - 1]);
  for (const int failing : numbers) {
    reset();
    failCall(1, failing);
    const std::vector<Outcome> outcomes = allReduceTwice();
    const std::string text = callsOn(1) < failing ? "none" : call(1, failing);
    uint32_t failed = 0;
    for (const Outcome& one : outcomes) {
      failed += one.code == WL_OK ? 0 : 1;
      // A wait that ends early is asked again; what is closed is over.
      if (one.code == WL_OK) {
        EXPECT_TRUE(one.isRight) << text;
        continue;
      }
      EXPECT_EQ(one.code, WL_DEVICE) << text << ": " << one.error.message;
      EXPECT_EQ(one.error.faulty_rank_count, 1) << text;
      EXPECT_EQ(one.error.faulty_ranks[0], 1) << text << ": " << one.error.message;
      EXPECT_NE(std::string(one.error.message).find("acl"), std::string::npos)
          << one.error.message;
    }
    // A rank that holds its result may return it.
    EXPECT_TRUE(failed == 0 || outcomes[1].code != WL_OK) << text;
  }
}

// A rank's i-th element is rank + i.
int32_t sumOnce(wl_comm_t* comm, int rank, int32_t algorithm, int64_t deadlineNs, Error* error) {
  std::vector<int32_t> in(1000);
  std::vector<int32_t> out(in.size(), -1);
  for (int i = 0; i < 1000; ++i) in[static_cast<size_t>(i)] = rank + i;
  const int32_t code = allReduce(comm, in.data(), out.data(), in.size(), WL_I32, WL_SUM, algorithm,
                                 deadlineNs, error);
  const int ranks = wl_comm_size(comm);
  for (int i = 0; code == WL_OK && i < 1000; ++i)
    EXPECT_EQ(out[static_cast<size_t>(i)], ranks * (ranks - 1) / 2 + ranks * i);
  return code;
}

TEST(Offload, AtTheDeadlineTheRankIsNamedWhoseDeviceIsLeastFar) {
  for (const int32_t algorithm : {WL_TWO_PHASE, WL_RING}) {
    for (int slow = 0; slow < kRanks; ++slow) {
      reset();
      {
        LocalRanks ranks(kRanks);
        ranks.run([&](int rank, wl_comm_t* comm) {
          Error error;
          EXPECT_EQ(sumOnce(comm, rank, algorithm, 0, &error), WL_OK) << error.message;
        });
        isStuck(slow, true);
        std::atomic<int> late{0};
        ranks.run([&](int rank, wl_comm_t* comm) {
          Error error;
          const int32_t code = sumOnce(comm, rank, algorithm, 300 * kMs, &error);
          // From here on, the kernel of that device may end before the order to stop, and so may
          // the kernels of devices that are not late yet.
          isStuck(slow, false);
          if (code == WL_OK) return;
          ++late;
          EXPECT_EQ(code, WL_DEADLINE_EXCEEDED);
          ASSERT_EQ(error.faulty_rank_count, 1) << error.message;
          EXPECT_EQ(error.faulty_ranks[0], slow) << error.message;
          const std::string behind = "rank " + std::to_string(slow) + "'s has ended 0 of ";
          EXPECT_TRUE(contains(error.message, behind));
          EXPECT_TRUE(contains(error.message, "its core 0 no more"));
        });
        EXPECT_GT(late, 0);
      }
      EXPECT_EQ(held(), 0);
    }
  }
}

// Kernels of two groups that take the same devices, of which each would wait for a peer behind the
// other one's.
TEST(Offload, CommunicatorsOnTheSameDevicesTakeTurns) {
  reset();
  const int times = longForm() ? 40 : 10;
  LocalRanks ofOne(kRanks);
  LocalRanks ofAnother(kRanks);
  const auto sums = [times](int rank, wl_comm_t* comm) {
    for (int i = 0; i < times; ++i) {
      Error error;
      ASSERT_EQ(sumOnce(comm, rank, WL_TWO_PHASE, 0, &error), WL_OK) << error.message;
    }
  };
  std::thread beside([&] { ofAnother.run(sums); });
  ofOne.run(sums);
  beside.join();
}

TEST(Offload, WhoseTurnDoesNotComeByTheDeadlineIsToldWhatTheDeviceRuns) {
  reset();
  LocalRanks ofOne(kRanks);
  LocalRanks ofAnother(kRanks);
  const auto sumUp = [](LocalRanks& ranks, int64_t deadlineNs, int32_t expected, Error* error) {
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error own;
      EXPECT_EQ(sumOnce(comm, rank, WL_TWO_PHASE, deadlineNs, &own), expected) << own.message;
      if (rank == 0) *error = own;
    });
  };
  Error error;
  sumUp(ofOne, 0, WL_OK, &error);
  sumUp(ofAnother, 0, WL_OK, &error);
  isStuck(1, true);
  const int before = callsOn(1);
  std::thread beside([&] {
    Error none;
    sumUp(ofAnother, 0, WL_OK, &none);
  });
  EXPECT_TRUE(await([&] { return callsOn(1) > before; }));
  sumUp(ofOne, 100 * kMs, WL_DEADLINE_EXCEEDED, &error);
  EXPECT_TRUE(contains(error.message, "device runs all-reduce of another communicator"));
  isStuck(1, false);
  beside.join();
}

// A core that has no place would wait for one that waits for it.
TEST(Offload, AKernelTakesAsManyCoresAsEveryDeviceRunsAtATime) {
  reset();
  ASSERT_GT(deviceCores(), 1);
  runsAtOnce(1, 1);
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    for (int i = 0; i < 2; ++i) {
      Error error;
      EXPECT_EQ(sumOnce(comm, rank, WL_RING, 0, &error), WL_OK) << error.message;
    }
  });
}

TEST(Offload, ADeviceThatBeginsNothingIsNamed) {
  reset();
  isStuck(1, true);
  LocalRanks ranks(kRanks);
  std::thread beside([] {
    EXPECT_TRUE(await([] { return isToldToStop(1); }));
    isStuck(1, false);
  });
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    EXPECT_EQ(sumOnce(comm, rank, WL_TWO_PHASE, 0, &error), WL_DEVICE);
    ASSERT_EQ(error.faulty_rank_count, 1);
    EXPECT_EQ(error.faulty_ranks[0], 1);
    EXPECT_TRUE(contains(error.message, "device 1 began 0 of 2 cores"));
  });
  beside.join();
}

}  // namespace offload_test
}  // namespace windlass_test
