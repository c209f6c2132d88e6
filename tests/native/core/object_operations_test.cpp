// SPDX-License-Identifier: Apache-2.0
// What ranks make together in several operations: under one deadline, and apart from what they made
// 2^32 operations before.
#include "native/core/shared/object_operations.h"

#include "native/transfer/exchange.h"
#include "tests/native/core/comms.h"

namespace windlass_test {
namespace object_operations_test {

using windlass::Code;
using windlass::Comm;
using windlass::Descriptor;
using windlass::Group;
using windlass::HostOperation;
using windlass::TimeLimit;

constexpr int64_t kDeadline = 300 * kMs;

wl_error_t nothingWrong() {
  wl_error_t none = {};
  none.struct_size = sizeof none;
  return none;
}

void pause() {
  std::this_thread::sleep_for(std::chrono::nanoseconds(kDeadline / 10 * 6));
}

// Rank 1 comes to each of two operations late, and to neither later than the deadline.
TEST(ObjectOperations, OfASplitShareItsDeadline) {
  Comms ranks(2, 64);
  ranks.run([](uint32_t rank, Comm& comm) {
    Error error;
    if (rank == 0) {
      std::shared_ptr<Group> group;
      uint32_t as = 0;
      const Code code =
          windlass::splitGroup(comm, {WL_OP_SPLIT, 0, 0, 0, 0}, kDeadline, &group, &as, &error);
      EXPECT_EQ(WL_DEADLINE_EXCEEDED, code) << error.message;
      EXPECT_TRUE(group == nullptr);
      return;
    }
    const HostOperation split = {comm, Descriptor::of(WL_OP_SPLIT, 0),
                                 TimeLimit::fromNow(20'000 * kMs), &error};
    const int32_t own[2] = {};
    int32_t all[4] = {};
    pause();
    Code code = windlass::shareOutcome(split, nothingWrong());
    pause();
    if (code == WL_OK) code = windlass::gatherWords(split, own, sizeof own, all);
    EXPECT_EQ(WL_DEADLINE_EXCEEDED, code) << error.message;
  });
}

TEST(ObjectOperations, OfARegistrationShareItsDeadline) {
  Comms ranks(2, 64);
  ranks.run([](uint32_t rank, Comm& comm) {
    Error error;
    windlass::Exchange exchange(comm, 7, rank == 0 ? kDeadline : 20'000 * kMs, &error);
    exchange.reserve();
    Code code = WL_OK;
    for (int round = 0; round < 2 && code == WL_OK; ++round) {
      if (rank == 1) pause();
      uint64_t value = 1;
      code = exchange.sum(&value, 1);
    }
    EXPECT_EQ(WL_DEADLINE_EXCEEDED, code) << error.message;
  });
}

// The words of a group as they are once its ranks have gone through all sequences of 32 bits.
void comeRound(Comms* ranks) {
  const auto before = static_cast<uint32_t>(ranks->group->config().firstSequence - 1);
  for (uint32_t rank = 0; rank < ranks->comms.size(); ++rank) {
    windlass::RankLines& lines = ranks->group->lines(rank);
    lines.entry[before & 1].sequence.store(before);
    lines.entry[(before + 1) & 1].sequence.store(before - 1);
    lines.state.sequence.store(before);
    ranks->comms[rank] = std::make_unique<Comm>(ranks->group, rank);
  }
}

TEST(ObjectOperations, MakeAWindowOfTheirOwnThoughAnotherHadTheirSequence) {
  constexpr uint64_t kSmall = 4096;
  constexpr uint64_t kLarge = uint64_t{1} << 20;
  Comms ranks(3, 64);
  std::shared_ptr<windlass::Window> first[3], second[3];
  const auto make = [&](uint64_t bytes, std::shared_ptr<windlass::Window>* windows) {
    ranks.run([&](uint32_t rank, Comm& comm) {
      Error error;
      EXPECT_EQ(WL_OK, windlass::createWindow(comm, {WL_OP_WINDOW, bytes}, 0, &windows[rank],
                                                &error))
          << error.message;
    });
  };
  make(kSmall, first);
  comeRound(&ranks);
  make(kLarge, second);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(first[0], first[rank]);
    EXPECT_EQ(second[0], second[rank]);
    EXPECT_EQ(kSmall, first[rank]->bytes());
    EXPECT_EQ(kLarge, second[rank]->bytes());
  }
}

TEST(ObjectOperations, KnowWhichOperationAllHaveStated) {
  Comms ranks(2, 64);
  ranks.run([](uint32_t, Comm& comm) {
    Error error;
    ASSERT_EQ(WL_OK, runBarrier(comm, 0, &error)) << error.message;
    EXPECT_TRUE(comm.operation().allStated(Descriptor::of(WL_OP_BARRIER, 0)));
    EXPECT_FALSE(comm.operation().allStated(Descriptor::of(WL_OP_LINK_MOVE, 0)));
  });
}

}  // namespace object_operations_test
}  // namespace windlass_test
