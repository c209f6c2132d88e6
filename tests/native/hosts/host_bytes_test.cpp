// SPDX-License-Identifier: Apache-2.0
// What crosses between hosts, as the counters of their links have it, beside what must: each byte
// once for each host that needs it. Prints both for each operation.
#include <fstream>
#include <sstream>

#include "tests/native/collective_calls.h"
#include "tests/native/hosts/host_crew.h"
#include "tests/native/transfer_configs.h"

namespace windlass_test {
namespace host_bytes_test {

constexpr uint64_t kCount = uint64_t{1} << 20;  // elements of a rank's part, of 4 bytes

// Bytes that this thread's host has sent by its link.
uint64_t sentBytes() {
  std::ifstream devices("/proc/thread-self/net/dev");
  const std::string name = std::string(std::getenv("WINDLASS_UCX_NET_DEVICES")) + ":";
  for (std::string line; std::getline(devices, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first != name) continue;
    uint64_t value = 0;
    for (int i = 0; i < 9; ++i) words >> value;  // eight of what was received come first
    return value;
  }
  std::abort();
}

struct Memory {
  std::vector<uint32_t> in, out;
};

struct Operation {
  const char* name;
  // Parts that cross, of all hosts together.
  std::function<uint64_t(const HostSpread&)> parts;
  std::function<int32_t(const HostSpread&, Seat&, Memory&, Error*)> run;
  // Whether no more than that may cross, and a twentieth.
  bool isHeld;
};

uint64_t ofHost(const HostSpread& spread) {
  return static_cast<uint64_t>(spread.ranks() / spread.hosts);
}

// A transfer in which a rank takes the rows of `count` of each of these.
int32_t take(Seat& seat, Memory& memory, const std::vector<int>& from, Error* error) {
  const auto total = static_cast<int64_t>(kCount * from.size());
  Words chunks;
  for (size_t i = 0; i < from.size(); ++i) {
    chunks.insert(chunks.end(), {0, 0, WL_U32, WL_SUM, 1, 1, static_cast<int64_t>(kCount),
                                 static_cast<int64_t>(i * kCount), from[i], 0, 0});
  }
  const Words sources = rowBinding(memory.in.data(), static_cast<int64_t>(kCount));
  const Words targets = rowBinding(memory.out.data(), total);
  const wl_transfer_config_t config = configOf(sources, 1, targets, 1, chunks, from.size());
  wl_transfer_t* transfer = nullptr;
  int32_t code = wl_transfer_create(seat.comm, &config, 0, &transfer, error);
  if (code == WL_OK) code = wl_transfer_run(transfer, 1, 0, error);
  for (size_t i = 0; code == WL_OK && i < from.size(); ++i) {
    const uint32_t* part = &memory.out[i * kCount];
    for (uint64_t at = 0; at < kCount; at += 1009)
      if (part[at] != stamp(1, static_cast<uint32_t>(from[i]), 0, at)) ++seat.board.wrong;
  }
  wl_transfer_free(transfer);
  return code;
}

std::vector<int> everyRank(const HostSpread& spread) {
  std::vector<int> all;
  for (int rank = 0; rank < spread.ranks(); ++rank) all.push_back(rank);
  return all;
}

uint64_t toEveryOtherHost(const HostSpread& spread) {
  return static_cast<uint64_t>(spread.ranks() * (spread.hosts - 1));
}

const Operation kOperations[] = {
    {"transfer of each part to a rank of the next host",
     [](const HostSpread& spread) { return static_cast<uint64_t>(spread.ranks()); },
     [](const HostSpread& spread, Seat& seat, Memory& memory, Error* error) {
       const int from = (seat.rank + spread.ranks() / spread.hosts) % spread.ranks();
       return take(seat, memory, {from}, error);
     },
     true},
    {"transfer of every part to every rank", toEveryOtherHost,
     [](const HostSpread& spread, Seat& seat, Memory& memory, Error* error) {
       return take(seat, memory, everyRank(spread), error);
     },
     false},
    {"all-gather", toEveryOtherHost,
     [](const HostSpread&, Seat& seat, Memory& memory, Error* error) {
       return allGather(seat.comm, memory.in.data(), memory.out.data(), kCount, WL_U32, 0, error);
     },
     false},
    {"broadcast",
     [](const HostSpread& spread) { return static_cast<uint64_t>(spread.hosts - 1); },
     [](const HostSpread&, Seat& seat, Memory& memory, Error* error) {
       return broadcast(seat.comm, memory.in.data(), memory.out.data(), kCount, WL_U32, 0, WL_AUTO,
                        0, error);
     },
     false},
    {"all-to-all",
     [](const HostSpread& spread) { return toEveryOtherHost(spread) * ofHost(spread); },
     [](const HostSpread&, Seat& seat, Memory& memory, Error* error) {
       return allToAll(seat.comm, memory.in.data(), memory.out.data(), kCount, WL_U32, WL_AUTO, 0,
                       error);
     },
     false},
    {"gather",
     [](const HostSpread& spread) {
       return static_cast<uint64_t>(spread.ranks()) - ofHost(spread);
     },
     [](const HostSpread&, Seat& seat, Memory& memory, Error* error) {
       return gather(seat.comm, memory.in.data(), memory.out.data(), kCount, WL_U32, 0, 0, error);
     },
     false},
    {"scatter",
     [](const HostSpread& spread) {
       return static_cast<uint64_t>(spread.ranks()) - ofHost(spread);
     },
     [](const HostSpread&, Seat& seat, Memory& memory, Error* error) {
       return scatter(seat.comm, memory.in.data(), memory.out.data(), kCount, WL_U32, 0, 0, error);
     },
     false},
    // Each host adds its own elements first.
    {"reduce-scatter", toEveryOtherHost,
     [](const HostSpread&, Seat& seat, Memory& memory, Error* error) {
       return reduceScatter(seat.comm, memory.in.data(), memory.out.data(), kCount, WL_U32, WL_SUM,
                            0, error);
     },
     false},
    {"all-reduce",
     [](const HostSpread& spread) { return static_cast<uint64_t>(2 * (spread.hosts - 1)); },
     [](const HostSpread&, Seat& seat, Memory& memory, Error* error) {
       return allReduce(seat.comm, memory.in.data(), memory.out.data(), kCount, WL_U32, WL_SUM,
                        WL_AUTO, 0, error);
     },
     false},
};
constexpr size_t kOperationCount = sizeof kOperations / sizeof kOperations[0];

struct Sent {
  std::atomic<uint64_t> bytes[kOperationCount];
};

class HostBytes : public testing::TestWithParam<HostSpread> {};

TEST_P(HostBytes, CrossOnceForEachHostThatNeedsThem) {
  if (namespaces().empty())
    GTEST_SKIP() << "hosts are this machine's loopback: tests/hosts/run gives them links";
  const HostSpread& spread = GetParam();
  const Shared<Sent> sent;
  HostCrew crew(spread, 0, [&](Seat& seat) {
    const bool isFirst = seat.rank == spread.ranksOfHost(spread.hostOf(seat.rank))[0];
    const uint64_t room = kCount * static_cast<uint64_t>(spread.ranks());
    Memory memory = {std::vector<uint32_t>(room), std::vector<uint32_t>(room)};
    for (uint64_t i = 0; i < kCount; ++i)
      memory.in[i] = stamp(1, static_cast<uint32_t>(seat.rank), 0, i);
    Error error;
    int32_t code = callBarrier(seat.comm, 0, &error);
    for (size_t i = 0; code == WL_OK && i < kOperationCount; ++i) {
      const uint64_t before = isFirst ? sentBytes() : 0;
      code = callBarrier(seat.comm, 0, &error);
      if (code == WL_OK) code = kOperations[i].run(spread, seat, memory, &error);
      if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
      if (isFirst) sent->bytes[i] += sentBytes() - before;
      if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
    }
    seat.sees(code, error);
    await([&] { return wl_comm_quiescent(seat.comm) != 0; }, 10'000 * kMs);
  });
  EXPECT_EQ(std::vector<int>(static_cast<size_t>(spread.all()), 0), crew.end());
  for (int rank = 0; rank < spread.ranks(); ++rank)
    ASSERT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
  for (size_t i = 0; i < kOperationCount; ++i) {
    const Operation& operation = kOperations[i];
    const uint64_t least = 4 * kCount * operation.parts(spread);
    const auto factor = static_cast<double>(sent->bytes[i]) / static_cast<double>(least);
    std::printf("bytes: %s, %d hosts x %d ranks: %.2f MiB of %.2f, %.3f times\n", operation.name,
                spread.hosts, spread.ranks() / spread.hosts,
                static_cast<double>(sent->bytes[i]) / (1 << 20),
                static_cast<double>(least) / (1 << 20), factor);
    EXPECT_GE(factor, 1.0) << operation.name;
    if (operation.isHeld) {
      EXPECT_LE(factor, 1.05) << operation.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On2Hosts, HostBytes,
                         testing::Values(HostSpread{2, 1, 1}, HostSpread{2, 1, 2},
                                         HostSpread{2, 2, 1}));
INSTANTIATE_TEST_SUITE_P(On4Hosts, HostBytes, testing::Values(HostSpread{4, 1, 1}));

}  // namespace host_bytes_test
}  // namespace windlass_test
