// SPDX-License-Identifier: Apache-2.0
// Groups, windows, split, arguments, and what a communicator costs.
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "native/abi/handles.h"
#include "native/base/cores.h"
#include "native/base/free_memory.h"
#include "native/core/control_block.h"
#include "native/core/signal.h"

namespace windlass_test {
namespace communicator_test {

TEST(Sequence, WrapsAndComparesForward) {
  EXPECT_TRUE(windlass::reached(5, 5));
  EXPECT_TRUE(windlass::reached(6, 5));
  EXPECT_FALSE(windlass::reached(4, 5));
  EXPECT_TRUE(windlass::reached(2, 0xfffffffeu));
  EXPECT_FALSE(windlass::reached(0xfffffffeu, 2));
  EXPECT_TRUE(windlass::reached(0x80000001u, 0x7fffffffu));
}

TEST(Cores, AreReadFromACgroupsQuota) {
  EXPECT_EQ(0, windlass::coresOfQuota("max 100000"));
  EXPECT_EQ(2, windlass::coresOfQuota("150000 100000"));
  EXPECT_EQ(1, windlass::coresOfQuota("100000 100000"));
  EXPECT_EQ(1, windlass::coresOfQuota("1000 100000"));
  EXPECT_EQ(0, windlass::coresOfQuota("-1 100000"));
  EXPECT_EQ(0, windlass::coresOfQuota(""));
  EXPECT_EQ(0, windlass::coresOfQuota("12 0"));
  EXPECT_GE(wl_allowed_cores(), 1);
}

TEST(Window, IsZeroedAlignedAndTheSameOnEveryRank) {
  LocalRanks ranks(3);
  std::vector<void*> seen(9);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    wl_window_t* window = nullptr;
    ASSERT_EQ(WL_OK, wl_window_create(comm, 10'001, 0, &window, &error)) << error.message;
    EXPECT_EQ(10'001u, wl_window_bytes(window));
    for (int peer = 0; peer < 3; ++peer)
      seen[static_cast<size_t>(rank * 3 + peer)] = wl_window_address(window, peer);
    const auto* bytes = static_cast<const uint8_t*>(wl_window_address(window, rank));
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(bytes) % 4096);
    for (int i = 0; i < 10'001; ++i) ASSERT_EQ(0, bytes[i]);
    EXPECT_EQ(nullptr, wl_window_address(window, 3));
    EXPECT_EQ(nullptr, wl_window_address(window, -1));
    wl_window_free(window);
  });
  for (size_t peer = 0; peer < 3; ++peer) {
    EXPECT_EQ(seen[peer], seen[3 + peer]);
    EXPECT_EQ(seen[peer], seen[6 + peer]);
  }
}

TEST(Window, DifferentSizesAreAMismatchAndTooLargeIsAResourceError) {
  for (const int n : {2, 4}) {
    LocalRanks ranks(n);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      wl_window_t* window = nullptr;
      EXPECT_EQ(WL_RESOURCE, wl_window_create(comm, uint64_t{1} << 60, 0, &window, &error))
          << error.message;
      EXPECT_EQ(nullptr, window);
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error))
          << "the communicator lives on: " << error.message;
      EXPECT_EQ(WL_MISMATCH, wl_window_create(comm, rank == 0 ? 64 : 128, 0, &window, &error))
          << error.message;
    });
  }
}

TEST(Split, OrdersByKeyThenRankAndEachPartIsIndependent) {
  LocalRanks ranks(6);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    wl_comm_t* part = nullptr;
    const int color = rank == 5 ? -1 : rank % 2;
    ASSERT_EQ(WL_OK, wl_comm_split(comm, color, -rank, 0, &part, &error)) << error.message;
    if (rank == 5) {
      EXPECT_EQ(nullptr, part);
      return;
    }
    const int size = color == 0 ? 3 : 2;
    EXPECT_EQ(size, wl_comm_size(part));
    EXPECT_EQ(size - 1 - rank / 2, wl_comm_rank(part));
    std::vector<int32_t> in(static_cast<size_t>(size), rank), out(static_cast<size_t>(size));
    ASSERT_EQ(WL_OK, allToAll(part, in.data(), out.data(), 1, WL_I32, WL_AUTO, 0, &error))
        << error.message;
    for (int i = 0; i < size; ++i)
      EXPECT_EQ(2 * (size - 1 - i) + color, out[static_cast<size_t>(i)]);
    if (color == 0) {
      EXPECT_EQ(WL_OK, wl_comm_abort(part, "this part alone", &error));
      EXPECT_EQ(WL_ABORTED, callBarrier(part, 0, &error));
    } else {
      EXPECT_EQ(WL_OK, callBarrier(part, 0, &error)) << error.message;
    }
    wl_comm_free(part);
  });
  ranks.run([&](int, wl_comm_t* comm) {
    Error error;
    EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
}

TEST(Split, BesideAWindowOfAPeerIsAMismatchOnBoth) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    LocalRanks ranks(2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      wl_window_t* window = nullptr;
      wl_comm_t* part = nullptr;
      const int code = rank == 0 ? wl_window_create(comm, 4096, 0, &window, &error)
                                 : wl_comm_split(comm, 0, 0, 0, &part, &error);
      EXPECT_EQ(WL_MISMATCH, code) << error.message;
      EXPECT_EQ(nullptr, window);
      EXPECT_EQ(nullptr, part);
    });
  }
}

TEST(Buffers, BeyondWhatAProcessAddressesAreRefusedUnlessEmpty) {
  LocalRanks ranks(2);
  ranks.run([&](int, wl_comm_t* comm) {
    float out[4] = {};
    for (const uint64_t address : {uint64_t{1} << 48, (uint64_t{1} << 48) - 4, ~uint64_t{63}}) {
      Error error;
      const auto* in = reinterpret_cast<const float*>(address);
      EXPECT_EQ(WL_INVALID_ARGUMENT,
                allReduce(comm, in, out, 4, WL_F32, WL_SUM, WL_AUTO, 0, &error));
      EXPECT_TRUE(contains(error.message, "beyond what a process can address"));
      EXPECT_EQ(WL_OK, allReduce(comm, in, out, 0, WL_F32, WL_SUM, WL_TWO_PHASE, 0, &error))
          << error.message;
    }
  });
}

TEST(Subgroup, OrdersByTheListAndListsOverlap) {
  LocalRanks ranks(4);
  const std::vector<std::vector<int32_t>> lists = {{0, 1}, {1, 2}, {2, 0}, {3, 1, 0, 2}, {3}};
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    std::vector<wl_comm_t*> subgroups;
    for (const std::vector<int32_t>& list : lists) {
      wl_comm_t* subgroup = nullptr;
      ASSERT_EQ(WL_OK, wl_comm_subgroup(comm, list.data(), static_cast<uint32_t>(list.size()), 0,
                                        &subgroup, &error))
          << error.message;
      const auto listed = std::find(list.begin(), list.end(), rank);
      ASSERT_EQ(listed != list.end(), subgroup != nullptr);
      subgroups.push_back(subgroup);
      if (subgroup == nullptr) continue;
      EXPECT_EQ(static_cast<int32_t>(list.size()), wl_comm_size(subgroup));
      EXPECT_EQ(listed - list.begin(), wl_comm_rank(subgroup));
    }
    for (int round = 0; round < 100; ++round) {
      for (size_t i = 0; i < lists.size(); ++i) {
        if (subgroups[i] == nullptr) continue;
        std::vector<int32_t> out(lists[i].size());
        ASSERT_EQ(WL_OK, allGather(subgroups[i], &rank, out.data(), 1, WL_I32, 0, &error))
            << error.message;
        EXPECT_EQ(lists[i], out);
      }
    }
    for (wl_comm_t* subgroup : subgroups) wl_comm_free(subgroup);
  });
}

TEST(Subgroup, DifferentListsAreAMismatchAndWrongOnesAreNamed) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    wl_comm_t* subgroup = nullptr;
    const int32_t list[] = {0, 1, 1, 2};
    const auto refused = [&](const int32_t* from, uint32_t count, const char* why) {
      EXPECT_EQ(WL_INVALID_ARGUMENT, wl_comm_subgroup(comm, from, count, 0, &subgroup, &error));
      EXPECT_STREQ(why, error.message);
    };
    refused(nullptr, 1, "ranks is NULL");
    refused(list, 0, "ranks is empty");
    refused(list, 3, "ranks[2] is 1, as one before it");
    refused(list + 2, 2, "ranks[1] is 2, not 0 to 1");
    EXPECT_EQ(WL_MISMATCH, wl_comm_subgroup(comm, list + rank, 1, 0, &subgroup, &error));
    EXPECT_NE(nullptr, std::strstr(error.message, "calls subgroup(")) << error.message;
    EXPECT_EQ(nullptr, subgroup);
  });
}

TEST(Wait, ASleeperIsRungByWhoeverItWaitsFor) {
  for (const int cores : {1, 64}) {
    LocalRanks ranks(2, 20'000'000'000, 1, cores);
    const windlass::Doorbell& bell = ranks.comms[0]->comm.group().lines(0).bell;
    // A rank that is not asleep and not about to sleep wakes without help, so that round shows
    // nothing.
    for (int round = 0; round < 200 && bell.ring.load() == 0; ++round) {
      std::thread sleeper([&] {
        Error error;
        EXPECT_EQ(WL_OK, callBarrier(ranks.comms[0], 0, &error)) << error.message;
      });
      while (bell.sleeping.load() == 0) std::this_thread::yield();
      Error error;
      EXPECT_EQ(WL_OK, callBarrier(ranks.comms[1], 0, &error)) << error.message;
      sleeper.join();
    }
    EXPECT_GT(bell.ring.load(), 0u) << cores << " cores";
  }
}

// A rank that waits for a signal looks where its peer last began an operation.
TEST(Wait, NoCoreIsKnownOfARankThatHasBegunNothing) {
  LocalRanks ranks(2);
  if (ranks.comms[0] == nullptr || ranks.comms[1] == nullptr) GTEST_SKIP() << "they live apart";
  for (uint32_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(-1, ranks.comms[0]->comm.group().lines(rank).state.core.load()) << rank;
}

TEST(Arguments, AreCheckedBeforeAnythingIsSent) {
  LocalRanks ranks(1);
  wl_comm_t* comm = ranks.comms[0];
  Error error;
  wl_group_t* group = nullptr;
  wl_group_config_t config = {};
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_create(nullptr, &group, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_create(&config, &group, &error));
  config.struct_size = sizeof config;
  for (const int bad : {0, -1, WL_MAX_RANKS + 1}) {
    config.ranks = bad;
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_create(&config, &group, &error));
    EXPECT_NE(nullptr, std::strstr(error.message, "ranks"));
  }
  wl_comm_t* second = nullptr;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_join(ranks.group, 0, &second, &error))
      << "joined already";
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_group_join(ranks.group, 1, &second, &error)) << "out of range";
  EXPECT_EQ(WL_INVALID_ARGUMENT, callBarrier(nullptr, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, callBarrier(comm, -1, &error));
  alignas(64) unsigned char buffer[256] = {};
  const uint64_t huge = std::numeric_limits<uint64_t>::max() / 2;
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            allToAll(comm, buffer, buffer + 128, huge, WL_F32, 0, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, allToAll(comm, nullptr, buffer, 1, WL_F32, 0, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, allToAll(comm, buffer, nullptr, 1, WL_F32, 0, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, allToAll(comm, buffer, buffer + 2, 1, WL_F32, 0, 0, &error))
      << "unaligned";
  EXPECT_EQ(WL_INVALID_ARGUMENT, allToAll(comm, buffer, buffer + 4, 2, WL_F32, 0, 0, &error))
      << "overlap";
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            allToAll(comm, buffer, buffer + 128, 1, WL_DTYPE_COUNT, 0, 0, &error))
      << "dtype";
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            allToAll(comm, buffer, buffer + 128, 1, WL_F32, WL_STAGED, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, broadcast(comm, buffer, buffer, 1, WL_F32, 1, 0, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, broadcast(comm, buffer, buffer, 1, WL_F32, -1, 0, 0, &error));
  EXPECT_EQ(WL_INVALID_ARGUMENT, broadcast(comm, buffer, buffer + 4, 2, WL_F32, 0, 0, 0, &error))
      << "overlap";
  EXPECT_EQ(WL_OK, allToAll(comm, nullptr, nullptr, 0, WL_F32, 0, 0, &error))
      << "nothing to move";
  EXPECT_EQ(WL_OK, callBarrier(comm, 0, nullptr)) << "the error is optional";
  void* memory = nullptr;
  EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_alloc(8, 3, &memory, &error));
  EXPECT_EQ(WL_RESOURCE, wl_memory_alloc(uint64_t{1} << 62, 0, &memory, &error));
  // More than there is, of which the system would promise the pages all the same.
  const uint64_t beyond = wl_memory_available() + (uint64_t{1} << 30);
  EXPECT_EQ(WL_RESOURCE, wl_memory_alloc(beyond, 0, &memory, &error));
  EXPECT_TRUE(contains(error.message, "are free, says")) << error.message;
}

TEST(Arguments, OfASubmittedCallAreCheckedBeforeItRuns) {
  LocalRanks ranks(1);
  wl_comm_t* comm = ranks.comms[0];
  Error error;
  const auto refused = [&](const wl_call_t* call, const char* part) {
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_submit(comm, call, &error)) << part;
    EXPECT_TRUE(contains(error.message, part)) << error.message;
  };
  refused(nullptr, "call is NULL");
  wl_call_t call = callOf(WL_OP_BARRIER, 0);
  call.struct_size = 0;
  refused(&call, "call->struct_size is 0, not");
  for (const int operation : {-1, static_cast<int>(WL_OP_COUNT)}) {
    call = callOf(operation, 0);
    refused(&call, ("operation " + std::to_string(operation) + " is unknown").c_str());
  }
  for (const int operation : {WL_OP_NONE, WL_OP_WINDOW, WL_OP_TRANSFER, WL_OP_PUT, WL_OP_SHRINK}) {
    call = callOf(operation, 0);
    refused(&call, "wl_submit does not run operation ");
  }
  const int64_t own[2] = {};
  int64_t all[2] = {};
  call = callOf(WL_OP_LINK, own, 2, all, 1, WL_I64, 0);
  refused(&call, "out has 1 elements, in has 2");
  if (deviceCores() == 0) {
    uint64_t ticket = 1;
    call = callOf(WL_OP_BARRIER, 0);
    EXPECT_EQ(WL_UNSUPPORTED, submitOn(comm, 0, call, &ticket, &error));
    EXPECT_TRUE(contains(error.message, "run on no stream")) << error.message;
    EXPECT_EQ(0u, ticket);
  }
}

TEST(Communicator, AWindowThatIsLargerThanWhatIsFreeIsRefusedOnAllRanks) {
  LocalRanks ranks(2);
  const uint64_t beyond = windlass::FreeMemory::look().bytes / 2 + (uint64_t{1} << 30);
  ranks.run([&](int, wl_comm_t* comm) {
    Error error;
    wl_window_t* window = nullptr;
    EXPECT_EQ(WL_RESOURCE, wl_window_create(comm, beyond, 0, &window, &error));
    EXPECT_TRUE(contains(error.message, "are free, says")) << error.message;
    EXPECT_EQ(nullptr, window);
    wl_memory_pool_t* pool = nullptr;
    EXPECT_EQ(WL_RESOURCE, wl_memory_pool_create(comm, uint64_t{1} << 62, 0, &pool, &error));
    EXPECT_TRUE(contains(error.message, "cannot map a memory pool of ")) << error.message;
    EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
}

TEST(Error, IsNeverWrittenBeyondItsStructSize) {
  LocalRanks ranks(1);
  struct {
    wl_error_t error;
    char guard[16];
  } slot;
  std::memset(&slot, 0x5a, sizeof slot);
  slot.error.struct_size = offsetof(wl_error_t, message) + 8;
  EXPECT_EQ(WL_INVALID_ARGUMENT, callBarrier(ranks.comms[0], -5, &slot.error));
  EXPECT_EQ(7u, std::strlen(slot.error.message));
  for (size_t i = 8; i < WL_ERROR_MESSAGE; ++i) ASSERT_EQ(0x5a, slot.error.message[i]);
}

// Resident bytes of this process.
uint64_t resident() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0, here = 0;
  statm >> pages >> here;
  return here * 4096;
}

// Under a sanitizer, where a thousand threads take long, some more than a word has bits.
TEST(Cost, ThousandRanksStayUnderTheirMemory) {
  const int count = kSlow > 1 && !longForm() ? 100 : 1024;
  const uint64_t before = resident();
  LocalRanks ranks(count);
  // The process may have given pages back meanwhile.
  EXPECT_LT(resident(), before + (uint64_t{512} << 20));
  EXPECT_LE(sizeof(windlass::RankLines) * 1024 + sizeof(windlass::SharedLines),
            uint64_t{512} << 20);
#if !defined(__SANITIZE_THREAD__)
  const int root = count - 24;
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint32_t value = rank == root ? 77 : 0;
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    ASSERT_EQ(WL_OK, broadcast(comm, &value, &value, 1, WL_U32, root, 0, 0, &error))
        << error.message;
    EXPECT_EQ(77u, value);
  });
#endif
}

TEST(Cost, ASplitTakesTheMemoryOfItsMembersAlone) {
  if (kSlow > 1) {
    GTEST_SKIP() << "a sanitizer's own memory of 256 threads counts as resident: the build without "
                    "runs this";
  }
  constexpr int kRanks = 256;
  LocalRanks ranks(kRanks);
  std::vector<wl_comm_t*> pairs(kRanks);
  const uint64_t before = resident();
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    wl_comm_t*& pair = pairs[static_cast<size_t>(rank)];
    ASSERT_EQ(WL_OK, wl_comm_split(comm, rank / 2, 0, 0, &pair, &error)) << error.message;
    EXPECT_EQ(WL_OK, callBarrier(pair, 0, &error)) << error.message;
  });
  EXPECT_LT(resident(), before + (uint64_t{64} << 20));  // which others may have given back
  for (wl_comm_t* pair : pairs) wl_comm_free(pair);
}

}  // namespace communicator_test
}  // namespace windlass_test
