// SPDX-License-Identifier: Apache-2.0
// Who is named where the process of a rank stands still in the wait of an operation whose items are
// not claimed.
#include <csignal>
#include <functional>

#include "tests/native/collective_calls.h"
#include "tests/native/core/members.h"

namespace windlass_test {
namespace standstill_test {

struct Operation {
  const char* name;
  int32_t code;
  std::function<int32_t(Member&, int64_t deadlineNs, Error*)> run;
};

void PrintTo(const Operation& operation, std::ostream* out) { *out << operation.name; }

// Too large to ride with ENTER, too small to be claimed.
int32_t exchange(Member& member, int64_t deadlineNs, Error* error) {
  constexpr uint64_t kEach = 2'500;
  return callCollective(member.comm, WL_OP_ALL_TO_ALL, member.window, 2 * kEach,
                        member.window + kWindowBytes / 2, 2 * kEach, WL_U32, 0, WL_AUTO, 0, 0,
                        deadlineNs, error);
}

int32_t dispatch(Member& member, int64_t deadlineNs, Error* error) {
  wl_experts_t experts = {};
  experts.struct_size = sizeof experts;
  experts.dtype = WL_F32;
  experts.ranks = 2;
  experts.experts = 2;
  experts.top_k = 1;
  experts.alignment = 1;
  experts.hidden = 8;
  experts.tokens = 2;
  experts.rows = 4;
  const int32_t ids[2] = {0, 1};
  const float tokens[16] = {};
  unsigned char* buffer = member.window + kWindowBytes / 2;
  const int32_t code = wl_experts_route(member.comm, &experts, member.window, 0, 2, ids, WL_I32,
                                        nullptr, error);
  return code != WL_OK ? code
                       : wl_experts_dispatch(member.comm, member.window, buffer, tokens, 2,
                                             deadlineNs, error);
}

class Standstill : public testing::TestWithParam<Operation> {};

// Rank 1 waits for rank 0 when its process is stopped; then rank 0 comes.
TEST_P(Standstill, OfARankThatWaitsIsItsOwn) {
  const Operation& operation = GetParam();
  const Spread spread = {2, 2, 64, 0, nullptr};
  const Shared<std::atomic<int>> step;
  const Members all(
      spread,
      [&](Member& member) {
        Error error;
        if (member.rank == 1) {
          // The rank may also find that all ranks have arrived.
          const int32_t code = operation.run(member, 60'000 * kMs, &error);
          CHECK_IN_MEMBER(code == WL_DEADLINE_EXCEEDED || code == WL_OK);
          return 0;
        }
        wl_rank_state_t peer = {};
        peer.struct_size = sizeof peer;
        CHECK_IN_MEMBER(await([&] {
          return wl_comm_state(member.comm, 1, &peer) == WL_OK && peer.busy == 1 &&
                 peer.operation == operation.code && peer.awaited != -1;
        }));
        *step = 1;
        CHECK_IN_MEMBER(await([&] { return *step == 2; }));
        // A rank returns once the one that stands still has let go of its memory, too.
        std::thread beside([&] {
          Error seen;
          await([&] { return wl_comm_status(member.comm, &seen) != WL_OK; });
          *step = 3;
        });
        const int32_t code = operation.run(member, 300 * kMs, &error);
        beside.join();
        CHECK_IN_MEMBER(code == WL_DEADLINE_EXCEEDED);
        CHECK_IN_MEMBER(error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
        CHECK_IN_MEMBER(contains(error.message, "rank 1 has not finished"));
        return 0;
      },
      {},
      [&](const std::vector<pid_t>& children) {
        EXPECT_TRUE(await([&] { return *step == 1; }));
        kill(children[1], SIGSTOP);
        waitpid(children[1], nullptr, WUNTRACED);
        *step = 2;
        await([&] { return *step == 3; });
        kill(children[1], SIGCONT);
      });
  EXPECT_EQ(allWell(spread), all.results);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, Standstill,
    testing::Values(Operation{"AllToAll", WL_OP_ALL_TO_ALL, exchange},
                    Operation{"ExpertDispatch", WL_OP_EXPERT_DISPATCH, dispatch}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace standstill_test
}  // namespace windlass_test
