// SPDX-License-Identifier: Apache-2.0
// Collectives that the host hands to devices, on a2a3 and a5, over the stand-in for their runtime:
// whichever of its calls fails, every rank is told, the rank whose call it was is named, and
// nothing stays behind.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/native/comm/local_ranks.h"

namespace windlass_test {
namespace {

template <class Function>
Function standIn(const char* name) {
  static void* const library =
      dlopen((std::string(std::getenv("ASCEND_HOME_PATH")) + "/lib64/libascendcl.so").c_str(),
             RTLD_NOW);
  const auto function = reinterpret_cast<Function>(dlsym(library, name));
  EXPECT_NE(function, nullptr) << name;
  return function;
}
void reset() {
  standIn<void (*)()>("standInReset")();
}
void failCall(int device, int call) {
  standIn<void (*)(int, int, int)>("standInFail")(device, call, 507899);
}
int callsOn(int device) {
  return standIn<int (*)(int)>("standInCalls")(device);
}
int held() {
  return standIn<int (*)()>("standInHeld")();
}
std::string call(int device, int number) {
  return standIn<const char* (*)(int, int)>("standInCall")(device, number);
}

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
    EXPECT_EQ(wl_exchange_v(comm, WL_OP_LINK, own.data(), own.size(), all.data(), all.size(),
                            counts, 0, &error),
              WL_OK)
        << error.message;
    for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i < 5 ? 1 : 3) << i;
  });
}

TEST(Offload, AFailureOfAnyCallIsToldToAllAndLeavesNothing) {
  reset();
  allReduceTwice();
  const int calls = callsOn(1);
  ASSERT_GT(calls, 20);
  for (int failing = 1; failing <= calls; ++failing) {
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
      EXPECT_EQ(one.error.culprit_count, 1) << text;
      EXPECT_EQ(one.error.culprits[0], 1) << text << ": " << one.error.message;
      EXPECT_NE(std::string(one.error.message).find("acl"), std::string::npos)
          << one.error.message;
    }
    // A rank that holds its result may return it.
    EXPECT_TRUE(failed == 0 || outcomes[1].code != WL_OK) << text;
  }
}

}  // namespace
}  // namespace windlass_test
