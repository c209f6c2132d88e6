// SPDX-License-Identifier: Apache-2.0
// A rank's long operations on several threads: the same bits for every number of them.
#include <dirent.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <set>

#include "native/core/workers.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

namespace windlass_test {
namespace blocks_test {

// f32, uneven pieces, and with two ranks and more the least work that is shared out.
constexpr uint64_t kCount = kSlow > 1 ? 70'001 : 270'001;

// Results of one rank after each operation.
using Results = std::vector<std::vector<float>>;

std::vector<float> input(int rank, uint64_t count, uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed * 1000 + static_cast<uint64_t>(rank)));
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(static_cast<int32_t>(random())) / 65536.0f;
  }
  return values;
}

// Runs the operations. Returns what each rank holds, or compares it with `expected`.
std::vector<Results> runAll(int n, int cores, int blocks, uint64_t seed,
                            const std::vector<Results>* expected = nullptr) {
  LocalRanks ranks(n, 30'000'000'000, 1, cores, blocks);
  std::vector<Results> results(static_cast<size_t>(n));
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    const auto all = kCount * static_cast<uint64_t>(n);
    const std::vector<float> in = input(rank, all, seed);
    Results& mine = results[static_cast<size_t>(rank)];
    size_t operation = 0;
    const auto keep = [&](int32_t code, const std::vector<float>& out) {
      ASSERT_EQ(WL_OK, code) << error.message;
      if (expected == nullptr) {
        mine.push_back(out);
        return;
      }
      const Results& wanted = (*expected)[static_cast<size_t>(rank)];
      if (wanted.empty()) return;  // the first run had this rank in a process that has ended
      ASSERT_LT(operation, wanted.size());
      ASSERT_EQ(wanted[operation].size(), out.size());
      EXPECT_EQ(0, std::memcmp(wanted[operation].data(), out.data(), out.size() * 4))
          << "operation " << operation << ", rank " << rank << ", " << blocks << " blocks";
      ++operation;
    };
    std::vector<float> out(all);
    keep(allToAll(comm, in.data(), out.data(), kCount, WL_F32, WL_PUSH, 0, &error), out);
    keep(allToAll(comm, in.data(), out.data(), kCount, WL_F32, WL_PULL, 0, &error), out);
    keep(allGather(comm, in.data(), out.data(), kCount, WL_F32, 0, &error), out);
    out.assign(all, 0);
    keep(broadcast(comm, in.data(), out.data(), all, WL_F32, n - 1, WL_AUTO, 0, &error), out);
    for (const int32_t algorithm :
         {WL_ONE_PHASE, WL_TWO_PHASE, WL_RING, WL_BIDIRECTIONAL_RING, WL_AUTO}) {
      keep(allReduce(comm, in.data(), out.data(), all, WL_F32, WL_SUM, algorithm, 0, &error),
           out);
    }
    out.assign(kCount, 0);
    keep(reduceScatter(comm, in.data(), out.data(), kCount, WL_F32, WL_SUM, 0, &error), out);
    const std::vector<int64_t> counts(static_cast<size_t>(n), static_cast<int64_t>(kCount));
    std::vector<int64_t> received(counts.size());
    keep(callReduceScatterV(comm, in.data(), all, out.data(), kCount, counts.data(), WL_F32,
                            WL_SUM, 0, &error),
         out);
    out.assign(all, 0);
    keep(callAllToAllV(comm, in.data(), all, counts.data(), nullptr, out.data(), all,
                       counts.data(), nullptr, WL_F32, 0, &error),
         out);
    out.assign(all, 0);
    keep(callAllToAllVPacked(comm, in.data(), all, counts.data(), nullptr, out.data(), all,
                             received.data(), WL_F32, 0, &error),
         out);
    out.assign(all, 0);
    keep(
        callAllGatherV(comm, in.data(), kCount, out.data(), all, counts.data(), WL_F32, 0, &error),
        out);
    EXPECT_TRUE(expected == nullptr ||
                operation == (*expected)[static_cast<size_t>(rank)].size());
  });
  return results;
}

class Blocks : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Blocks, GiveTheBitsOfOne) {
  const auto [n, cores] = GetParam();
  const uint64_t dataSeed = seed();
  const std::vector<Results> expected = runAll(n, cores, 1, dataSeed);
  std::vector<int> numbers = {2, 3};
  if (few()) numbers = {3};
  if (longForm()) numbers = {2, 3, 4};
  for (const int blocks : numbers) runAll(n, cores, blocks, dataSeed, &expected);
}

std::vector<int> counts() {
  if (few()) return {3};
  if (longForm()) return {1, 2, 3, 4};
  return {1, 2, 3};
}

INSTANTIATE_TEST_SUITE_P(RanksAndCores, Blocks,
                         testing::Combine(testing::ValuesIn(counts()), testing::Values(1, 64)));

TEST(Workers, StepOnlyBetweenOpenAndClose) {
  struct Job {
    std::atomic<bool> open{true};
    std::atomic<int> left{40};
    std::atomic<int> late{0};
    std::mutex mutex;
    std::set<std::thread::id> threads;
  };
  windlass::Workers workers(3);
  std::set<std::thread::id> threads;
  for (int round = 0; round < 2000 / kSlow; ++round) {
    Job job;
    workers.open(
        [](void* context) {
          Job& own = *static_cast<Job*>(context);
          if (!own.open.load()) own.late.fetch_add(1);
          const std::lock_guard<std::mutex> lock(own.mutex);
          own.threads.insert(std::this_thread::get_id());
          return own.left.fetch_sub(1) > 0;
        },
        &job);
    if (round % 16 == 0) {
      while (job.left.load() > 0) std::this_thread::yield();
    }
    if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // they sleep
    workers.close();
    job.open.store(false);
    EXPECT_EQ(0, job.late.load());
    threads.insert(job.threads.begin(), job.threads.end());
  }
  EXPECT_EQ(0u, threads.count(std::this_thread::get_id()));
  EXPECT_GE(threads.size(), 1u);
  EXPECT_LE(threads.size(), 3u);
}

TEST(Workers, RunItemsOfALongOperation) {
  // The rank's own thread is the only other that could: with one rank nobody else claims.
  const auto tasks = [] {
    int count = 0;
    DIR* folder = opendir("/proc/self/task");
    while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
  };
  std::thread([] {}).join();  // with the first thread ThreadSanitizer starts one of its own
  LocalRanks ranks(1, 30'000'000'000, 1, 64, 4);
  Error error;
  const std::vector<float> in(1 << 20, 2.0f);
  std::vector<float> out(in.size());
  const int before = tasks();
  ASSERT_EQ(WL_OK, allGather(ranks.comms[0], in.data(), out.data(), 16, WL_F32, 0, &error));
  EXPECT_EQ(before, tasks()) << "a short operation starts no threads";
  ASSERT_EQ(WL_OK,
            allGather(ranks.comms[0], in.data(), out.data(), in.size(), WL_F32, 0, &error));
  EXPECT_EQ(before + 3, tasks());
  EXPECT_EQ(in, out);
}

}  // namespace blocks_test
}  // namespace windlass_test
