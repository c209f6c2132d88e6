// SPDX-License-Identifier: Apache-2.0
// What a host tells of the ranks of others: where they live, what they have entered and when it
// heard so, who entered last, and that they have closed.
#include "tests/native/collective_calls.h"
#include "tests/native/hosts/host_crew.h"

namespace windlass_test {
namespace host_report_test {

wl_rank_state_t stateOf(const wl_comm_t* comm, int rank) {
  wl_rank_state_t state = {};
  state.struct_size = sizeof state;
  EXPECT_EQ(WL_OK, wl_comm_state(comm, rank, &state));
  return state;
}

std::vector<wl_record_t> recordsOf(const wl_comm_t* comm, int rank) {
  std::vector<wl_record_t> records(WL_RECORDS);
  records[0].struct_size = sizeof(wl_record_t);
  const int32_t count = wl_comm_recorded(comm, rank, records.data(), WL_RECORDS);
  EXPECT_GE(count, 0);
  records.resize(static_cast<size_t>(std::max(0, count)));
  return records;
}

// Whether it knows that the rank has entered one that many operations after the first.
bool knowsEntry(const wl_comm_t* comm, int rank, uint32_t sequence) {
  const std::vector<wl_record_t> records = recordsOf(comm, rank);
  return !records.empty() && records[0].sequence == sequence;
}

constexpr HostSpread kSpreads[] = {{2, 1, 1}, {2, 2, 1}, {2, 1, 2}, {3, 1, 1}};

class HostReport : public testing::TestWithParam<HostSpread> {};

// All but the last rank wait in a barrier, in which it comes last.
TEST_P(HostReport, TellsWhatRanksOfOthersHaveEntered) {
  const HostSpread all = GetParam();
  const int last = all.ranks() - 1;
  const auto isElsewhere = [&](int rank, const Seat& seat) {
    return all.hostOf(rank) != all.hostOf(seat.rank);
  };
  HostCrew crew(all, 0, [&](Seat& seat) {
    const auto expect = [&](bool isSo, int line) {
      if (isSo) return;
      ++seat.board.wrong;
      std::fprintf(stderr, "%s:%d: rank %d\n", __FILE__, line, seat.rank);
    };
    Error error;
    expect(callBarrier(seat.comm, 0, &error) == WL_OK, __LINE__);
    const uint32_t first = stateOf(seat.comm, seat.rank).sequence;
    uint32_t in = static_cast<uint32_t>(seat.rank);
    std::vector<uint32_t> gathered(static_cast<size_t>(all.ranks()));
    expect(allGather(seat.comm, &in, gathered.data(), 1, WL_U32, 0, &error) == WL_OK, __LINE__);
    if (seat.rank == last) {
      for (int rank = 0; rank < last; ++rank)
        expect(await([&] { return knowsEntry(seat.comm, rank, first + 2); }), __LINE__);
      for (int rank = 0; rank < last; ++rank) {
        const wl_rank_state_t state = stateOf(seat.comm, rank);
        expect(state.elsewhere == (isElsewhere(rank, seat) ? 1 : 0), __LINE__);
        expect(state.host == all.hostOf(rank) && state.closed == 0, __LINE__);
        expect(state.pid != 0 && (state.started == 0) == isElsewhere(rank, seat), __LINE__);
        const std::vector<wl_record_t> records = recordsOf(seat.comm, rank);
        expect(records.size() == 3, __LINE__);
        if (records.size() != 3) continue;
        const int64_t now = wl_clock_ns();
        for (uint32_t i = 0; i < 3; ++i) {
          const wl_record_t& record = records[i];
          expect(record.sequence == first + 2 - i, __LINE__);
          expect(record.operation == (i == 1 ? WL_OP_ALL_GATHER : WL_OP_BARRIER), __LINE__);
          expect(record.entered_ns > 0 && record.entered_ns <= now, __LINE__);
          if (isElsewhere(rank, seat)) {
            expect(record.code == WL_RECORD_ENTERED && record.bytes == 0, __LINE__);
            expect(record.left_ns == record.entered_ns && record.waited_ns == 0, __LINE__);
          }
        }
        expect(contains(records[1].text, "all-gather(1 x u32 of each rank"), __LINE__);
      }
      usleep(50'000);
    }
    expect(callBarrier(seat.comm, 0, &error) == WL_OK, __LINE__);
    expect(wl_comm_last_to_enter(seat.comm, first + 2) == last, __LINE__);
    if (seat.rank == last) {
      expect(wl_comm_close(seat.comm, &error) == WL_OK, __LINE__);
    } else {
      expect(await([&] { return stateOf(seat.comm, last).closed == 1; }), __LINE__);
    }
    seat.sees(WL_OK, error);
  });
  EXPECT_EQ(std::vector<int>(static_cast<size_t>(all.all()), 0), crew.end());
}

// The message of a DeadlineExceeded says since when this host has known what the late rank entered.
TEST_P(HostReport, APassedDeadlineSaysWhatTheLateRankEntered) {
  const HostSpread all = GetParam();
  HostCrew crew(all, 0, [&](Seat& seat) {
    Error error;
    int32_t code = callBarrier(seat.comm, 0, &error);
    if (seat.rank == 0 && code == WL_OK) code = callBarrier(seat.comm, 200 * kMs, &error);
    if (seat.rank != 0)
      await([&] { return wl_comm_status(seat.comm, &error) != WL_OK; });
    seat.sees(code, error);
  });
  ASSERT_TRUE(crew.awaitSeen({0}));
  const Seen& seen = crew.board().seen[0];
  EXPECT_EQ(WL_DEADLINE_EXCEEDED, seen.code);
  EXPECT_TRUE(contains(seen.message, "has not come: it entered barrier #")) << seen.message;
  EXPECT_TRUE(contains(seen.message, " ms ago (process ")) << seen.message;
  EXPECT_EQ(std::vector<int>(static_cast<size_t>(all.all()), 0), crew.end());
}

INSTANTIATE_TEST_SUITE_P(Spreads, HostReport, testing::ValuesIn(kSpreads));

}  // namespace host_report_test
}  // namespace windlass_test
