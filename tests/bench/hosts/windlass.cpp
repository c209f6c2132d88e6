// SPDX-License-Identifier: Apache-2.0
// Windlass over several hosts, which tests/bench/hosts/run makes: ranks in forked processes, a
// process a rank.
//
// usage: hosts_bench RANKS
#include "sampling.h"
#include "tests/native/comm/local_ranks.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 4;
  windlass_test::LocalRanks group(ranks);
  group.run([&](int rank, wl_comm_t* comm) {
    const auto check = [](int32_t code, const wl_error_t& error) {
      if (code == WL_OK) return;
      std::fprintf(stderr, "%s\n", error.message);
      std::_Exit(1);
    };
    for (const uint64_t bytes : hosts_bench::sizes()) {
      std::vector<float> in(bytes / sizeof(float), 1), out(bytes / sizeof(float));
      const auto count = static_cast<int64_t>(in.size());
      windlass_test::Error error;
      const double reduced = hosts_bench::sample(bytes, [&] {
        check(wl_collective(comm, WL_OP_ALL_REDUCE, in.data(), count, out.data(), count, WL_F32,
                            WL_SUM, WL_AUTO, 0, 0, 0, &error),
              error);
      });
      for (const float value : out)
        if (value != static_cast<float>(ranks)) check(WL_INTERNAL, error);
      if (rank == 0) hosts_bench::print("all-reduce", bytes, reduced);
      const double exchanged = hosts_bench::sample(bytes, [&] {
        check(wl_collective(comm, WL_OP_ALL_TO_ALL, in.data(), count, out.data(), count, WL_F32, 0,
                            WL_AUTO, 0, 0, 0, &error),
              error);
      });
      if (rank == 0) hosts_bench::print("all-to-all", bytes, exchanged);
    }
  });
  return 0;
}
