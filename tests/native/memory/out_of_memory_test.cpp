// SPDX-License-Identifier: Apache-2.0
// Calls whose allocations fail, one after the other: none throws, and what ranks do together fails
// on all of them or on none.
#include <pthread.h>

#include <array>
#include <functional>
#include <system_error>

#include "tests/native/collective_calls.h"
#include "tests/native/core/windows.h"
#include "tests/native/memory/failing_allocation.h"

namespace windlass_test {
namespace out_of_memory_test {

constexpr int kRanks = 3;

// Makes something together on each rank, with one allocation of rank `failing` failing after the
// other, until one succeeds.
void failOneAfterTheOther(const std::function<int(wl_comm_t*, Error*)>& make, int failing,
                          int cores) {
  LocalRanks ranks(kRanks, 5'000 * kMs, 1, cores);
  int codes[kRanks];
  Error errors[kRanks];
  std::atomic<bool> over{false};
  int failures = 0;
  ranks.run([&](int rank, wl_comm_t* comm) {
    for (int number = 1; !over; ++number) {
      Error& error = errors[rank];
      if (rank == failing) {
        const FailingAllocation allocation(number);
        codes[rank] = make(comm, &error);
        over = !FailingAllocation::happened();
      } else {
        codes[rank] = make(comm, &error);
      }
      Error later;
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &later)) << later.message;
      if (rank == failing) {
        const int expected = over ? WL_OK : codes[failing];
        failures += codes[failing] == WL_OK ? 0 : 1;
        for (int peer = 0; peer < kRanks; ++peer) {
          EXPECT_EQ(expected, codes[peer]) << "rank " << peer << ", allocation " << number;
          if (codes[peer] == WL_OK) continue;
          EXPECT_EQ(WL_RESOURCE, codes[peer]) << errors[peer].message;
          EXPECT_STREQ(errors[failing].message, errors[peer].message);
          EXPECT_TRUE(contains(errors[peer].message, "out of memory"));
        }
      }
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &later)) << later.message;
    }
  });
  EXPECT_GT(failures, 0);
}

void failOnEach(const std::function<int(wl_comm_t*, Error*)>& make) {
  for (const int cores : {1, 64}) {
    for (int failing = 0; failing < kRanks; ++failing) failOneAfterTheOther(make, failing, cores);
  }
}

TEST(OutOfMemory, FailsARegistrationOnAllRanks) {
  std::vector<std::vector<float>> memory(kRanks, std::vector<float>(2 * 64));
  failOnEach([&](wl_comm_t* comm, Error* error) {
    const int rank = wl_comm_rank(comm);
    float* own = memory[static_cast<size_t>(rank)].data();
    const auto binding = [](float* at) {
      const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(at));
      return std::array<int64_t, 7>{WL_F32, 1, address, address, 64 * 4, 64, 1};
    };
    const auto source = binding(own);
    const auto target = binding(own + 64);
    // The first half of the left neighbour's, and the second half of this rank's.
    const int left = (rank + kRanks - 1) % kRanks;
    const int64_t chunks[] = {0, 0, WL_F32, WL_SUM, 1, 1, 32, 0,  left, 0, 0,
                              0, 0, WL_F32, WL_SUM, 1, 1, 32, 32, rank, 0, 32};
    wl_transfer_config_t config = {};
    config.struct_size = sizeof config;
    config.source_bindings = source.data();
    config.source_binding_words = source.size();
    config.source_binding_count = 1;
    config.target_bindings = target.data();
    config.target_binding_words = target.size();
    config.target_binding_count = 1;
    config.chunks = chunks;
    config.chunk_words = sizeof chunks / sizeof *chunks;
    config.chunk_count = 2;
    wl_transfer_t* transfer = nullptr;
    const int code = wl_transfer_create(comm, &config, 0, &transfer, error);
    EXPECT_EQ(code == WL_OK, transfer != nullptr);
    EXPECT_TRUE(code == WL_OK || contains(error->message, "'s part of the transfer: "));
    wl_transfer_free(transfer);
    return code;
  });
}

TEST(OutOfMemory, FailsTheMakingOfAWindowOnAllRanks) {
  failOnEach([](wl_comm_t* comm, Error* error) {
    wl_window_t* window = nullptr;
    const int code = wl_window_create(comm, 4096, 0, &window, error);
    EXPECT_EQ(code == WL_OK, window != nullptr);
    wl_window_free(window);
    return code;
  });
}

TEST(OutOfMemory, FailsTheMakingOfAMemoryPoolOnAllRanks) {
  failOnEach([](wl_comm_t* comm, Error* error) {
    wl_memory_pool_t* pool = nullptr;
    const int code = wl_memory_pool_create(comm, 4096, 0, &pool, error);
    EXPECT_EQ(code == WL_OK, pool != nullptr);
    wl_memory_pool_free(pool);
    return code;
  });
}

TEST(OutOfMemory, TakesNothingFromAMemoryPoolAndIsNothingToWhatIsGivenBack) {
  LocalRanks ranks(1);
  wl_memory_pool_t* pool = nullptr;
  Error error;
  ASSERT_EQ(WL_OK, wl_memory_pool_create(ranks.comms[0], 1 << 20, 0, &pool, &error));
  void* first = nullptr;
  int failures = 0;
  bool over = false;
  for (int number = 1; !over; ++number) {
    const FailingAllocation allocation(number);
    const int code = wl_memory_pool_alloc(pool, 10'000, &first, &error);
    over = !FailingAllocation::happened();
    EXPECT_EQ(over ? WL_OK : WL_RESOURCE, code);
    EXPECT_EQ(over ? 10'048u : 0u, wl_memory_pool_used(pool));
    failures += over ? 0 : 1;
  }
  EXPECT_GT(failures, 0);
  void* pieces[3] = {};
  for (void*& piece : pieces)
    ASSERT_EQ(WL_OK, wl_memory_pool_alloc(pool, 64, &piece, &error)) << error.message;
  {
    const FailingAllocation allocation(1);
    for (void* piece : {pieces[1], first, pieces[0], pieces[2]})
      EXPECT_EQ(WL_OK, wl_memory_pool_release(pool, piece, &error)) << error.message;
    EXPECT_FALSE(FailingAllocation::happened());
  }
  EXPECT_EQ(0u, wl_memory_pool_used(pool));
  wl_memory_pool_free(pool);
}

// A rank that lacks memory only for the handle leaves the new communicator.
TEST(OutOfMemory, OfASplitFailsOnAllRanksOrShowsInTheNewCommunicatorAtOnce) {
  failOnEach([](wl_comm_t* comm, Error* error) {
    wl_comm_t* child = nullptr;
    const int code = wl_comm_split(comm, 0, 0, 0, &child, error);
    EXPECT_EQ(code == WL_OK, child != nullptr);
    if (code != WL_OK) return code;
    const int inside = callBarrier(child, 0, error);
    wl_comm_free(child);
    if (inside == WL_OK) return inside;
    EXPECT_EQ(WL_ABORTED, inside) << error->message;
    EXPECT_TRUE(contains(error->message, "never joined it"));
    std::snprintf(error->message, sizeof error->message, "rank %d is out of memory",
                  error->faulty_ranks[0]);
    return static_cast<int>(WL_RESOURCE);
  });
}

// Collectives whose parts differ in size state them in the control block.
using PartsCall = std::function<int(wl_comm_t*, const float* in, float* out, int64_t part, Error*)>;

void partsWithoutMemory(const PartsCall& call) {
  for (const int cores : {1, 64}) {
    // Longer operations start the rank's workers.
    for (const int64_t part : {2, 3000, 9000}) {
      const auto elements = static_cast<size_t>(part * kRanks);
      std::vector<std::vector<float>> memory(kRanks, std::vector<float>(2 * elements, 1.0f));
      LocalRanks ranks(kRanks, 5'000 * kMs, 1, cores);
      ranks.run([&](int rank, wl_comm_t* comm) {
        float* in = memory[static_cast<size_t>(rank)].data();
        Error error;
        const FailingAllocation allocation(1);
        EXPECT_EQ(WL_OK, call(comm, in, in + elements, part, &error)) << error.message;
        EXPECT_FALSE(FailingAllocation::happened());
      });
    }
  }
}

TEST(OutOfMemory, IsNothingToAnExchangeOfParts) {
  partsWithoutMemory([](wl_comm_t* comm, const float* in, float* out, int64_t part, Error* error) {
    const int64_t counts[kRanks] = {part, part, part};
    const int64_t offsets[kRanks] = {2 * part, 0, part};
    const auto elements = static_cast<uint64_t>(part * kRanks);
    return callAllToAllV(comm, in, elements, counts, offsets, out, elements, counts, offsets,
                         WL_F32, 0, error);
  });
}

TEST(OutOfMemory, IsNothingToAPackedExchangeOfParts) {
  partsWithoutMemory([](wl_comm_t* comm, const float* in, float* out, int64_t part, Error* error) {
    const int64_t counts[kRanks] = {part, part, part};
    int64_t received[kRanks] = {};
    const auto elements = static_cast<uint64_t>(part * kRanks);
    return callAllToAllVPacked(comm, in, elements, counts, nullptr, out, elements, received,
                               WL_F32, 0, error);
  });
}

TEST(OutOfMemory, IsNothingToAGatherOfParts) {
  partsWithoutMemory([](wl_comm_t* comm, const float* in, float* out, int64_t part, Error* error) {
    const int64_t counts[kRanks] = {part, part, part};
    return callAllGatherV(comm, in, static_cast<uint64_t>(part), out,
                          static_cast<uint64_t>(part * kRanks), counts, WL_F32, 0, error);
  });
}

TEST(OutOfMemory, IsNothingToAReductionOfParts) {
  partsWithoutMemory([](wl_comm_t* comm, const float* in, float* out, int64_t part, Error* error) {
    const int64_t counts[kRanks] = {part, part, part};
    return callReduceScatterV(comm, in, static_cast<uint64_t>(part * kRanks), out,
                              static_cast<uint64_t>(part), counts, WL_F32, WL_SUM, 0,
                              error);
  });
}

TEST(OutOfMemory, FailsTheMakingAndTheJoiningOfAGroupAndBothCanBeTriedAgain) {
  wl_group_config_t config = {};
  config.struct_size = sizeof config;
  config.ranks = 2;
  config.blocks = 3;
  bool over = false;
  for (int number = 1; !over; ++number) {
    wl_group_t* group = nullptr;
    wl_comm_t* comm = nullptr;
    Error error;
    {
      const FailingAllocation allocation(number);
      const int made = wl_group_create(&config, &group, &error);
      EXPECT_EQ(made == WL_OK, group != nullptr);
      if (made == WL_OK) {
        const int joined = wl_group_join(group, 1, &comm, &error);
        EXPECT_EQ(joined == WL_OK, comm != nullptr);
      }
      over = !FailingAllocation::happened();
    }
    if (group == nullptr) continue;
    if (comm == nullptr) {
      EXPECT_EQ(WL_OK, wl_group_join(group, 1, &comm, &error)) << error.message;
    }
    wl_comm_free(comm);
    wl_group_release(group);
  }
}

// A long operation, for which the rank's workers are started.
void reduceWithWorkers() {
  LocalRanks ranks(1, 20'000 * kMs, 1, 64, 4);
  std::vector<float> in(1 << 20, 2.0f);
  std::vector<float> out(in.size());
  Error error;
  int code = WL_OK;
  for (int number = 1; number <= 8; ++number) {
    std::fill(out.begin(), out.end(), 0.0f);
    {
      const FailingAllocation allocation(number);
      code = allReduce(ranks.comms[0], in.data(), out.data(), in.size(), WL_F32, WL_SUM,
                           WL_ONE_PHASE, 0, &error);
    }
    EXPECT_EQ(WL_OK, code) << error.message;
    EXPECT_EQ(in, out);
  }
}

TEST(OutOfMemory, OfTheWorkersLeavesTheWorkToTheRank) {
  for (int i = 0; i < (kSlow > 1 ? 1 : 4); ++i) reduceWithWorkers();
}

TEST(OutOfThreads, LeavesTheWorkToTheRank) {
  pthread_attr_t before;
  pthread_attr_t vast;
  ASSERT_EQ(0, pthread_getattr_default_np(&before));
  pthread_attr_init(&vast);
  ASSERT_EQ(0, pthread_attr_setstacksize(&vast, size_t{1} << 46));
  ASSERT_EQ(0, pthread_setattr_default_np(&vast));
  EXPECT_THROW(std::thread([] {}), std::system_error) << "else this shows nothing";
  reduceWithWorkers();
  pthread_setattr_default_np(&before);
  pthread_attr_destroy(&vast);
  pthread_attr_destroy(&before);
}

TEST(OutOfMemory, OfAFoldIsAnError) {
  const int64_t shape = 4;
  const int64_t stride = 1;
  float values[2][4] = {{1, 2, 3, 4}, {1, 1, 1, 1}};
  const auto tensor = [&](float* data) {
    wl_tensor_t made = {};
    made.struct_size = sizeof made;
    made.dtype = WL_F32;
    made.ndim = 1;
    made.data = data;
    made.shape = &shape;
    made.strides = &stride;
    return made;
  };
  const wl_tensor_t a = tensor(values[0]);
  const wl_tensor_t b = tensor(values[1]);
  const wl_tensor_t* sources[] = {&a, &b};
  Error error;
  bool over = false;
  for (int number = 1; !over; ++number) {
    const FailingAllocation allocation(number);
    const int code = wl_tensor_fold(&a, sources, 2, WL_SUM, &error);
    over = !FailingAllocation::happened();
    EXPECT_EQ(over ? WL_OK : WL_RESOURCE, code);
  }
  EXPECT_EQ(5, values[0][3]);
  over = false;
  for (int number = 1; !over; ++number) {
    uint64_t hash = 0;
    const FailingAllocation allocation(number);
    const int code = wl_tensor_hash(sources, 2, WL_SUM, WL_F32, WL_F32, 0, &hash, &error);
    over = !FailingAllocation::happened();
    EXPECT_EQ(over ? WL_OK : WL_RESOURCE, code);
  }
}

// Runs the call of a rank on a target that checks it, while one allocation of rank 1 fails. It
// covers all of the first allocations, and fewer and fewer of the later ones.
void failOneOfEach(const std::function<int(int rank, wl_comm_t*, Windows&, Error*)>& call) {
  if (!isChecked()) GTEST_SKIP() << wl_target() << " allocates nothing in operations";
  bool happened = true;
  for (int number = 1; happened; number += 1 + number / 8) {
    LocalRanks ranks(2, 5'000 * kMs);
    Windows windows(ranks, 64, 1);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      if (rank == 0) {
        const int code = call(rank, comm, windows, &error);
        EXPECT_TRUE(code == WL_OK || code == WL_RESOURCE) << code << error.message;
        return;
      }
      int code = WL_OK;
      {
        const FailingAllocation allocation(number);
        code = call(rank, comm, windows, &error);
        happened = FailingAllocation::happened();
      }
      if (code == WL_OK && !happened) return;
      EXPECT_EQ(WL_RESOURCE, code) << "allocation " << number << ": " << error.message;
      EXPECT_TRUE(contains(error.message, "out of memory"));
    });
  }
}

TEST(OutOfMemory, FailsACollectiveOfACheckedTarget) {
  const std::vector<float> in(100, 1.0f);
  std::vector<std::vector<float>> out(2, in);
  failOneOfEach([&](int rank, wl_comm_t* comm, Windows&, Error* error) {
    float* own = out[static_cast<size_t>(rank)].data();
    return allReduce(comm, in.data(), own, 100, WL_F32, WL_SUM, WL_AUTO, 0, error);
  });
}

TEST(OutOfMemory, FailsANotifyOfACheckedTarget) {
  failOneOfEach([](int rank, wl_comm_t*, Windows& windows, Error* error) {
    return windows.notify(rank, 1 - rank, 0, 1, error);
  });
}

}  // namespace out_of_memory_test
}  // namespace windlass_test
