// SPDX-License-Identifier: Apache-2.0
// Every operation, with many ranks, on threads whose stacks are small.
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

namespace windlass_test {
namespace small_stack_test {

// Stack in addition to the needs of the thread library.
constexpr size_t kStack = size_t{48} << 10;
constexpr int kMany = 600;

// Runs body(rank) on a thread a rank, with a stack of kStack and a guard page below it.
void runOnSmallStacks(int ranks, const std::function<void(int rank)>& body) {
  struct Thread {
    const std::function<void(int)>* body;
    int rank;
    pthread_t handle;
  };
  std::vector<Thread> threads(static_cast<size_t>(ranks));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(0, pthread_attr_setstacksize(&attributes,
                                         static_cast<size_t>(PTHREAD_STACK_MIN) + kStack));
  for (int rank = 0; rank < ranks; ++rank) {
    Thread& thread = threads[static_cast<size_t>(rank)];
    thread = {&body, rank, {}};
    const auto start = [](void* argument) -> void* {
      const auto* own = static_cast<Thread*>(argument);
      (*own->body)(own->rank);
      return nullptr;
    };
    ASSERT_EQ(0, pthread_create(&thread.handle, &attributes, start, &thread));
  }
  for (Thread& thread : threads) pthread_join(thread.handle, nullptr);
  pthread_attr_destroy(&attributes);
}

class SmallStack : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's frames are larger";
#endif
  }
};

TEST_F(SmallStack, IsEnoughForEveryCollectiveOfManyRanks) {
  constexpr uint64_t kCount = 10'000;  // of f16: beyond what is staged
  constexpr auto n = static_cast<uint64_t>(kMany);
  std::vector<std::vector<uint16_t>> ins(n, std::vector<uint16_t>(20 * n, 0x3c00));
  std::vector<std::vector<uint16_t>> outs(n, std::vector<uint16_t>(20 * n));
  const std::vector<int64_t> counts(n, 2);
  LocalRanks ranks(kMany, 60'000 * kMs);
  std::atomic<uint64_t> wrong{0};
  runOnSmallStacks(kMany, [&](int rank) {
    wl_comm_t* comm = ranks.comms[static_cast<size_t>(rank)];
    const auto own = static_cast<size_t>(rank);
    const uint16_t* in = ins[own].data();
    uint16_t* out = outs[own].data();
    wl_error_t* none = nullptr;
    const auto check = [&](int code, const char* what) {
      if (code == WL_OK) return;
      ++wrong;
      if (rank == 0) std::printf("%s: %s\n", what, wl_code_name(code));
    };
    check(callBarrier(comm, 0, none), "barrier");
    check(allToAll(comm, in, out, 20, WL_F16, WL_PUSH, 0, none), "all-to-all");
    check(broadcast(comm, in, out, kCount, WL_F16, 3, WL_AUTO, 0, none), "broadcast");
    check(allGather(comm, in, out, 20, WL_F16, 0, none), "all-gather");
    check(reduceScatter(comm, in, out, 20, WL_F16, WL_AVG, 0, none), "reduce-scatter");
    check(allReduce(comm, in, out, kCount, WL_F16, WL_AVG, WL_TWO_PHASE, 0, none), "two-phase");
    wrong += out[kCount - 1] == 0x3c00 ? 0 : 1;
    check(allReduce(comm, in, out, kCount, WL_F16, WL_MAX, WL_ONE_PHASE, 0, none), "one-phase");
    check(allReduce(comm, in, out, 4, WL_F16, WL_SUM, WL_AUTO, 0, none), "small");
    check(reduce(comm, in, out, kCount, WL_F16, WL_AVG, 5, 0, none), "reduce");
    check(scatter(comm, in, out, 20, WL_F16, 1, 0, none), "scatter");
    check(gather(comm, in, out, 20, WL_F16, 2, 0, none), "gather");
    check(callAllGatherV(comm, in, 2, out, 2 * n, counts.data(), WL_F16, 0, none), "all-gather-v");
    check(callReduceScatterV(comm, in, 2 * n, out, 2, counts.data(), WL_F16, WL_SUM, 0, none),
          "reduce-scatter-v");
    wl_window_t* window = nullptr;
    check(wl_window_create(comm, 4096, 0, &window, none), "window");
    wl_window_free(window);
    wl_comm_t* child = nullptr;
    check(wl_comm_split(comm, rank % 7, 0, 0, &child, none), "split");
    wl_comm_free(child);
  });
  EXPECT_EQ(0u, wrong);
}

TEST_F(SmallStack, IsEnoughForTheRings) {
  constexpr int kRing = 64;
  std::vector<std::vector<float>> memory(2 * kRing, std::vector<float>(20'000, 1.0f));
  LocalRanks ranks(kRing, 60'000 * kMs);
  std::atomic<int> wrong{0};
  runOnSmallStacks(kRing, [&](int rank) {
    const auto own = static_cast<size_t>(rank);
    for (const int algorithm : {WL_RING, WL_BIDIRECTIONAL_RING}) {
      wrong += allReduce(ranks.comms[own], memory[own].data(), memory[own + kRing].data(),
                             20'000, WL_F32, WL_AVG, algorithm, 0, nullptr);
      wrong += memory[own + kRing][19'999] == 1.0f ? 0 : 1;
    }
  });
  EXPECT_EQ(0, wrong);
}

TEST_F(SmallStack, IsEnoughForTensorsOfAnyStridesAndForAFailure) {
  const int64_t shape[] = {70, 90, 3};
  const int64_t packed[] = {270, 3, 1};
  const int64_t turned[] = {1, 70, 6300};
  std::vector<float> a(70 * 90 * 3, 1.0f), b(a);
  std::vector<uint16_t> c(a.size());
  const auto tensor = [&](int32_t dtype, void* data, const int64_t* strides) {
    wl_tensor_t made = {};
    made.struct_size = sizeof made;
    made.dtype = dtype;
    made.ndim = 3;
    made.data = data;
    made.shape = shape;
    made.strides = strides;
    return made;
  };
  const wl_tensor_t source = tensor(WL_F32, a.data(), packed);
  const wl_tensor_t other = tensor(WL_F32, b.data(), turned);
  const wl_tensor_t narrow = tensor(WL_F16, c.data(), turned);
  const std::vector<const wl_tensor_t*> terms(WL_MAX_RANKS, &source);
  const std::vector<const wl_tensor_t*> few(3, &other);
  LocalRanks ranks(2, 50 * kMs);
  int codes[7] = {};
  runOnSmallStacks(1, [&](int) {
    codes[0] = wl_tensor_copy(&narrow, &source, nullptr);
    codes[1] = wl_tensor_copy(&source, &narrow, nullptr);
    codes[2] = wl_tensor_copy(&other, &source, nullptr);
    codes[3] = wl_tensor_fold(&other, terms.data(), 3, WL_AVG, nullptr);
    uint64_t hash = 0;
    codes[4] = wl_tensor_hash(terms.data(), WL_MAX_RANKS, WL_AVG, WL_BF16, WL_F32, 0, &hash,
                              nullptr);
    codes[5] = wl_tensor_hash(few.data(), 1, WL_SUM, WL_F16, WL_F32, 0, &hash, nullptr);
    codes[6] = wl_tensor_fold(&other, terms.data(), WL_MAX_RANKS, WL_MAX, nullptr);
    EXPECT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(ranks.comms[0], 0, nullptr));
  });
  for (const int code : codes) EXPECT_EQ(WL_OK, code);
}

}  // namespace small_stack_test
}  // namespace windlass_test
