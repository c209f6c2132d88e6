// SPDX-License-Identifier: Apache-2.0
// What a call costs from C, on a communicator of one rank, where nothing waits: the median over
// batches of ns a call. CallBenchmark.java measures the same calls from Java.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "windlass/windlass.h"

namespace {

constexpr int kBatches = 51;
constexpr int kCalls = 100'000;

double nanosecondsOf(const std::function<int32_t()>& call) {
  std::vector<double> batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    int32_t failed = 0;
    for (int i = 0; i < kCalls; ++i) failed |= call();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    if (failed != 0) return -1;
    batches.push_back(took.count() / kCalls);
  }
  std::sort(batches.begin(), batches.end());
  return batches[kBatches / 2];
}

}  // namespace

int main() {
  wl_error_t error = {};
  error.struct_size = sizeof error;
  wl_group_config_t config = {};
  config.struct_size = sizeof config;
  config.ranks = 1;
  wl_group_t* group = nullptr;
  wl_comm_t* comm = nullptr;
  wl_window_t* window = nullptr;
  if (wl_group_create(&config, &group, &error) != WL_OK ||
      wl_group_join(group, 0, &comm, &error) != WL_OK ||
      wl_window_create(comm, 4096, 0, &window, &error) != WL_OK) {
    std::fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  auto* in = static_cast<unsigned char*>(wl_window_address(window, 0));
  unsigned char* out = in + 2048;
  const auto print = [&](const char* name, int32_t operation, void* target) {
    wl_call_t call = {};
    call.struct_size = sizeof call;
    call.operation = operation;
    call.in = in;
    call.out = target;
    call.in_elements = call.out_elements = 1;
    call.dtype = WL_F32;
    call.op = WL_SUM;
    const double ns = nanosecondsOf([&] { return wl_submit(comm, &call, &error); });
    std::printf("%-11s %7.1f ns\n", name, ns);
  };
  print("barrier", WL_OP_BARRIER, out);
  print("all-to-all", WL_OP_ALL_TO_ALL, out);
  print("all-reduce", WL_OP_ALL_REDUCE, out);
  print("broadcast", WL_OP_BROADCAST, in);
  wl_window_free(window);
  wl_comm_free(comm);
  wl_group_release(group);
  return 0;
}
