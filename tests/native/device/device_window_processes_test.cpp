// SPDX-License-Identifier: Apache-2.0
// Windows in the memory of GPUs whose ranks live in several processes, forked, each with the
// stand-in for NVIDIA's driver: one-sided moves bit for bit behind signals of the host, and
// whichever call fails, or process is killed, all are told and nothing stays behind.
#include <filesystem>

#include "tests/native/collective_calls.h"
#include "tests/native/core/crew.h"
#include "tests/native/core/windows.h"
#include "tests/native/cuda/failing_calls.h"
#include "tests/native/cuda/stand_in.h"

namespace windlass_test {
namespace device_window_processes_test {

using Bytes = std::vector<uint8_t>;

class GpuProcessesWindows : public testing::TestWithParam<Crew> {
 protected:
  GpuProcessesWindows() { gpus::reset(); }
  ~GpuProcessesWindows() override { gpus::reset(); }
};

struct MateWindows {
  wl_window_t* device = nullptr;
  wl_window_t* signals = nullptr;

  int32_t make(wl_comm_t* comm, uint64_t bytes, Error* error) {
    const auto lines = static_cast<uint64_t>(wl_comm_size(comm)) * WL_SIGNAL_LINE_BYTES;
    const int32_t code = wl_device_window_create(comm, bytes, 0, &device, error);
    return code == WL_OK ? wl_window_create(comm, lines, 0, &signals, error) : code;
  }
  ~MateWindows() {
    wl_window_free(device);
    wl_window_free(signals);
  }
};

wl_tensor_t row(void* data, const int64_t* count) {
  static const int64_t kOne = 1;
  return {sizeof(wl_tensor_t), WL_I32, 1, 0, data, count, &kOne};
}

// The sent bytes lie on the host, on the rank's device, or in its part of the window. The signal
// arrives after the device's kernel or copy has written all bytes.
TEST_P(GpuProcessesWindows, PutAndGetMoveViewsBeforeTheSignalTellsSo) {
  constexpr uint64_t kInbox = 100'000;
  const Crew crew = GetParam();
  const int ranks = crew.ranks();
  const uint64_t firstSeed = seed();
  for (const int devices : {1, 2}) {
    gpus::devices(devices);
    Muster muster(crew);
    muster.run([&](Mate& mate) {
      Error error;
      MateWindows windows;
      const uint64_t source = kInbox * static_cast<uint64_t>(ranks);
      EXPECT_OF_MATE(mate, windows.make(mate.comm, source + kInbox, &error) == WL_OK);
      if (windows.signals == nullptr) return;
      auto* const part = static_cast<uint8_t*>(wl_window_address(windows.device, mate.rank));
      for (uint64_t i = 0; i < source; i += 64) EXPECT_OF_MATE(mate, part[i] == 0);
      std::mt19937_64 random(firstSeed);  // the same choices on every rank
      const std::vector<std::vector<int64_t>> shapes = {{}, {0}, {13}, {9, 7}, {33, 5, 2}, {2000}};
      for (uint32_t round = 1; round <= 36; ++round) {
        const auto& shape = shapes[round % shapes.size()];
        const View local(shape, random() % 2 == 0, random);
        const View remote(shape, random() % 2 == 0, random);
        const int step = 1 + static_cast<int>(random() % static_cast<uint64_t>(ranks - 1));
        const int to = (mate.rank + step) % ranks;
        const int from = (mate.rank - step + ranks) % ranks;
        Bytes own(local.elements * 4), theirs(own.size()), plain(own.size());
        for (size_t i = 0; i < own.size(); ++i) {
          own[i] = static_cast<uint8_t>(broughtBy(mate.rank, round, i));
          theirs[i] = static_cast<uint8_t>(broughtBy(from, round, i));
        }
        const int device = mate.rank % devices;
        uint8_t* const out = round % 3 == 0   ? plain.data()
                             : round % 3 == 1 ? gpus::tensor<uint8_t>(device, own.size())
                                              : part + source;
        std::memcpy(out, own.data(), own.size());
        uint8_t* const inbox = part + static_cast<uint64_t>(from) * kInbox;
        Bytes expected(remote.elements * 4, 0xa5);
        std::memset(inbox, 0xa5, expected.size());
        moveSlowly(expected.data(), remote, theirs.data(), local, 4);
        EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
        const wl_tensor_t sent = local.tensor(out, WL_F32);
        const wl_tensor_t outbox =
            remote.tensor(part + static_cast<uint64_t>(mate.rank) * kInbox, WL_F32);
        EXPECT_OF_MATE(mate,
                       wl_put(mate.comm, windows.device, &sent, to, &outbox, &error) == WL_OK);
        std::memset(out, 0x11, own.size());
        EXPECT_OF_MATE(mate,
                       wl_notify(mate.comm, windows.signals, to, 0, round, &error) == WL_OK);
        EXPECT_OF_MATE(mate,
                       wl_wait(mate.comm, windows.signals, from, 0, round, 0, &error) == WL_OK);
        EXPECT_OF_MATE(mate, std::memcmp(inbox, expected.data(), expected.size()) == 0);

        Bytes whole(own.size(), 0x11);
        moveSlowly(whole.data(), local, own.data(), local, 4);
        EXPECT_OF_MATE(mate,
                       wl_get(mate.comm, windows.device, &sent, to, &outbox, &error) == WL_OK);
        EXPECT_OF_MATE(mate, std::memcmp(out, whole.data(), whole.size()) == 0);
        EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
      }
    });
    EXPECT_EQ(muster.board().wrong, 0) << devices << " devices, seed " << firstSeed;
  }
}

TEST_P(GpuProcessesWindows, AddsOfAllRanksLoseNothingAndCollectivesTakeThem) {
  static const int64_t kCount = 1237;
  const Crew crew = GetParam();
  const int ranks = crew.ranks();
  for (const int devices : {1, 2}) {
    gpus::devices(devices);
    Muster muster(crew);
    muster.run([&](Mate& mate) {
      Error error;
      MateWindows windows;
      EXPECT_OF_MATE(mate, windows.make(mate.comm, 8 * kCount, &error) == WL_OK);
      if (windows.signals == nullptr) return;
      auto* const sums = static_cast<int32_t*>(wl_window_address(windows.device, mate.rank));
      std::vector<int32_t> terms(kCount);
      for (int i = 0; i < kCount; ++i) terms[static_cast<size_t>(i)] = mate.rank + i;
      const wl_tensor_t local = row(terms.data(), &kCount);
      const wl_tensor_t remote = row(sums, &kCount);
      for (int peer = 0; peer < ranks; ++peer) {
        EXPECT_OF_MATE(
            mate, wl_accumulate(mate.comm, windows.device, &local, peer, &remote, &error) == WL_OK);
      }
      EXPECT_OF_MATE(mate, callBarrier(mate.comm, 0, &error) == WL_OK);
      const auto sumOf = [&](int i) { return ranks * (ranks - 1) / 2 + ranks * i; };
      for (int i = 0; i < kCount; ++i) EXPECT_OF_MATE(mate, sums[i] == sumOf(i));
      EXPECT_OF_MATE(mate, allReduce(mate.comm, sums, sums + kCount, kCount, WL_I32, WL_SUM,
                                     WL_TWO_PHASE, 0, &error) == WL_OK);
      for (int i = 0; i < kCount; ++i) EXPECT_OF_MATE(mate, sums[kCount + i] == ranks * sumOf(i));
    });
    EXPECT_EQ(muster.board().wrong, 0) << devices << " devices";
  }
}

int openFiles() {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
    count += file.exists() || file.is_symlink() ? 1 : 0;
  return count;
}

// Outcome of a window that four ranks of two processes make, if the second process fails.
struct Told {
  std::atomic<int32_t> codes[4];
  std::atomic<int> named;
  std::atomic<int> made;  // calls of the driver that one asks after
};

// Runs `fault` in the second process, then makes a window there and puts to a peer: which processes
// ended as they should, with nothing held.
std::vector<int> makeOne(Told& told, const std::string& named, const std::function<void()>& fault,
                         const std::string& call = "") {
  wl_group_config_t config = {};
  config.struct_size = sizeof config;
  config.ranks = 4;
  config.device_cores = 2;
  const ForkedGroup all(config, 2);
  for (std::atomic<int32_t>& code : told.codes) code = -1;
  told.named = 0;
  Forks forks(2, [&](int process) {
    const int before = openFiles();
    {
      OwnRanks own(all, process);
      if (process == 1) fault();
      own.run([&](int rank, wl_comm_t* comm) {
        static const int64_t kCount = 100;
        Error error;
        MateWindows windows;
        std::vector<int32_t> data(kCount);
        int32_t code = windows.make(comm, 4096, &error);
        const wl_tensor_t local = row(data.data(), &kCount);
        if (code == WL_OK) {
          const wl_tensor_t remote = row(wl_window_address(windows.device, rank), &kCount);
          code = wl_put(comm, windows.device, &local, (rank + 1) % 4, &remote, &error);
        }
        if (code == WL_OK) code = callBarrier(comm, 0, &error);
        told.codes[rank] = code;
        told.named += contains(error.message, named) ? 1 : 0;
      });
    }
    if (process == 1) told.made = gpus::countCalls(call);
    const std::string held = gpus::held();
    if (!held.empty()) std::fprintf(stderr, "process %d holds %s\n", process, held.c_str());
    return (held.empty() ? 0 : 10) + (openFiles() == before ? 0 : 20);
  });
  return forks.wait(60'000 * kMs);
}

TEST(GpuProcessesWindowsAlone, AFailureOfAnyCallIsToldToAllAndLeavesNothing) {
  gpus::reset();
  gpus::devices(2);
  const Shared<Told> told;
  for (const char* call :
       {"cuMemGetAllocationGranularity", "cuMemCreate", "cuMemAddressReserve", "cuMemMap",
        "cuMemSetAccess", "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle",
        "cuDeviceGet", "cuDeviceGetAttribute", "cuMemcpyAsync", "cuMemsetD8Async"}) {
    const std::string named = std::string(call) + " of ";
    ASSERT_EQ(makeOne(*told, named, [] {}, call), (std::vector<int>{0, 0}));
    ASSERT_EQ(told->codes[0], WL_OK);
    EXPECT_GE(told->made, 1) << call;
    for (const int number : callsToFail(told->made, Failing::kLast)) {
      const auto fault = [&] { gpus::failCall(call, number, 719); };
      EXPECT_EQ(makeOne(*told, named, fault, call), (std::vector<int>{0, 0}))
          << call << " " << number;
      const int32_t code = told->codes[0];
      for (const std::atomic<int32_t>& each : told->codes) EXPECT_EQ(each, code) << call << number;
      EXPECT_EQ(code, told->made < number ? WL_OK : WL_DEVICE) << call << " " << number;
      EXPECT_EQ(told->named, code == WL_OK ? 0 : 4) << call << " " << number;
    }
  }
  gpus::reset();
}

TEST(GpuProcessesWindowsAlone, AKilledProcessIsNamed) {
  gpus::reset();
  const Shared<Told> told;
  EXPECT_EQ(makeOne(*told, "", [] { kill(getpid(), SIGKILL); }), (std::vector<int>{0, -SIGKILL}));
  for (const int rank : {0, 2}) EXPECT_EQ(told->codes[rank], WL_PEER_LOST);
}

TEST(GpuProcessesWindowsAlone, RefuseMemoryThatCannotLeaveItsProcess) {
  gpus::reset();
  const Shared<Told> told;
  EXPECT_EQ(makeOne(*told, "memory can't go to other processes", [] { gpus::exports(false); }),
            (std::vector<int>{0, 0}));
  for (const std::atomic<int32_t>& code : told->codes) EXPECT_EQ(code, WL_UNSUPPORTED);
  EXPECT_EQ(told->named, 4);
}

INSTANTIATE_TEST_SUITE_P(Crews, GpuProcessesWindows, testing::Values(Crew{2, 1}, Crew{2, 2}));

}  // namespace device_window_processes_test
}  // namespace windlass_test
