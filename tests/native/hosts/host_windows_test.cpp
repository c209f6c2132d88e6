// SPDX-License-Identifier: Apache-2.0
// Windows of ranks on several hosts, one after the other under one number: each has memory and
// signals of its own, as long as anybody may store there. And names that lack a process's own.
#include "tests/native/collective_calls.h"
#include "tests/native/hosts/host_crew.h"

#include "native/abi/handles.h"
#include "native/hosts/hosts.h"

namespace windlass_test {
namespace host_windows_test {

using windlass::Group;
using windlass::Place;

constexpr uint64_t kBytes = 65536;
constexpr uint64_t kSignal = 32768;
constexpr int64_t kPut = 16384;
constexpr int64_t kWaitNs = 1'000 * kMs;

// Counts what is not so, which the test finds at the end.
void expect(const Seat& seat, bool holds, const char* what, const char* said = "") {
  if (holds) return;
  ++seat.board.wrong;
  std::fprintf(stderr, "rank %d: %s %s\n", seat.rank, what, said);
}

wl_window_t* make(const Seat& seat) {
  Error error;
  wl_window_t* window = nullptr;
  const int32_t code = wl_window_create(seat.comm, kBytes, 0, &window, &error);
  expect(seat, code == WL_OK, "makes no window:", error.message);
  return window;
}

void enterBarrier(const Seat& seat) {
  Error error;
  expect(seat, callBarrier(seat.comm, 0, &error) == WL_OK, "finds no barrier:", error.message);
}

Group& groupOf(const Seat& seat) {
  return seat.comm->comm.group();
}

// On this host.
uint32_t numberOf(const Seat& seat, const wl_window_t* window) {
  const auto rank = static_cast<uint32_t>(seat.rank);
  return groupOf(seat).windows().find(rank, wl_window_address(window, seat.rank), 1).window();
}

int32_t putBytes(const Seat& seat, const wl_window_t* window, int peer, int value, Error* error) {
  std::vector<unsigned char> from(kPut, static_cast<unsigned char>(value));
  const int64_t step = 1;
  const wl_tensor_t local = {sizeof local, WL_U8, 1, 0, from.data(), &kPut, &step};
  wl_tensor_t remote = local;
  remote.data = wl_window_address(window, seat.rank);
  return wl_put(seat.comm, window, &local, peer, &remote, error);
}

// One is made while a process still unmaps the last of its number, after another that takes long.
TEST(HostWindows, ANewOneIsReachedByAKeyOfItsOwn) {
  HostCrew crew({2, 2, 1}, 0, [](Seat& seat) {
    HostBoard& board = seat.board;
    Group& group = groupOf(seat);
    wl_window_t* const first = make(seat);
    if (first == nullptr) return;
    const uint32_t number = numberOf(seat, first);
    std::atomic<bool> isMade{false};
    static unsigned char place[1];
    std::shared_ptr<const void> lasting;
    if (seat.rank == 1) {
      lasting = std::shared_ptr<const void>(place, [&](const void*) {
        await([&] { return isMade.load(); }, 500 * kMs);
      });
      group.windows().hold(windlass::kMostWindows - 1, lasting, place, 0, sizeof place);
    }
    enterBarrier(seat);
    if (seat.rank == 3)
      await([&] { return board.rounds[0] + board.rounds[1] + board.rounds[2] == 3; });
    wl_window_free(first);
    lasting.reset();
    // Rank 3 is the last rank that drops it. Its message makes the process of rank 1 unmap both.
    if (seat.rank == 0)
      expect(seat, await([&] { return group.shared().holders[number] <= 1; }), "hears no drop");
    ++board.rounds[seat.rank];
    const auto isUnmapped = [&] { return group.windows().within(1, number, 0, 1) == nullptr; };
    if (seat.rank == 1) expect(seat, await(isUnmapped), "unmaps none");
    wl_window_t* const second = make(seat);
    if (second == nullptr) return;
    if (seat.rank == 1) expect(seat, numberOf(seat, second) == number, "has another number");
    isMade = true;
    Error error;
    int32_t code = WL_OK;
    if (seat.rank == 3) {
      code = putBytes(seat, second, 1, 7, &error);
      if (code == WL_OK) code = wl_notify(seat.comm, second, 1, kSignal, 1, &error);
    } else if (seat.rank == 1) {
      code = wl_wait(seat.comm, second, 3, kSignal, 1, kWaitNs, &error);
      const auto* at = static_cast<const unsigned char*>(wl_window_address(second, 1));
      expect(seat, at[0] == 7 && at[kPut - 1] == 7, "lacks what was put");
    }
    expect(seat, code == WL_OK, "moves nothing:", error.message);
    enterBarrier(seat);
    wl_window_free(second);
  });
  EXPECT_EQ(std::vector<int>(4, 0), crew.end());
}

TEST(HostWindows, SignalsOfANewOneStartAt0) {
  HostCrew crew({2, 1, 1}, 0, [](Seat& seat) {
    uint32_t number = 0;
    for (const uint32_t value : {5, 1}) {
      wl_window_t* const window = make(seat);
      if (window == nullptr) return;
      expect(seat, number == 0 || numberOf(seat, window) == number, "has another number");
      number = numberOf(seat, window);
      Error error;
      const int32_t code = seat.rank == 0
                               ? wl_notify(seat.comm, window, 1, 0, value, &error)
                               : wl_wait(seat.comm, window, 0, 0, value, kWaitNs, &error);
      expect(seat, code == WL_OK, "signals nothing:", error.message);
      wl_window_free(window);
      enterBarrier(seat);
    }
  });
  EXPECT_EQ(std::vector<int>(2, 0), crew.end());
}

// Rank 0 closes after a failure that a stopped host does not confirm. Meanwhile rank 1 drops a
// window and stores into another.
TEST(HostWindows, StayWhileAWireThatClosesMayStoreThere) {
  HostCrew crew({3, 1, 1}, 0, [](Seat& seat) {
    wl_window_t* const dropped = make(seat);
    wl_window_t* const window = make(seat);
    if (dropped == nullptr || window == nullptr) return;
    const uint32_t number = numberOf(seat, window);
    enterBarrier(seat);
    Error error;
    if (seat.rank == 0) {
      // Nobody is in a call, as far as this host knows.
      for (const uint32_t rank : {1, 2})
        await([&] { return groupOf(seat).lines(rank).state.busy == 0; });
      ++seat.board.rounds[0];
      await([&] { return seat.board.rounds[2] == 1; });
      usleep(20'000);
      wl_comm_abort(seat.comm, "the test's reason", &error);
    } else if (seat.rank == 1) {
      await([&] { return wl_comm_status(seat.comm, &error) != WL_OK; });
      usleep(40'000);
      wl_window_free(dropped);
      usleep(40'000);
      unsigned char from[kPut] = {};
      const auto unread = std::make_shared<std::atomic<uint32_t>>(0);
      windlass::Hosts& hosts = *windlass::hostsOf(groupOf(seat));
      if (!hosts.putIn(0, Place::of(number, 0), from, sizeof from, unread)) ++seat.board.wrong;
      await([&] { return hosts.progress(), *unread == 0; }, kWaitNs);
      usleep(20'000);
      seat.sees(WL_OK, error);
    } else {
      await([&] { return seat.board.rounds[0] == 1; });
      ++seat.board.rounds[2];
      raise(SIGSTOP);
    }
    if (seat.rank != 1) wl_window_free(dropped);
    wl_window_free(window);
  });
  EXPECT_TRUE(crew.awaitSeen({1}));
  crew.signal(2, SIGKILL);
  EXPECT_EQ((std::vector<int>{0, 0, -SIGKILL}), crew.end());
}

TEST(HostWindows, NamesThatLackAProcessesOwnAreRefused) {
  Forks fork(1, [](int) {
    enterHost(0);
    Error error;
    const int32_t hosts[] = {0, 0, 1};
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = 3;
    config.hosts = hosts;
    const std::vector<int32_t> ranks[] = {{1}, {0, 1}, {2}};
    wl_group_t* groups[3] = {};
    std::vector<uint8_t> names;
    std::vector<uint64_t> bytes;
    int32_t files[2] = {};
    for (int32_t& file : files)
      if (wl_group_share(&config, &file, &error) != WL_OK) return 1;
    for (size_t i = 0; i < 3; ++i) {
      uint8_t name[4096];
      uint64_t length = 0;
      if (wl_group_attach(files[i == 2], &groups[i], &error) != WL_OK ||
          wl_group_open_wire(groups[i], ranks[i].data(), static_cast<uint32_t>(ranks[i].size()),
                             &error) != WL_OK ||
          wl_group_wire_name(groups[i], name, sizeof name, &length, &error) != WL_OK) {
        return 2;
      }
      if (i == 0) continue;
      names.insert(names.end(), name, name + length);
      bytes.push_back(length);
    }
    const int32_t code = wl_group_connect(groups[0], names.data(), bytes.data(), 2, 0, &error);
    const bool isSaid = contains(error.message, "the names lack what this process");
    for (wl_group_t* group : groups) wl_group_release(group);
    for (const int32_t file : files) wl_file_close(file);
    return code == WL_INVALID_ARGUMENT && isSaid ? 0 : 3;
  });
  EXPECT_EQ(std::vector<int>{0}, fork.wait());
}

}  // namespace host_windows_test
}  // namespace windlass_test
