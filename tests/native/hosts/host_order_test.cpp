// SPDX-License-Identifier: Apache-2.0
// What a rank has put is there for whoever hears of what it does next, by whichever way.
#include "tests/native/hosts/host_crew.h"

namespace windlass_test {
namespace {

enum class By { kBarrier, kNotify };

// By turns rank 0 puts to the last rank's part, and rank 1, which it then tells or all meet, takes
// it from there.
void putAndTake(Seat& seat, By by) {
  constexpr int64_t kBytes = int64_t{4} << 20;
  constexpr uint64_t kSignal = kBytes;
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
        code = wl_notify(seat.comm, window, 1, kSignal, turn, &error);
    } else if (seat.rank == 1 && by == By::kNotify) {
      code = wl_wait(seat.comm, window, 0, kSignal, turn, 0, &error);
    }
    if (code == WL_OK && by == By::kBarrier) code = wl_barrier(seat.comm, 0, &error);
    if (code == WL_OK && seat.rank == 1) {
      code = wl_get(seat.comm, window, &local, last, &remote, &error);
      for (const uint8_t byte : data) {
        if (byte == turn) continue;
        ++seat.board.wrong;
        break;
      }
    }
    if (code == WL_OK) code = wl_barrier(seat.comm, 0, &error);
  }
  seat.sees(code, error);
  wl_window_free(window);
}

class HostOrder : public testing::TestWithParam<HostSpread> {};

TEST_P(HostOrder, WhatWasPutIsThereForWhoeverHearsOfTheNext) {
  for (const By by : {By::kBarrier, By::kNotify}) {
    HostCrew crew(GetParam(), 0, [by](Seat& seat) { putAndTake(seat, by); });
    EXPECT_EQ(std::vector<int>(static_cast<size_t>(GetParam().all()), 0), crew.end());
    for (int rank = 0; rank < GetParam().ranks(); ++rank)
      EXPECT_EQ(WL_OK, crew.board().seen[rank].code) << crew.board().seen[rank].message;
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, HostOrder,
                         testing::Values(HostSpread{2, 2, 1}, HostSpread{3, 1, 1}));

}  // namespace
}  // namespace windlass_test
