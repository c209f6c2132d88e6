// SPDX-License-Identifier: Apache-2.0
// Transfers of the target cuda between ranks of two processes, forked, each with the stand-in for
// NVIDIA's driver: whichever of its calls fails in one of them, all ranks are told whose it was,
// and nothing stays behind.
#include <cstring>
#include <map>

#include "tests/native/core/forks.h"
#include "tests/native/cuda/given_back.h"
#include "tests/native/device/columns.h"

namespace windlass_test {
namespace transfer_processes_test {

constexpr int kProcesses = 2;

struct Fault {
  std::string call;  // empty: nothing fails
  int number;
  bool isDone;
  int process;
};

// Memory that all processes and the test share.
struct Told {
  struct {
    std::atomic<int32_t> code, faultyRank;  // -1: nobody is named
    std::atomic<bool> isNamed;
  } ranks[kRanks];
  std::atomic<int> failures;  // of calls that were told to fail
  // The driver's calls of each process, where none is.
  struct {
    char name[48];
    int count;
  } calls[kProcesses][64];
};

void noteCalls(Told* told, int process) {
  std::map<std::string, int> calls;
  for (const std::string& line : gpus::log()) ++calls[line.substr(0, line.find(' '))];
  size_t at = 0;
  for (const auto& [name, count] : calls) {
    auto& call = told->calls[process][at++];
    std::strncpy(call.name, name.c_str(), sizeof call.name - 1);
    call.count = count;
  }
}

// An error of a registration, which the communicator outlives, names the rank only in its text.
int32_t faultyRankOf(const Error& error) {
  if (error.faulty_rank_count == 1) return error.faulty_ranks[0];
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    const std::string part = "rank " + std::to_string(rank) + "'s part of the transfer: ";
    if (std::strstr(error.message, part.c_str()) != nullptr) return rank;
  }
  return -1;
}

// Ranks 0 and 2 are of the first process, and rank 1 is the second one. Each has its source on the
// host or on its device, and its target there.
void moveTwice(Told* told, const Fault& fault, int rank, wl_comm_t* comm) {
  std::vector<int32_t> host(kRows * kRanks);
  const Columns columns = {rank == 0 ? host.data() : gpus::tensor<int32_t>(rank % 2, host.size()),
                           gpus::tensor<int32_t>(rank % 2, host.size()), kRanks, kRanks};
  Error error;
  wl_transfer_t* transfer = nullptr;
  int32_t code = columns.create(rank, comm, &transfer, &error);
  for (int64_t version = 1; code == WL_OK && version <= 2; ++version) {
    columns.fill(rank, version);
    code = wl_transfer_run(transfer, static_cast<uint64_t>(version), 0, &error);
    if (code == WL_OK) columns.check(rank, version);
  }
  auto& own = told->ranks[rank];
  own.code = code;
  own.faultyRank = faultyRankOf(error);
  own.isNamed = std::strstr(error.message, (fault.call + " of ").c_str()) != nullptr;
  if (code != WL_OK && !own.isNamed) std::fprintf(stderr, "rank %d: %s\n", rank, error.message);
  wl_transfer_free(transfer);
}

void moveBetweenProcesses(Told* told, const Fault& fault) {
  wl_group_config_t config = {};
  config.struct_size = sizeof config;
  config.ranks = kRanks;
  config.device_cores = deviceCores();
  const ForkedGroup all(config, kProcesses);
  Forks forks(kProcesses, [&](int process) {
    gpus::reset();
    gpus::devices(2);
    {
      OwnRanks own(all, process);
      if (process == fault.process) gpus::failOnce(fault.call, fault.number, fault.isDone);
      own.run([&](int rank, wl_comm_t* comm) { moveTwice(told, fault, rank, comm); });
    }
    if (fault.call.empty()) noteCalls(told, process);
    if (process == fault.process) told->failures = gpus::failures();
    // The tensors are the test's.
    const char* const tensors = process == 0 ? "3 allocations" : "2 allocations";
    const auto given = gpus::isGivenBack(fault.call, fault.isDone, tensors);
    if (!given) std::fprintf(stderr, "process %d: %s\n", process, given.message());
    return (given ? 0 : 10) + (testing::Test::HasFailure() ? 20 : 0);
  });
  EXPECT_EQ(forks.wait(60'000 * kMs), (std::vector<int>{0, 0}));
}

void failInOne(Told* told, const Fault& fault) {
  SCOPED_TRACE(fault.call + " " + std::to_string(fault.number) + " of process " +
               std::to_string(fault.process) + (fault.isDone ? ", which is done" : ""));
  moveBetweenProcesses(told, fault);
  const int32_t code = told->ranks[0].code;
  // Nothing waits for the calls that free objects at the end.
  const bool isAtTheEnd = gpus::givesBack(fault.call) || fault.call == "cuCtxPopCurrent";
  if (told->failures > 0 && !isAtTheEnd) {
    EXPECT_EQ(code, WL_DEVICE);
  }
  for (const auto& rank : told->ranks) {
    EXPECT_EQ(rank.code, code);
    if (rank.code == WL_OK) continue;
    EXPECT_EQ(rank.code, WL_DEVICE);
    EXPECT_TRUE(rank.isNamed);
    EXPECT_GE(rank.faultyRank, 0);
    EXPECT_EQ(rank.faultyRank % kProcesses, fault.process);
  }
}

TEST(GpusTransfersOfProcesses, AFailureOfAnyCallIsToldToAllAndLeavesNothing) {
  const Shared<Told> told;
  moveBetweenProcesses(&*told, {"", 1, false, 0});
  for (const auto& rank : told->ranks) ASSERT_EQ(rank.code, WL_OK);
  for (const int process : {1, 0}) {
    std::map<std::string, int> calls;
    for (const auto& call : told->calls[process])
      if (call.count > 0) calls[call.name] = call.count;
    EXPECT_GT(calls.count("cuMemcpy2DAsync") + calls.count("cuMemcpyAsync"), 0u);
    EXPECT_GT(calls.count("cuMemImportFromShareableHandle"), 0u);
    // Those of the group's start.
    for (const char* once : {"cuInit", "cuDriverGetVersion", "cuDeviceGetCount"}) calls.erase(once);
    for (const auto& [call, count] : calls) {
      // Looks that go on until work is over come as often as threads look.
      const bool looks = call == "cuStreamQuery" || call == "cuEventQuery";
      const Failing which = process == 1 ? Failing::kFirst : Failing::kLast;
      for (const int number : callsToFail(looks ? 3 : count, which))
        for (const bool isDone : gpus::waysToFail(call))
          failInOne(&*told, {call, number, isDone, process});
      if (HasFailure()) return;
    }
  }
}

}  // namespace transfer_processes_test
}  // namespace windlass_test
