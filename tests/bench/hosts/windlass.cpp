// SPDX-License-Identifier: Apache-2.0
// Windlass over several hosts, which tests/bench/hosts/run makes: ranks in forked processes, a
// process a rank. With two ranks, puts and notifies; with more, collectives.
//
// usage: hosts_bench RANKS [BYTES...]
#include "sampling.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/windows.h"

namespace {

using hosts_bench::print;
using hosts_bench::sample;
using windlass_test::Error;

void check(int32_t code, const wl_error_t& error) {
  if (code == WL_OK) return;
  std::fprintf(stderr, "%s\n", error.message);
  std::_Exit(1);
}

// `count`: of exchanges before.
void exchange(windlass_test::Windows& windows, int rank, uint64_t bytes, uint32_t& count) {
  std::vector<unsigned char> data(bytes, 1);
  Error error;
  const auto put = [&](uint64_t length) {
    const auto elements = static_cast<int64_t>(length);
    const int64_t one = 1;
    const auto tensorAt = [&](void* at) {
      wl_tensor_t tensor = {};
      tensor.struct_size = sizeof tensor;
      tensor.data = at;
      tensor.dtype = WL_U8;
      tensor.ndim = 1;
      tensor.shape = &elements;
      tensor.strides = &one;
      return tensor;
    };
    const wl_tensor_t local = tensorAt(data.data());
    const wl_tensor_t remote = tensorAt(windows.at(rank, 0));
    check(windows.put(rank, local, 1 - rank, remote, &error), error);
    check(windows.notify(rank, 1 - rank, 0, count, &error), error);
  };
  const double us = sample(bytes, [&] {
    ++count;
    if (rank == 0) put(bytes);
    check(windows.wait(rank, 1 - rank, 0, count, &error), error);
    if (rank == 1) put(8);
  });
  if (rank == 0) print("put-notify", bytes, us);
}

void collectives(int rank, int ranks, wl_comm_t* comm, uint64_t bytes) {
  std::vector<float> in(bytes / sizeof(float), 1), out(in.size());
  const uint64_t count = in.size();
  const auto run = [&](int operation, int op) {
    Error error;
    check(callCollective(comm, operation, in.data(), count, out.data(), count, WL_F32, op, WL_AUTO,
                         0, 0, 0, &error),
          error);
  };
  const double reduced = sample(bytes, [&] { run(WL_OP_ALL_REDUCE, WL_SUM); });
  for (const float value : out) {
    if (value == static_cast<float>(ranks)) continue;
    std::fprintf(stderr, "an all-reduce of ones gave %g\n", static_cast<double>(value));
    std::_Exit(1);
  }
  if (rank == 0) print("all-reduce", bytes, reduced);
  const double exchanged = sample(bytes, [&] { run(WL_OP_ALL_TO_ALL, 0); });
  if (rank == 0) print("all-to-all", bytes, exchanged);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 4;
  std::vector<uint64_t> sizes = hosts_bench::sizes();
  if (argc > 2) sizes.clear();
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  windlass_test::LocalRanks group(ranks);
  if (ranks == 2) {
    windlass_test::Windows windows(group, hosts_bench::kLongPut, 1);
    group.run([&](int rank, wl_comm_t*) {
      uint32_t count = 0;
      for (const uint64_t bytes : {hosts_bench::kShortPut, hosts_bench::kLongPut})
        exchange(windows, rank, bytes, count);
    });
  } else {
    group.run([&](int rank, wl_comm_t* comm) {
      for (const uint64_t bytes : sizes) collectives(rank, ranks, comm, bytes);
    });
  }
  return 0;
}
