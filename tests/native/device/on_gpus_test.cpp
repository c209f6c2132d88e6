// SPDX-License-Identifier: Apache-2.0
// What ranks as threads do on whatever GPUs there are, by calls that any driver has: graphs, expert
// parallelism, and one-sided moves in GPUs' memory, bit for bit.
#include "tests/native/device/device_window_moves.h"
#include "tests/native/device/expert_exchange.h"
#include "tests/native/device/graph_replay.h"

namespace windlass_test {
namespace on_gpus_test {

// The driver is open once a group is there.
int devices() {
  const LocalRanks one(1);
  return gpus::count();
}

TEST(GpusGraphs, RunAsOftenAsTheyAreLaunched) {
  for (const int ranks : {2, 3, 8}) replay(ranks, devices(), 1000);
}

TEST(GpusWindows, PutAndGetMoveTheElementsOfAViewAndNoOther) {
  for (const int ranks : {1, 2, 3}) moveViews(ranks, devices(), seed());
}

TEST(GpusWindows, AddsOfAllRanksToTheSameElementsLoseNothing) {
  for (const bool isOnHost : {false, true}) addAllDTypes(5, devices(), isOnHost);
}

class Experts : public testing::TestWithParam<int> {};

TEST_P(Experts, GetTheirTokensAndGiveThemBack) {
  const ExpertCase cases[] = {
      {WL_F64, 40, 2, 2, 4, false},      {WL_F32, 40, 2, 2, 4, false},
      {WL_F16, 40, 2, 2, 4, false},      {WL_BF16, 40, 2, 2, 4, false},
      {WL_F8E5M2, 40, 2, 2, 4, false},   {WL_F8E4M3, 40, 2, 2, 4, false},
      {WL_F32, 1, 1, 1, 1, false},       {WL_BF16, 1000, 3, 3, 16, false},
      {WL_BF16, 7168, 4, 4, 128, false}, {WL_F32, 128, 2, 2, 4, true},
      {WL_F16, 200, 3, 4, 1, true},      {WL_BF16, 7168, 4, 4, 128, true},
  };
  const int count = devices();
  const int ranks = GetParam();
  for (const ExpertCase& one : cases) {
    const ExpertExchange exchange(ranks, one);
    LocalRanks group(ranks);
    group.run([&](int rank, wl_comm_t* comm) {
      for (const int there : {kOnHost, rank % count})
        EXPECT_EQ(exchange.run(comm, there, there, 2), "")
            << testing::PrintToString(one) << (there == kOnHost ? ", the host's" : ", a device's");
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Gpus, Experts, testing::ValuesIn(rankCounts()),
                         testing::PrintToStringParamName());

}  // namespace on_gpus_test
}  // namespace windlass_test
