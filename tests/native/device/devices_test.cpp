// SPDX-License-Identifier: Apache-2.0
// A group's devices below the communicator: kernels that end late or not at all, calls of the
// runtime that don't return, and extents that no window holds.
#include "kernels/offload.h"
#include "native/device/kept_devices.h"
#include "native/device/offload_seats.h"
#include "tests/native/acl/stand_in.h"
#include "tests/native/core/local_ranks.h"
#include "tests/native/device/stand_in.h"

namespace windlass_test {
namespace devices_test {

using namespace stand_in;
using windlass::Code;
using windlass::OffloadProgress;

// Ranks whose operation goes on for so many looks, and then is late.
class Peers final : public windlass::OffloadPeers {
 public:
  Peers(windlass::acl::Exchange& shared, uint32_t rank, int looks)
      : seat_(shared, rank), looks_(looks) {}
  uint32_t rank() const override { return seat_.rank(); }
  uint32_t ranks() const override { return seat_.ranks(); }
  Code all(const void* own, void* everyones, uint64_t bytes, wl_error_t* error) override {
    return seat_.all(own, everyones, bytes, error);
  }
  uint32_t firstBeside(uint32_t) const override { return 0; }
  windlass::DeviceWait& wait() override { return wait_; }
  bool goesOn() override { return looks_-- > 0; }
  int64_t leftNs() override { return kMs; }
  Code ended(const OffloadProgress& told) override {
    progress = told;
    return WL_DEADLINE_EXCEEDED;
  }
  Code busy(const std::vector<uint32_t>&, const char*) override { return WL_DEADLINE_EXCEEDED; }

  OffloadProgress progress = {};

 private:
  windlass::acl::Exchange::Seat seat_;
  int looks_;
  const std::shared_ptr<windlass::Group> group_ = windlass::Group::create({});
  windlass::DeviceWait wait_{*group_, 0, INT64_MAX};  // lasts as long as it takes
};

constexpr int kAlways = 1 << 30;

// An all-reduce of 1000 i32, on devices from `first` on. Element i of rank r is r + i.
struct Devices {
  static constexpr uint32_t kCount = 1000;

  Devices(uint32_t ranks, uint32_t first) : seats(ranks), outcomes(ranks) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      seats[rank].device = first + rank;
      seats[rank].offload.reset(new windlass::Offload(first + rank));
    }
  }

  // Runs an operation that lasts for this number of looks of each rank.
  void reduce(int looks, uint64_t inBytes = 4 * kCount) {
    const auto count = static_cast<uint32_t>(outcomes.size());
    windlass::acl::Exchange shared(count);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] { reduceOn(rank, shared, looks, inBytes); });
    for (std::thread& thread : threads) thread.join();
  }

  void reduceOn(uint32_t rank, windlass::acl::Exchange& shared, int looks, uint64_t inBytes) {
    using K = windlass::AllReduceTwoPhase;
    const auto count = static_cast<uint32_t>(outcomes.size());
    windlass::Launch launch = {};
    launch.ranks = count;
    launch.dtype = windlass::DType::kI32;
    launch.bytes = 4 * kCount;
    K::plan(launch);
    std::vector<int32_t> in(kCount);
    std::vector<int32_t> out(kCount, -1);
    for (uint32_t i = 0; i < kCount; ++i) in[i] = static_cast<int32_t>(rank + i);
    Outcome& own = outcomes[rank];
    Peers peers(shared, rank, looks);
    own.error = Error();
    own.code = seats[rank].offload->run(
        {"all-reduce", windlass::OffloadedKernels::indexOf<K>(), &launch, K::phases(launch), 2,
         {in.data(), inBytes, out.data(), 4 * kCount, nullptr, 0, 0}},
        peers, &own.faultyRank, &own.error);
    own.progress = peers.progress;
    own.isRight = true;
    for (uint32_t i = 0; i < kCount; ++i) {
      own.isRight =
          own.isRight && out[i] == static_cast<int32_t>(count * (count - 1) / 2 + count * i);
    }
  }

  struct Outcome {
    Code code = WL_OK;
    Error error;
    uint32_t faultyRank = 0;
    OffloadProgress progress = {};
    bool isRight = false;
  };
  windlass::OffloadSeats seats;
  std::vector<Outcome> outcomes;
};

TEST(OffloadDevices, AKernelThatEndsJustBeforeItIsToldToStopHasEnded) {
  for (const int waits : {1, 2}) {
    reset();
    {
      Devices devices(1, 20);
      devices.reduce(kAlways);
      isLate(20, waits);
      devices.reduce(0);
      const Devices::Outcome& own = devices.outcomes[0];
      EXPECT_EQ(own.code, WL_OK) << own.error.message;
      EXPECT_TRUE(own.isRight);
      // The first of them is looked at again before anything is said.
      EXPECT_EQ(own.progress.ranks.size(), waits == 1 ? 0u : 1u);
    }
    EXPECT_EQ(held(), 0);
  }
}

TEST(OffloadDevices, AreToldHowFarEachRankIs) {
  reset();
  Devices devices(3, 20);
  devices.reduce(kAlways);
  isStuck(21, true);
  std::thread beside([] {
    // Rank 0 has told its own kernel to stop, which has ended.
    EXPECT_TRUE(await([] { return isStopped(20); }));
    isStuck(21, false);
  });
  devices.reduce(2);
  beside.join();
  const Devices::Outcome& own = devices.outcomes[0];
  EXPECT_EQ(own.code, WL_DEADLINE_EXCEEDED);
  EXPECT_EQ(own.faultyRank, windlass::kNobody);
  EXPECT_EQ(own.progress.phases, 1u);
  ASSERT_EQ(own.progress.ranks.size(), 3u);
  EXPECT_EQ(own.progress.ranks[0].over, 1u);
  EXPECT_EQ(own.progress.ranks[1].over, 0u);
  EXPECT_EQ(own.progress.ranks[2].over, 1u);
}

// Its kernel writes to its peers' windows as well.
TEST(OffloadDevices, WindowsThatAStuckKernelMayReachAreKeptAndCounted) {
  reset();
  const uint64_t before = windlass::KeptDevices::windows();
  {
    Devices devices(2, 40);
    devices.reduce(kAlways);
    isStuck(41, true);
    devices.reduce(2);
    EXPECT_EQ(devices.outcomes[1].code, WL_DEADLINE_EXCEEDED);
    // The device takes no other work either.
    devices.reduce(kAlways);
    for (const Devices::Outcome& one : devices.outcomes) EXPECT_EQ(one.code, WL_DEVICE);
    EXPECT_TRUE(contains(devices.outcomes[1].error.message, "device 41 may still run all-reduce"));
  }
  for (const int device : {40, 41}) {
    const std::string reset = "aclrtResetDevice " + std::to_string(device);
    for (const std::string& gives :
         {std::string("aclrtUnmapMem"), std::string("aclrtReleaseMemAddress"),
          std::string("aclrtFreePhysical"), std::string("aclrtFree"),
          std::string("aclrtDestroyStream"), reset})
      EXPECT_EQ(countCalls(device, gives), 0) << gives << " on device " << device;
  }
  EXPECT_EQ(windlass::KeptDevices::windows(), before + 2);
  Devices again(1, 41);
  again.reduce(kAlways);
  EXPECT_EQ(again.outcomes[0].code, WL_DEVICE);
  EXPECT_TRUE(contains(again.outcomes[0].error.message,
                       std::to_string(before + 2) + " windows of "));
}

// An exception of an AI core or a vector core ends its kernel; other errors of a wait don't say
// whether it has ended.
TEST(OffloadDevices, WindowsAreKeptOfAKernelThatNoWaitTellsOf) {
  const struct {
    int error;
    bool isOver;
  } cases[] = {{507015, true}, {507035, true}, {107000, false}};
  uint32_t device = 60;
  for (const auto& each : cases) {
    SCOPED_TRACE(each.error);
    reset();
    const uint64_t before = windlass::KeptDevices::windows();
    {
      Devices devices(1, device);
      devices.reduce(kAlways);
      refuseWaits(static_cast<int>(device), each.error);
      devices.reduce(kAlways);
      EXPECT_EQ(devices.outcomes[0].code, WL_DEVICE);
      EXPECT_TRUE(
          contains(devices.outcomes[0].error.message, " returned " + std::to_string(each.error)));
    }
    EXPECT_EQ(windlass::KeptDevices::windows(), before + (each.isOver ? 0 : 1));
    EXPECT_EQ(held() == 0, each.isOver);
    ++device;
  }
}

TEST(OffloadDevices, ACallThatDoesNotReturnDoesNotHoldUpTheEnd) {
  reset();
  const uint64_t before = windlass::KeptDevices::windows();
  int64_t start = 0;
  {
    Devices devices(2, 50);
    devices.reduce(kAlways);
    hold(51);
    start = wl_clock_ns();
  }
  EXPECT_LT(wl_clock_ns() - start, 20'000 * kMs);
  EXPECT_EQ(windlass::KeptDevices::windows(), before + 1);
  hold(-1);
  EXPECT_TRUE(await([] { return held() == 0; }));
}

TEST(OffloadDevices, AnExtentThatNoWindowHoldsIsRefusedOnAllRanks) {
  reset();
  Devices devices(2, 20);
  devices.reduce(kAlways, ~uint64_t{0} - 100);
  for (const Devices::Outcome& one : devices.outcomes) {
    EXPECT_EQ(one.code, WL_INVALID_ARGUMENT);
    EXPECT_EQ(one.faultyRank, 0u);
    EXPECT_TRUE(contains(one.error.message, "18446744073709551515 bytes: a window holds"));
  }
}

}  // namespace devices_test
}  // namespace windlass_test
