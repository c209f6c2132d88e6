// SPDX-License-Identifier: Apache-2.0
// What a rank has put is there for whoever hears of what it does next, by whichever way.
#include "tests/native/collective_calls.h"
#include "tests/native/hosts/host_crew.h"

namespace windlass_test {
namespace host_order_test {

enum class By { kBarrier, kNotify };

// In turns, rank 0 puts to the part of the last rank. Rank 1 takes it from there after a signal, or
// after a barrier.
void putAndTake(Seat& seat, By by) {
  constexpr int64_t kBytes = int64_t{4} << 20;
  constexpr uint64_t kBehind = kBytes;
  Error error;
  wl_window_t* window = nullptr;
  int32_t code = wl_window_create(seat.comm, kBytes + 4096, 0, &window, &error);
  std::vector<uint8_t> data(kBytes);
  const int64_t shape[] = {kBytes};
  const int64_t strides[] = {1};
  const wl_tensor_t local = {sizeof(wl_tensor_t), WL_U8, 1, 0, data.data(), shape, strides};
  wl_tensor_t remote = local;
  remote.data = wl_window_address(window, seat.rank);
  const int last = wl_comm_size(seat.comm) - 1;
  for (uint32_t turn = 1; code == WL_OK && turn <= 12; ++turn) {
    if (seat.rank == 0) {
      std::fill(data.begin(), data.end(), static_cast<uint8_t>(turn));
      code = wl_put(seat.comm, window, &local, last, &remote, &error);
      if (code == WL_OK && by == By::kNotify)
        code = wl_notify(seat.comm, window, 1, kBehind, turn, &error);
    } else if (seat.rank == 1 && by == By::kNotify) {
      code = wl_wait(seat.comm, window, 0, kBehind, turn, 0, &error);
    }
    if (code == WL_OK && by == By::kBarrier) code = callBarrier(seat.comm, 0, &error);
    if (code == WL_OK && seat.rank == 1) {
      code = wl_get(seat.comm, window, &local, last, &remote, &error);
      for (const uint8_t byte : data) {
        if (byte == turn) continue;
        ++seat.board.wrong;
        break;
      }
    }
    if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
  }
  seat.sees(code, error);
  wl_window_free(window);
}

// Each rank puts to the next, gets from the one before it, and puts over what it put. So its own
// messages and its answers take turns on a connection.
void putAndGetAround(const Seat& seat) {
  constexpr int64_t kBytes = int64_t{3} << 20;
  constexpr uint64_t kTold = 2 * kBytes;
  const int size = wl_comm_size(seat.comm);
  const int next = (seat.rank + 1) % size;
  const int before = (seat.rank + size - 1) % size;
  Error error;
  wl_window_t* window = nullptr;
  int32_t code = wl_window_create(seat.comm, kTold + 4096, 0, &window, &error);
  auto* const own = static_cast<uint8_t*>(wl_window_address(window, seat.rank));
  std::fill_n(own + kBytes, kBytes, static_cast<uint8_t>(100 + seat.rank));
  std::vector<uint8_t> data(kBytes);
  const int64_t shape[] = {kBytes};
  const int64_t strides[] = {1};
  const wl_tensor_t local = {sizeof(wl_tensor_t), WL_U8, 1, 0, data.data(), shape, strides};
  wl_tensor_t put = local;
  put.data = own;
  wl_tensor_t got = local;
  got.data = own + kBytes;
  const auto expectAll = [&](const uint8_t* bytes, int value) {
    seat.board.wrong += std::count(bytes, bytes + kBytes, value) == kBytes ? 0 : 1;
  };
  if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
  for (uint8_t turn = 1; code == WL_OK && turn <= 20; ++turn) {
    std::fill(data.begin(), data.end(), uint8_t{0});
    code = wl_put(seat.comm, window, &local, next, &put, &error);
    if (code == WL_OK) code = wl_get(seat.comm, window, &local, before, &got, &error);
    expectAll(data.data(), 100 + before);
    std::fill(data.begin(), data.end(), turn);
    if (code == WL_OK) code = wl_put(seat.comm, window, &local, next, &put, &error);
    if (code == WL_OK) code = wl_notify(seat.comm, window, next, kTold, turn, &error);
    if (code == WL_OK) code = wl_wait(seat.comm, window, before, kTold, turn, 0, &error);
    expectAll(own, turn);
    if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
  }
  seat.sees(code, error);
  wl_window_free(window);
}

constexpr uint64_t kRoom = 5 << 19;
constexpr uint64_t kSignal = kRoom;

// Rows of that value and `bytes` each, which begin `pitch` bytes apart, from `at` on.
struct Rows {
  int64_t at;
  int64_t rows;
  int64_t bytes;
  int64_t pitch;
  uint8_t value;
};

int32_t putRows(const Seat& seat, const wl_window_t* window, int to, const Rows& of,
                wl_error_t* error) {
  std::vector<uint8_t> data(static_cast<size_t>(of.rows * of.bytes), of.value);
  const int64_t shape[] = {of.rows, of.bytes};
  const int64_t strides[] = {of.bytes, 1};
  const int64_t apart[] = {of.pitch, 1};
  const wl_tensor_t local = {sizeof(wl_tensor_t), WL_U8, 2, 0, data.data(), shape, strides};
  wl_tensor_t remote = local;
  remote.data = static_cast<uint8_t*>(wl_window_address(window, seat.rank)) + of.at;
  remote.strides = apart;
  return wl_put(seat.comm, window, &local, to, &remote, error);
}

Rows drawRows(std::mt19937_64& random) {
  const auto draw = [&](uint64_t least, uint64_t most) {
    return static_cast<int64_t>(least + random() % (most - least + 1));
  };
  // Short; around what is sent in another way; some rows with gaps; or up to all of the room.
  const uint64_t edges[] = {1 << 10, 4 << 10, 32 << 10, 512 << 10, 2 << 20};
  const uint64_t edge = edges[random() % 5];
  const uint64_t kind = random() % 8;
  Rows of = {};
  of.rows = kind == 6 ? draw(2, 4) : 1;
  if (kind < 4) of.bytes = draw(1, 64);
  if (kind == 4 || kind == 5) of.bytes = draw(edge - 64, edge + 64);
  if (kind == 6) of.bytes = draw(1, 2000);
  if (kind == 7) of.bytes = draw(1, kRoom);
  of.pitch = of.bytes + draw(0, 50);
  of.at = draw(0, kRoom - static_cast<uint64_t>((of.rows - 1) * of.pitch + of.bytes));
  of.value = static_cast<uint8_t>(random());
  return of;
}

// Rank 0 puts over what it put before, now and then waits, and notifies the last rank, which finds
// all as it was put last. Both draw the same.
void putOverAndOver(const Seat& seat, std::mt19937_64 random) {
  Error error;
  wl_window_t* window = nullptr;
  int32_t code = wl_window_create(seat.comm, kRoom + 4096, 0, &window, &error);
  const int last = wl_comm_size(seat.comm) - 1;
  std::vector<uint8_t> expected(kRoom);
  const uint32_t turns = longForm() && !kSanitized ? 500 : 100;
  for (uint32_t turn = 1; code == WL_OK && turn <= turns; ++turn) {
    for (uint64_t puts = 1 + random() % 4; code == WL_OK && puts > 0; --puts) {
      const Rows of = drawRows(random);
      const uint64_t pauseUs = random() % 16 == 0 ? random() % 600 : 0;
      for (int64_t row = 0; row < of.rows; ++row)
        std::fill_n(expected.begin() + of.at + row * of.pitch, of.bytes, of.value);
      if (seat.rank != 0) continue;
      code = putRows(seat, window, last, of, &error);
      if (pauseUs > 0) usleep(static_cast<useconds_t>(pauseUs));
    }
    if (code == WL_OK && seat.rank == 0) {
      code = wl_notify(seat.comm, window, last, kSignal, turn, &error);
      if (code == WL_OK) code = wl_wait(seat.comm, window, last, kSignal, turn, 0, &error);
    } else if (code == WL_OK && seat.rank == last) {
      code = wl_wait(seat.comm, window, 0, kSignal, turn, 0, &error);
      const void* const own = wl_window_address(window, last);
      if (std::memcmp(own, expected.data(), kRoom) != 0) ++seat.board.wrong;
      if (code == WL_OK) code = wl_notify(seat.comm, window, 0, kSignal, turn, &error);
    }
  }
  if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
  seat.sees(code, error);
  wl_window_free(window);
}

// In turns, rank 0 puts 4 MiB, the first time with no other traffic, then while the last rank gets
// much more from it. Counts the turns in which the put arrives before the get.
void putBesideGets(const Seat& seat, std::atomic<int>& came, int turns) {
  constexpr int64_t kPut = int64_t{4} << 20;
  constexpr int64_t kGot = int64_t{192} << 20;
  Error error;
  wl_window_t* window = nullptr;
  int32_t code = wl_window_create(seat.comm, kPut + kGot, 0, &window, &error);
  const int last = wl_comm_size(seat.comm) - 1;
  auto* const own = static_cast<uint8_t*>(wl_window_address(window, seat.rank));
  const auto* const end = reinterpret_cast<std::atomic<uint8_t>*>(own + kPut - 1);
  std::vector<uint8_t> data(seat.rank == last ? kGot : 0);
  const int64_t stride = 1;
  const wl_tensor_t local = {sizeof(wl_tensor_t), WL_U8, 1, 0, data.data(), &kGot, &stride};
  wl_tensor_t remote = local;
  remote.data = own + kPut;
  for (int turn = 0; code == WL_OK && turn <= turns; ++turn) {
    const auto value = static_cast<uint8_t>(1 + turn);
    code = callBarrier(seat.comm, 0, &error);
    if (seat.rank == 0 && turn > 0) usleep(2000);  // until that is asked for
    if (code == WL_OK && seat.rank == 0)
      code = putRows(seat, window, last, {0, 1, kPut, kPut, value}, &error);
    if (turn == 0) continue;
    if (code == WL_OK && seat.rank == last)
      code = wl_get(seat.comm, window, &local, 0, &remote, &error);
    if (seat.rank == last && *end == value) ++came;
  }
  if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
  seat.sees(code, error);
  wl_window_free(window);
}

// Rank 0 puts and calls nothing, right after a barrier; how long each put is on its way.
void putAlone(const Seat& seat, std::atomic<int64_t>* tookNs, int turns) {
  Error error;
  wl_window_t* window = nullptr;
  int32_t code = wl_window_create(seat.comm, 4096, 0, &window, &error);
  const int last = wl_comm_size(seat.comm) - 1;
  for (int turn = 0; code == WL_OK && turn < turns; ++turn) {
    code = callBarrier(seat.comm, 0, &error);
    const int64_t start = wl_clock_ns();
    if (code == WL_OK && seat.rank == 0) {
      code = putRows(seat, window, last, {0, 1, 1, 1, static_cast<uint8_t>(1 + turn)}, &error);
      await([&] { return tookNs[turn] != 0; });
    } else if (code == WL_OK && seat.rank == last) {
      const auto* own = static_cast<std::atomic<uint8_t>*>(wl_window_address(window, last));
      await([&] { return *own == 1 + turn; });
      tookNs[turn] = wl_clock_ns() - start;
    }
  }
  if (code == WL_OK) code = callBarrier(seat.comm, 0, &error);
  seat.sees(code, error);
  wl_window_free(window);
}

class HostOrder : public testing::TestWithParam<HostSpread> {
 protected:
  static void expectAllOk(HostCrew& crew) {
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(GetParam().all()), 0), crew.end());
    for (int rank = 0; rank < GetParam().ranks(); ++rank)
      EXPECT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
  }
};

TEST_P(HostOrder, WhatWasPutIsThereForWhoeverHearsOfTheNext) {
  for (const By by : {By::kBarrier, By::kNotify}) {
    HostCrew crew(GetParam(), 0, [by](Seat& seat) { putAndTake(seat, by); });
    expectAllOk(crew);
  }
}

TEST_P(HostOrder, PutsAndWhatOthersGetTakeTurns) {
  HostCrew crew(GetParam(), 0, putAndGetAround);
  expectAllOk(crew);
}

TEST_P(HostOrder, WhatIsPutOverAndOverIsAsItWasPutLast) {
  const std::mt19937_64 random(seed());
  HostCrew crew(GetParam(), 0, [&](Seat& seat) { putOverAndOver(seat, random); });
  expectAllOk(crew);
}

TEST_P(HostOrder, ALongPutArrivesWhileItsPeerGets) {
  const int turns = longForm() ? 7 : 5;
  // Limits the buffer as on devices other than loopback. In a longer buffer, gets fill the space
  // for which a put waits.
  setenv("UCX_TCP_SNDBUF", "256k", 1);
  const Shared<std::atomic<int>> came;
  HostCrew crew(GetParam(), 0, [&](Seat& seat) { putBesideGets(seat, *came, turns); });
  unsetenv("UCX_TCP_SNDBUF");
  expectAllOk(crew);
  EXPECT_GT(*came, turns / 2) << "of " << turns;
}

// Prints how long the puts were on their way: its process looks after a put that nothing follows
// within 100 ms at the latest.
TEST_P(HostOrder, AShortPutLeavesThoughNothingFollows) {
  constexpr int kTurns = 21;
  struct Times {
    std::atomic<int64_t> tookNs[kTurns];
  };
  const Shared<Times> times;
  HostCrew crew(GetParam(), 0, [&](Seat& seat) { putAlone(seat, times->tookNs, kTurns); });
  expectAllOk(crew);
  std::vector<int64_t> took(times->tookNs, times->tookNs + kTurns);
  std::sort(took.begin(), took.end());
  EXPECT_GT(took.front(), 0) << "a put that did not arrive before the next barrier";
  std::printf("a put that nothing follows: median %.1f ms, at most %.1f\n",
              static_cast<double>(took[kTurns / 2]) / 1e6,
              static_cast<double>(took.back()) / 1e6);
}

INSTANTIATE_TEST_SUITE_P(Hosts, HostOrder,
                         testing::Values(HostSpread{2, 2, 1}, HostSpread{3, 1, 1}));

}  // namespace host_order_test
}  // namespace windlass_test
