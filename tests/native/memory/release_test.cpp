// SPDX-License-Identifier: Apache-2.0
// When memory goes back to the system: after a failure, and with its group.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

namespace windlass_test {
namespace release_test {

bool isMapped(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    uintptr_t start = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &start, &end) == 2 && at >= start && at < end)
      return true;
  }
  return false;
}

sem_t stopped;
sem_t resume;

void stopHere(int) {
  sem_post(&stopped);
  while (sem_wait(&resume) != 0) {
  }
}

// Ranks of a barrier to which rank 2 never comes. Rank 1 is stopped in its wait while rank 0 gets
// its DeadlineExceeded and all windows are freed.
class Retired : public testing::Test {
 protected:
  void SetUp() override {
    sem_init(&stopped, 0, 0);
    sem_init(&resume, 0, 0);
    struct sigaction action = {};
    action.sa_handler = stopHere;
    sigaction(SIGUSR2, &action, nullptr);
    ranks_.run([&](int rank, wl_comm_t* comm) {
      Error error;
      ASSERT_EQ(WL_OK, wl_window_create(comm, uint64_t{256} << 20, 0, &windows_[rank], &error))
          << error.message;
    });
    address_ = wl_window_address(windows_[0], 0);
    slow_ = std::thread([&] {
      Error error;
      slowCode_ = callBarrier(ranks_.comms[1], 0, &error);
    });
    awaitInside(ranks_.comms[0], 1, WL_OP_BARRIER);
    pthread_kill(slow_.native_handle(), SIGUSR2);
    sem_wait(&stopped);
    Error error;
    ASSERT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(ranks_.comms[0], 50 * kMs, &error))
        << error.message;
    for (wl_window_t* window : windows_) wl_window_free(window);
  }
  void TearDown() override { signal(SIGUSR2, SIG_DFL); }
  void letGo() {
    sem_post(&resume);
    slow_.join();
    EXPECT_EQ(WL_DEADLINE_EXCEEDED, slowCode_);
  }

  LocalRanks ranks_{3};
  wl_window_t* windows_[3] = {};
  void* address_ = nullptr;
  std::thread slow_;
  int slowCode_ = WL_OK;
};

TEST_F(Retired, StaysWhileARankIsInACallAndGoesWithTheLastOneOut) {
  EXPECT_TRUE(isMapped(address_)) << "rank 1 may still touch it";
  letGo();
  EXPECT_FALSE(isMapped(address_)) << "though no rank has closed";
}

TEST_F(Retired, StaysWhenPeersCloseAndGoesWithTheLastOneOut) {
  Error error;
  EXPECT_EQ(WL_OK, wl_comm_close(ranks_.comms[0], &error));
  EXPECT_EQ(WL_OK, wl_comm_close(ranks_.comms[2], &error));
  EXPECT_TRUE(isMapped(address_)) << "rank 1 may still touch it";
  letGo();
  EXPECT_FALSE(isMapped(address_));
}

// ---- groups that come and go --------------------------------------------------------------------

struct Footprint {
  int64_t addressSpace;
  int64_t resident;

  static Footprint now() {
    std::ifstream file("/proc/self/statm");
    Footprint footprint = {};
    file >> footprint.addressSpace >> footprint.resident;
    const int64_t page = sysconf(_SC_PAGESIZE);
    return {footprint.addressSpace * page, footprint.resident * page};
  }
};

// Makes groups, closes those made before the last few, and keeps a small block for each, as a
// program does that does anything else meanwhile.
void churn(int groups, std::vector<std::unique_ptr<char[]>>* kept) {
  std::vector<std::unique_ptr<LocalRanks>> alive(16);
  std::mt19937_64 random(seed());
  std::vector<float> value(4096, 1.0f);
  for (int i = 0; i < groups; ++i) {
    const int ranks = static_cast<int>(4 + random() % 24);
    auto made = std::make_unique<LocalRanks>(ranks, 20'000 * kMs, 1, 2);
    Error error;
    // The root of a small broadcast writes its stage, and waits for nobody.
    ASSERT_EQ(WL_OK, broadcast(made->comms[0], value.data(), value.data(), value.size(), WL_F32,
                                  0, WL_AUTO, 0, &error))
        << error.message;
    kept->push_back(std::make_unique<char[]>(200 + random() % 2000));
    alive[random() % alive.size()] = std::move(made);
  }
}

TEST(Groups, ComeAndGoByTheThousandAndLeaveMemoryAndAddressSpaceAsTheyWere) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's allocator keeps what is freed";
#endif
  std::vector<std::unique_ptr<char[]>> kept;
  kept.reserve(5000);
  const Footprint before = Footprint::now();
  churn(4000, &kept);
  const Footprint after = Footprint::now();
  constexpr int64_t kMiB = int64_t{1} << 20;
  EXPECT_LE(after.resident - before.resident, 10 * kMiB);
  EXPECT_LE(after.addressSpace - before.addressSpace, 32 * kMiB);
}

}  // namespace release_test
}  // namespace windlass_test
