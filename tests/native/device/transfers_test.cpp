// SPDX-License-Identifier: Apache-2.0
// Transfers of the target cuda: what devices get of hosts' memory, what they name instead of it,
// and that hosts get back those elements alone that items wrote.
#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/native/collective_calls.h"
#include "tests/native/cuda/given_back.h"
#include "tests/native/cuda/no_memory.h"
#include "tests/native/device/columns.h"
#include "windlass/offload.h"

namespace windlass_test {
namespace transfers_test {

class GpusTransfers : public testing::Test {
 protected:
  GpusTransfers() { gpus::reset(); }
  ~GpusTransfers() override { gpus::reset(); }
};

// All ranks' targets, and rank 0's source, are columns of one matrix, which has others between.
TEST_F(GpusTransfers, LeaveWhatLiesBetweenTheirElements) {
  for (const int devices : {1, 2, 3}) {
    gpus::reset();
    gpus::devices(devices);
    constexpr int64_t kWide = (kRanks + 1) * (kRanks + 2);
    std::vector<int32_t> matrix(kRows * kWide, -7);
    {
      LocalRanks ranks(kRanks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<int32_t> own(kRows * kRanks);
        const int64_t first = rank * (kRanks + 2);
        Columns columns = {own.data(), matrix.data() + first, kRanks, kWide};
        if (rank == 0) {
          columns.source = matrix.data() + kRanks * (kRanks + 2);
          columns.sourceStep = kWide;
        }
        columns.moveTwice(rank, comm);
      });
    }
    for (int64_t i = 0; i < kRows * kWide; ++i) {
      if (i % (kRanks + 2) < kRanks) continue;
      ASSERT_EQ(matrix[static_cast<size_t>(i)], -7) << i;
    }
    EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 2 * devices);
    EXPECT_EQ(gpus::held(), "");
  }
}

// Tables of a transfer stay on the devices for its next run, until another operation uses their
// windows.
TEST_F(GpusTransfers, SendTheirTablesAgainOnceSomethingElseHasRun) {
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    std::map<std::string, int> sent;  // copies to devices, of all ranks, by what ran before
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      constexpr size_t kCount = size_t{4} * kRows * kRanks;
      std::vector<int32_t> own(kRows * kRanks), one(kRows * kRanks), other(kRows * kRanks);
      std::vector<int32_t> in(kCount, -1), out(kCount);
      const Columns columns[] = {{own.data(), one.data(), kRanks, kRanks},
                                 {own.data(), other.data(), kRanks, kRanks}};
      Error error;
      wl_transfer_t* transfers[2] = {};
      for (int t = 0; t < 2; ++t)
        ASSERT_EQ(columns[t].create(rank, comm, &transfers[t], &error), WL_OK) << error.message;
      int64_t version = 0;
      const auto together = [&] {
        ASSERT_EQ(callBarrier(comm, 0, &error), WL_OK) << error.message;
      };
      const auto run = [&](int t, const char* after) {
        columns[t].fill(rank, ++version);
        together();
        const int before = gpus::countCalls("cuMemcpyHtoDAsync");
        together();
        ASSERT_EQ(wl_transfer_run(transfers[t], static_cast<uint64_t>(version), 0, &error), WL_OK)
            << error.message;
        columns[t].check(rank, version);
        uint64_t moved = 0;
        EXPECT_EQ(wl_transfer_progress(transfers[t], rank, &moved, 1, &error), WL_OK);
        EXPECT_EQ(moved, static_cast<uint64_t>(kRows * kRanks * 4));
        together();
        if (rank == 0) sent[after] = gpus::countCalls("cuMemcpyHtoDAsync") - before;
      };
      run(0, "nothing");
      run(0, "itself");
      ASSERT_EQ(allReduce(comm, in.data(), out.data(), kCount, WL_I32, WL_SUM, WL_AUTO, 0, &error),
                WL_OK)
          << error.message;
      run(0, "an all-reduce");
      run(1, "nothing of its own");
      run(0, "another");
      run(0, "itself again");
      for (wl_transfer_t* transfer : transfers) wl_transfer_free(transfer);
    });
    // A table and counts less on each rank.
    EXPECT_EQ(sent["itself"] + 2 * kRanks, sent["an all-reduce"]);
    EXPECT_EQ(sent["nothing of its own"], sent["an all-reduce"]);
    EXPECT_EQ(sent["another"], sent["an all-reduce"]);
    EXPECT_EQ(sent["itself again"], sent["itself"]);
  }
}

// All ranks name the faulty one, and all go on.
TEST_F(GpusTransfers, OfNoMemoryAreRefusedAndTheCommunicatorLives) {
  constexpr size_t kBytes = kRows * kRanks * sizeof(int32_t);
  const NoMemory none;
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    int32_t* const isShort = gpus::tensor<int32_t>(1 % devices, kRows * kRanks - 1);
    const auto isRefused = [&](void* source, void* target) {
      LocalRanks ranks(kRanks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<int32_t> own(kRows * kRanks, -1), out(kRows * kRanks, -1);
        Columns columns = {own.data(), out.data(), kRanks, kRanks};
        if (rank == 1 && source != nullptr) columns.source = static_cast<int32_t*>(source);
        if (rank == 1 && target != nullptr) columns.target = static_cast<int32_t*>(target);
        Error error;
        wl_transfer_t* transfer = nullptr;
        EXPECT_EQ(columns.create(rank, comm, &transfer, &error), WL_INVALID_ARGUMENT);
        EXPECT_TRUE(contains(error.message, "rank 1's part of the transfer: what is bound, "))
            << error.message;
        EXPECT_TRUE(contains(error.message, " bytes at 0x")) << error.message;
        EXPECT_EQ(callBarrier(comm, 0, &error), WL_OK) << error.message;
      });
    };
    isRefused(none.begin(), nullptr);
    isRefused(nullptr, none.begin());
    isRefused(none.before(kBytes - 4), nullptr);
    isRefused(isShort, nullptr);
    isRefused(nullptr, isShort);
  }
}

TEST_F(GpusTransfers, TakeTensorsOfTheOneDeviceWhereTheyLie) {
  for (const bool isTargetThere : {false, true}) {
    gpus::reset();
    {
      LocalRanks ranks(kRanks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<int32_t> own(kRows * kRanks, -1);
        int32_t* there = gpus::tensor<int32_t>(0, kRows * kRanks);
        Columns columns = {there, own.data(), kRanks, kRanks};
        if (isTargetThere) std::swap(columns.source, columns.target);
        columns.moveTwice(rank, comm);
      });
    }
    // No image of what lies there: only counts and a table besides what the host has.
    for (const std::string& line : gpus::log()) {
      if (line.rfind(isTargetThere ? "cuMemcpyDtoHAsync " : "cuMemcpyAsync ", 0) != 0) continue;
      EXPECT_LT(std::stoull(line.substr(line.find(' '))), uint64_t{kRows * kRanks * 4}) << line;
    }
  }
}

// Memory of a rank's tensor.
enum class Place { kHost, kOwnDevice, kOtherDevice, kMapped };

// Tensors of [kRows, kRanks] i32: rank r's source lies at sources[r], its target at targets[r].
void moveColumns(int devices, const std::vector<Place>& sources,
                 const std::vector<Place>& targets) {
  gpus::reset();
  gpus::devices(devices);
  LocalRanks ranks(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    std::vector<int32_t> host[2];
    const auto tensorAt = [&](Place place, int which) -> int32_t* {
      constexpr size_t kCount = kRows * kRanks;
      host[which].assign(kCount, -1);
      if (place == Place::kHost) return host[which].data();
      if (place == Place::kMapped)
        return gpus::mappedTensor<int32_t>(rank % devices, kCount, devices);
      return gpus::tensor<int32_t>((rank + (place == Place::kOtherDevice ? 1 : 0)) % devices,
                                   kCount);
    };
    const auto at = static_cast<size_t>(rank);
    const Columns columns = {tensorAt(sources[at], 0), tensorAt(targets[at], 1), kRanks, kRanks};
    columns.moveTwice(rank, comm);
  });
}

// How many bytes calls of that name have copied.
uint64_t bytesOf(const std::string& call) {
  uint64_t bytes = 0;
  for (const std::string& line : gpus::log()) {
    if (line.rfind(call + ' ', 0) != 0) continue;
    size_t end = 0;
    const std::string rest = line.substr(call.size() + 1);
    const uint64_t width = std::stoull(rest, &end);
    const size_t by = rest.find("x ", end);
    bytes += by == std::string::npos ? width : width * std::stoull(rest.substr(by + 2));
  }
  return bytes;
}

constexpr uint64_t kTensorBytes = kRows * kRanks * 4;

// Elements that other ranks read are copied once, and a rank writes its target in place.
TEST_F(GpusTransfers, CopyWhatOtherGpusReadAndWriteTheirOwnInPlace) {
  const std::vector<Place> there(kRanks, Place::kOwnDevice);
  moveColumns(3, there, there);
  // Two runs, in each of which a rank's own column is read in place; and what each rank tries of
  // its two peers' windows, there and back.
  EXPECT_EQ(bytesOf("cuMemcpyAsync") + bytesOf("cuMemcpy2DAsync"),
            2 * kRanks * kTensorBytes * 2 / 3 + kRanks * 2 * 2 * 64);
}

TEST_F(GpusTransfers, CopyNothingOfMemoryThatAllGpusReach) {
  const std::vector<Place> mapped(kRanks, Place::kMapped);
  moveColumns(3, mapped, mapped);
  // Each rank tries the windows of its peers; nothing more is copied.
  EXPECT_EQ(bytesOf("cuMemcpy2DAsync"), 0u);
  for (const std::string& line : gpus::log()) {
    if (line.rfind("cuMemcpyAsync ", 0) != 0) continue;
    EXPECT_LE(std::stoull(line.substr(14)), 64u) << line;
  }
}

TEST_F(GpusTransfers, TakeTensorsWhereverTheyLie) {
  constexpr Place kAll[] = {Place::kHost, Place::kOwnDevice, Place::kOtherDevice, Place::kMapped};
  for (const int devices : {1, 2, 3}) {
    for (const Place source : kAll) {
      for (const Place target : kAll) {
        SCOPED_TRACE(testing::Message() << devices << " devices, sources " << int(source)
                                        << ", targets " << int(target));
        moveColumns(devices, {source, Place::kHost, target}, {target, source, Place::kHost});
      }
    }
  }
}

// Memory that ranks read as a whole is copied once. If they read little of it, only that part is
// copied.
TEST_F(GpusTransfers, BringOfTheHostWhatItemsNameAlone) {
  constexpr int64_t kWide = 1000;
  gpus::reset();
  LocalRanks ranks(kRanks);
  std::vector<int32_t> matrix(kRows * kWide);
  ranks.run([&](int rank, wl_comm_t* comm) {
    std::vector<int32_t> own(kRows * kRanks);
    const Columns columns = {matrix.data() + rank * kRanks, own.data(), kWide, kRanks};
    columns.moveTwice(rank, comm);
  });
  const uint64_t slack = 2 * kRanks * (sizeof(windlass::OffloadedOperation) + 4096);
  EXPECT_LT(bytesOf("cuMemcpyHtoDAsync"), 2 * kRanks * kTensorBytes + slack);
  EXPECT_LT(bytesOf("cuMemcpyDtoHAsync"), 2 * kRanks * kTensorBytes + slack);
}

// Waits until all ranks have arrived, makes the next look at memory of rank 0 fail, and waits
// again.
void failNextLook(int rank, wl_comm_t* comm, int result) {
  Error error;
  ASSERT_EQ(callBarrier(comm, 0, &error), WL_OK) << error.message;
  constexpr const char* kLook = "cuPointerGetAttribute";
  if (rank == 0) gpus::failCall(kLook, gpus::countCalls(kLook) + 1, result);
  ASSERT_EQ(callBarrier(comm, 0, &error), WL_OK) << error.message;
}

// A device that has failed ends the communicator on all ranks; what it lacks does not.
TEST_F(GpusTransfers, NameTheRankWhoseDeviceFailsAsTheyAreMade) {
  for (const int devices : {1, 3}) {
    for (const int result : {2, 719}) {
      gpus::reset();
      gpus::devices(devices);
      const int32_t expected = result == 2 ? WL_RESOURCE : WL_DEVICE;
      std::vector<Error> errors(kRanks);
      LocalRanks ranks(kRanks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<int32_t> from(kRows * kRanks), to(kRows * kRanks);
        const Columns columns = {from.data(), to.data(), kRanks, kRanks};
        columns.moveTwice(rank, comm);
        failNextLook(rank, comm, result);
        wl_transfer_t* transfer = nullptr;
        Error& error = errors[static_cast<size_t>(rank)];
        EXPECT_EQ(columns.create(rank, comm, &transfer, &error), expected) << error.message;
        Error after;
        EXPECT_EQ(callBarrier(comm, 0, &after), result == 2 ? WL_OK : WL_DEVICE) << after.message;
        if (result == 2) columns.moveTwice(rank, comm);
      });
      for (const Error& error : errors) {
        ASSERT_EQ(error.faulty_rank_count, 1);
        EXPECT_EQ(error.faulty_ranks[0], errors[0].faulty_ranks[0]);
        const std::string rank = std::to_string(error.faulty_ranks[0]);
        const std::string named = "rank " + rank + "'s part of the transfer: ";
        EXPECT_EQ(std::string(error.message).rfind(named, 0), 0u) << error.message;
        EXPECT_TRUE(contains(error.message, "cuPointerGetAttribute of device " +
                                                std::to_string(error.faulty_ranks[0] % devices)))
            << error.message;
      }
    }
  }
}

TEST_F(GpusTransfers, NameTheRankWhoseDeviceFailsAsItHashesSources) {
  for (const int result : {2, 719}) {
    gpus::reset();
    gpus::devices(kRanks);
    std::vector<Error> errors(kRanks);
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      std::vector<int32_t> from(kRows * kRanks), to(kRows * kRanks);
      const Columns columns = {from.data(), to.data(), kRanks, kRanks};
      wl_transfer_t* transfer = nullptr;
      Error& error = errors[static_cast<size_t>(rank)];
      ASSERT_EQ(columns.create(rank, comm, &transfer, &error), WL_OK) << error.message;
      failNextLook(rank, comm, result);
      if (rank == 1) {
        const int32_t of = 2;
        const int64_t start[] = {0, 0}, length[] = {5, 1};
        uint64_t hash = 0;
        EXPECT_EQ(wl_transfer_hash(transfer, 0, &of, 1, start, length, WL_SUM, WL_I32, WL_I32, 9,
                                   &hash, &error),
                  result == 2 ? WL_RESOURCE : WL_DEVICE);
        EXPECT_TRUE(contains(error.message, "cuPointerGetAttribute of device 1")) << error.message;
      }
      Error next;
      Error& after = rank == 1 ? next : error;
      EXPECT_EQ(callBarrier(comm, 0, &after), result == 2 ? WL_OK : WL_DEVICE) << after.message;
      wl_transfer_free(transfer);
    });
    for (const Error& error : errors) {
      if (result == 2) continue;
      ASSERT_EQ(error.faulty_rank_count, 1) << error.message;
      EXPECT_EQ(error.faulty_ranks[0], 1);
      EXPECT_TRUE(contains(error.message, "rank 1: ")) << error.message;
    }
  }
}

// 65 ranks' worth of sources in one item.
TEST_F(GpusTransfers, RefuseItemsOfMoreSourcesThanACoreTakes) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    constexpr int64_t kSources = windlass::kMostDeviceRanks + 1;
    std::vector<float> in(16, 1), out(16, -1);
    Words sources, targets, chunks;
    addBinding(WL_F32, in.data(), 64, {16}, {1}, &sources);
    addBinding(WL_F32, out.data(), 64, {16}, {1}, &targets);
    if (rank == 1) {
      chunks.insert(chunks.end(), {0, 0, WL_F32, WL_SUM, 1, kSources, 16, 0});
      for (int64_t s = 0; s < kSources; ++s) chunks.insert(chunks.end(), {s % 2, 0, 0});
    }
    const wl_transfer_config_t config = configOf(sources, 1, targets, 1, chunks, rank == 1 ? 1 : 0);
    Error error;
    wl_transfer_t* transfer = nullptr;
    EXPECT_EQ(wl_transfer_create(comm, &config, 0, &transfer, &error), WL_UNSUPPORTED);
    EXPECT_NE(std::strstr(error.message, "65 sources"), nullptr) << error.message;
    // The communicator goes on.
    EXPECT_EQ(callBarrier(comm, 0, &error), WL_OK) << error.message;
  });
}

// Each rank takes one source into more targets than a core takes, and both into twice as many.
TEST_F(GpusTransfers, ReadASourceOnceMoreForEach64OfItsTargets) {
  constexpr int64_t kTargets = windlass::kMostDeviceRanks + 1;
  constexpr int64_t kCount = 3000;
  for (const int devices : {1, 2}) {
    gpus::reset();
    gpus::devices(devices);
    LocalRanks ranks(2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      std::vector<int32_t> in(kCount), out(kCount * kTargets, -1);
      for (int64_t i = 0; i < kCount; ++i) in[static_cast<size_t>(i)] = static_cast<int32_t>(7 * i);
      Words sources, targets, chunks;
      addBinding(WL_I32, in.data(), 4 * kCount, {kCount}, {1}, &sources);
      for (int64_t t = 0; t < kTargets; ++t) {
        addBinding(WL_I32, out.data() + t * kCount, 4 * kCount, {kCount}, {1}, &targets);
        chunks.insert(chunks.end(), {0, t, WL_I32, WL_SUM, 1, 1, kCount, 0, 0, 0, 0});
      }
      const wl_transfer_config_t config = configOf(sources, 1, targets, kTargets, chunks, kTargets);
      Error error;
      wl_transfer_t* transfer = nullptr;
      ASSERT_EQ(wl_transfer_create(comm, &config, 0, &transfer, &error), WL_OK) << error.message;
      ASSERT_EQ(wl_transfer_run(transfer, 1, 0, &error), WL_OK) << error.message;
      for (int64_t i = 0; i < kCount * kTargets; ++i)
        ASSERT_EQ(out[static_cast<size_t>(i)], 7 * (i % kCount)) << "rank " << rank << ", " << i;
      std::vector<uint64_t> moved(kTargets);
      ASSERT_EQ(wl_transfer_progress(transfer, rank, moved.data(), kTargets, &error), WL_OK);
      for (const uint64_t each : moved) ASSERT_EQ(each, 4u * kCount);
      wl_transfer_free(transfer);
    });
  }
}

// If a call of the driver fails, the rank that made it and its peers get the error, or no rank does
// and the result is right. Nothing stays behind.
TEST_F(GpusTransfers, GiveAllBackWhicheverCallFails) {
  const auto move = [](const std::string& call, int number, bool isDone) {
    gpus::reset();
    gpus::devices(2);
    gpus::failOnce(call, number, isDone);
    int failed = 0;
    {
      std::atomic<int> failures{0};
      LocalRanks ranks(kRanks);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<int32_t> host(kRows * kRanks);
        const Columns columns = {rank == 0 ? gpus::tensor<int32_t>(1, host.size()) : host.data(),
                                 gpus::tensor<int32_t>(rank % 2, host.size()), kRanks, kRanks};
        Error error;
        wl_transfer_t* transfer = nullptr;
        int32_t code = columns.create(rank, comm, &transfer, &error);
        columns.fill(rank, 1);
        if (code == WL_OK) code = wl_transfer_run(transfer, 1, 0, &error);
        if (code != WL_OK) ++failures;
        EXPECT_TRUE(code == WL_OK || error.message[0] != 0);
        if (code == WL_OK) columns.check(rank, 1);
        if (transfer != nullptr) wl_transfer_free(transfer);
      });
      failed = failures;
    }
    // The tensors are the test's.
    EXPECT_TRUE(gpus::isGivenBack(call, isDone, "4 allocations")) << call << ' ' << number;
    return failed;
  };
  move("", 0, false);
  if (HasFailure()) return;
  std::map<std::string, int> calls;
  for (const std::string& line : gpus::log()) ++calls[line.substr(0, line.find(' '))];
  EXPECT_GT(calls.count("cuMemGetAccess"), 0u);
  EXPECT_GT(calls.count("cuMemcpy2DAsync") + calls.count("cuMemcpyAsync"), 0u);
  for (const auto& [call, count] : calls) {
    // Queries that go on until work is over come as often as threads look.
    const bool looks = call == "cuStreamQuery" || call == "cuEventQuery";
    for (const int number : callsToFail(looks ? 3 : count, Failing::kLast)) {
      for (const bool isDone : gpus::waysToFail(call)) {
        const int failed = move(call, number, isDone);
        EXPECT_TRUE(failed == 0 || failed == kRanks) << call << ' ' << number << ": " << failed;
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace transfers_test
}  // namespace windlass_test
