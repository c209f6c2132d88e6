// SPDX-License-Identifier: Apache-2.0
// Kernels of libraries: what they move, how their waits end, which arguments are refused; and files
// that are no such library.
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "tests/native/collective_calls.h"
#include "tests/native/core/crew.h"
#include "tests/native/core/launches.h"

namespace windlass_test {
namespace launch_test {

bool hasGpus() { return std::strcmp(wl_target(), "cuda") == 0; }
const char* otherTarget() { return isChecked() ? "sim" : "a5sim"; }

std::vector<int> launchRanks() {
  return few() ? std::vector<int>{1, 2, 3} : std::vector<int>{1, 2, 3, 4, 7};
}

TEST(Launch, ShiftsWhatRanksHold) {
  for (const int n : launchRanks()) {
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{33}, int64_t{70'001}}) {
      LocalRanks ranks(n);
      const auto bytes = static_cast<uint64_t>(count) * 4;
      Windows windows(ranks, bytes + 64, 0);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<float> in(static_cast<size_t>(count));
        std::iota(in.begin(), in.end(), 1000.0f * static_cast<float>(rank));
        auto* out = reinterpret_cast<float*>(windows.at(rank, 64));
        for (int32_t steps = 0; steps < n + 2; ++steps) {
          Words words;
          words.tensor(WL_F32, in.data(), {count})
              .tensor(WL_F32, out, {count}, windows.handle(rank))
              .scalar(WL_I32, steps);
          Error error;
          ASSERT_EQ(WL_OK, words.launch(comm, "shift", &error)) << error.message;
          const int from = (rank + n * 2 - steps) % n;
          for (int64_t i = 0; i < count; ++i) {
            ASSERT_EQ(1000.0f * static_cast<float>(from) + static_cast<float>(i), out[i])
                << i << " of rank " << rank << ", " << steps << " steps";
          }
        }
      });
    }
  }
}

TEST(Launch, RunsPhasesInTheOrderThatTheyNeed) {
  for (const int n : launchRanks()) {
    for (const int64_t count : {int64_t{0}, int64_t{5}, int64_t{999}}) {
      LocalRanks ranks(n);
      const auto part = static_cast<uint64_t>(count) * 2;
      Windows windows(ranks, part * static_cast<uint64_t>(n), 0);
      ranks.run([&](int rank, wl_comm_t* comm) {
        auto* out = reinterpret_cast<uint16_t*>(windows.at(rank, 0));
        for (uint32_t round = 0; round < 4; ++round) {
          std::vector<uint16_t> in;
          for (int64_t i = 0; i < count; ++i) {
            in.push_back(static_cast<uint16_t>(
                stamp(round, static_cast<uint32_t>(rank), 0, static_cast<uint64_t>(i))));
          }
          Words words;
          words.tensor(WL_BF16, in.data(), {count})
              .tensor(WL_BF16, out, {n, count}, windows.handle(rank));
          Error error;
          ASSERT_EQ(WL_OK, words.launch(comm, "ring_gather", &error)) << error.message;
          for (int64_t i = 0; i < n * count; ++i) {
            ASSERT_EQ(static_cast<uint16_t>(stamp(round, static_cast<uint32_t>(i / count), 0,
                                                  static_cast<uint64_t>(i % count))),
                      out[i])
                << i << " of rank " << rank << ", round " << round;
          }
          ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
        }
      });
    }
  }
}

TEST(Launch, HasTheInstructionsOfAllTargets) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    for (const int64_t count : {int64_t{1}, int64_t{100}, int64_t{1024}}) {
      std::vector<float> in(static_cast<size_t>(count));
      std::vector<float> out(in.size(), -1);
      for (size_t i = 0; i < in.size(); ++i) in[i] = 0.37f * static_cast<float>(i) - 50 * rank;
      Words words;
      words.tensor(WL_F32, in.data(), {count}).tensor(WL_F32, out.data(), {count});
      Error error;
      ASSERT_EQ(WL_OK, words.launch(comm, "vocabulary", &error)) << error.message;
      for (size_t i = 0; i < in.size(); ++i) {
        // Whole numbers below 2^11, which f16 holds.
        ASSERT_EQ(std::floor(((in[i] + 1) * 2 - in[i]) / 4 + 3), out[i]) << i;
      }
    }
  });
}

// The kernels that the pages on kernels show, on 0, 1, one tile, one more, and many elements.
TEST(Launch, RunsTheKernelsOfThePage) {
  for (const int n : launchRanks()) {
    for (const int64_t count : {0, 1, 4096, 4097, 10'000}) {
      LocalRanks ranks(n);
      const auto bytes = static_cast<uint64_t>(count) * 4;
      Windows windows(ranks, 3 * bytes + 64, 0);
      ranks.run([&](int rank, wl_comm_t* comm) {
        std::vector<float> in(static_cast<size_t>(count));
        std::iota(in.begin(), in.end(), 100'000.0f * static_cast<float>(rank));
        const auto* doubled = reinterpret_cast<const float*>(windows.at(rank, 0));
        const auto* steps = reinterpret_cast<const float*>(windows.at(rank, bytes));
        Error error;
        Words first;
        first.tensor(WL_F32, in.data(), {count})
            .tensor(WL_F32, doubled, {count}, windows.handle(rank));
        ASSERT_EQ(WL_OK, first.launch(comm, "doubled_shift", &error, 0, library("page_kernels")))
            << error.message;
        Words second;
        second.tensor(WL_F32, in.data(), {count})
            .tensor(WL_F32, steps, {2 * count}, windows.handle(rank));
        ASSERT_EQ(WL_OK, second.launch(comm, "two_steps", &error, 0, library("page_kernels")))
            << error.message;
        const auto left = static_cast<float>((rank + n - 1) % n);
        const auto next = static_cast<float>((rank + 2 * n - 2) % n);
        for (int64_t i = 0; i < count; ++i) {
          const auto at = static_cast<float>(i);
          ASSERT_EQ(2 * (100'000.0f * left + at), doubled[i]) << i << " of rank " << rank;
          ASSERT_EQ(100'000.0f * left + at, steps[i]) << i << " of rank " << rank;
          ASSERT_EQ(100'000.0f * next + at, steps[count + i]) << i << " of rank " << rank;
        }
      });
    }
  }
}

TEST(Launch, GivesScalarsOfEachDType) {
  LocalRanks ranks(2);
  ranks.run([&](int, wl_comm_t* comm) {
    const std::vector<int32_t> in(1200, 7);
    std::vector<int32_t> out(1200);
    Words words;
    words.tensor(WL_I32, in.data(), {30, 40}, nullptr, true).tensor(WL_I32, out.data(), {30, 40});
    words.scalar(WL_I32, int32_t{-3}).scalar(WL_I64, int64_t{1 << 10});
    words.scalar(WL_F32, 11.0f).scalar(WL_F64, -22.0);
    Error error;
    ASSERT_EQ(WL_OK, words.launch(comm, "scalars", &error)) << error.message;
    for (int32_t i = 0; i < 1200; ++i) ASSERT_EQ(i < 1010 ? 7 : 0, out[static_cast<size_t>(i)]);
  });
}

// A launch of shift that rank 1 of 2 spoils.
void expectRefused(const std::string& what,
                   const std::function<void(Words& words, wl_window_t* window, float* out)>& spoil,
                   const std::string& name = "shift") {
  LocalRanks ranks(2);
  Windows windows(ranks, 4096, 0);
  ranks.run([&](int rank, wl_comm_t* comm) {
    if (rank != 1) return;
    Words words;
    spoil(words, windows.handle(1), reinterpret_cast<float*>(windows.at(1, 64)));
    Error error;
    EXPECT_EQ(WL_INVALID_ARGUMENT, words.launch(comm, name, &error));
    EXPECT_TRUE(contains(error.message, "launch of " + name + " on rank 1: "));
    EXPECT_TRUE(contains(error.message, what));
    EXPECT_EQ(WL_OK, wl_comm_status(comm, &error)) << "nothing was sent";
  });
}

TEST(LaunchArguments, AreHeldAgainstTheTable) {
  float in[8] = {};
  using Window = wl_window_t*;
  expectRefused("it is given 0 arguments, and takes 3: shift(f32 in, distributed written f32 out, "
                "scalar i32 steps)",
                [&](Words&, Window, float*) {});
  expectRefused("it is given 2 arguments, and takes 3", [&](Words& words, Window w, float* out) {
    words.tensor(WL_F32, in, {8}).tensor(WL_F32, out, {8}, w);
  });
  expectRefused("it is given 4 arguments, and takes 3", [&](Words& words, Window w, float* out) {
    words.tensor(WL_F32, in, {8}).tensor(WL_F32, out, {8}, w);
    words.scalar(WL_I32, 1).tensor(WL_F32, in, {8});
  });
  expectRefused("argument 0, in, is i32, and must be f32", [&](Words& words, Window, float*) {
    words.tensor(WL_I32, in, {8});
  });
  expectRefused("argument 0, in, is a scalar, and must be a tensor",
                [&](Words& words, Window, float*) { words.scalar(WL_I32, 1); });
  expectRefused("argument 2, steps, is a tensor, and must be a scalar i32",
                [&](Words& words, Window w, float* out) {
                  words.tensor(WL_F32, in, {8}).tensor(WL_F32, out, {8}, w).tensor(WL_I32, in, {1});
                });
  expectRefused("argument 2, steps, is i64, and must be i32",
                [&](Words& words, Window w, float* out) {
                  words.tensor(WL_F32, in, {8}).tensor(WL_F32, out, {8}, w);
                  words.scalar(WL_I64, int64_t{1});
                });
  expectRefused("argument 1, out, is memory that only this rank reaches; it must lie in a window",
                [&](Words& words, Window, float* out) {
                  words.tensor(WL_F32, in, {8}).tensor(WL_F32, out, {8});
                });
  expectRefused("argument 1, out, has 7 elements, and must have as many as in has: 8",
                [&](Words& words, Window w, float* out) {
                  words.tensor(WL_F32, in, {8}).tensor(WL_F32, out, {7}, w);
                });
  expectRefused("argument 1, out, reaches outside this rank's part of its window",
                [&](Words& words, Window w, float* out) {
                  words.tensor(WL_F32, in, {8}).tensor(WL_F32, out + 1006, {8}, w);
                });
  expectRefused("argument 1, out, is read-only, and the kernel writes it",
                [&](Words& words, Window w, float* out) {
                  words.tensor(WL_F32, in, {8}).tensor(WL_F32, out, {8}, w, true);
                });
  expectRefused("argument 0, in, is not contiguous", [&](Words& words, Window, float*) {
    words.add({WL_ARGUMENT_TENSOR, WL_F32, reinterpret_cast<int64_t>(in), 0, 0, 2, 2, 2, 1, 2});
  });
  expectRefused("argument 0, in, can't be: it is NULL", [&](Words& words, Window, float*) {
    words.tensor(WL_F32, nullptr, {8});
  });
  expectRefused("argument 0, in, can't be: it is not aligned", [&](Words& words, Window, float*) {
    words.tensor(WL_F32, reinterpret_cast<char*>(in) + 1, {7});
  });
  expectRefused("argument 0, in, has size -1", [&](Words& words, Window, float*) {
    words.tensor(WL_F32, in, {-1});
  });
  expectRefused("argument 0, in, has more than 2^64 elements", [&](Words& words, Window, float*) {
    words.tensor(WL_F32, in, {int64_t{1} << 40, int64_t{1} << 40});
  });
  expectRefused("argument 0, in, can't be: count", [&](Words& words, Window, float*) {
    words.tensor(WL_F32, in, {int64_t{1} << 61});
  });
  expectRefused("argument 0, in, is cut short", [&](Words& words, Window, float*) {
    words.tensor(WL_F32, in, {8}).drop();
  });
  expectRefused("argument 0, in, is cut short", [&](Words& words, Window, float*) {
    words.tensor(WL_F32, in, {8}).at(5) = 17;
  });
  expectRefused("argument 0, in, is of an unknown kind", [&](Words& words, Window, float*) {
    words.tensor(WL_F32, in, {8}).at(0) = 2;
  });
  expectRefused("argument 0, in, has an unknown dtype", [&](Words& words, Window, float*) {
    words.tensor(99, in, {8});
  });
  expectRefused("the kernel refuses it: steps is negative",
                [&](Words& words, Window w, float* out) {
                  words.tensor(WL_F32, in, {8}).tensor(WL_F32, out, {8}, w).scalar(WL_I32, -1);
                });
  const auto gather = [&](int dtype, int64_t count) {
    return [=, &in](Words& words, Window w, float* out) {
      words.tensor(WL_F32, in, {8}).tensor(dtype, out, {count}, w);
    };
  };
  expectRefused("argument 1, out, is i32, and in is f32; they must agree", gather(WL_I32, 16),
                "ring_gather");
  expectRefused("argument 1, out, has 8 elements, and must have for each rank as many as in has: 8 "
                "each",
                gather(WL_F32, 8), "ring_gather");
  expectRefused("argument 0, in, has 1 dimensions, and must have 2",
                [&](Words& words, Window, float*) { words.tensor(WL_F32, in, {8}); }, "scalars");
  const auto lost = [](int32_t what) {
    return [=](Words& words, Window, float* out) {
      words.tensor(WL_F32, out, {300}).scalar(WL_I32, what);
    };
  };
  expectRefused("the kernel has 1000 phases; it may have 254", lost(0), "lost");
  expectRefused("block 0 of phase 0 needs rank 2; ranks are 0 to 1", lost(1), "lost");
  expectRefused("it leaves after rank 2; ranks are 0 to 1", lost(2), "lost");
  // It sees the launch that would run, which has bytes.
  expectRefused("the kernel has 1200 phases; it may have 254", lost(3), "lost");
  expectRefused("block 0 of phase 0 needs rank 2; ranks are 0 to 1", lost(4), "lost");
  expectRefused("the kernel has 4294967295 blocks in each of 1 phases; a rank may have 1048576 "
                "items in all", lost(5), "lost");
  expectRefused("the kernel has 524289 blocks in each of 2 phases", lost(6), "lost");
  expectRefused("its plan changes what the launch is given", lost(7), "lost");
}

// A kernel that uses an argument in a forbidden way ends its own launch and no other.
TEST(LaunchArguments, AreHeldAgainstTheirUse) {
  const char* const texts[] = {
      "its code takes argument 3, and the last is 2: misused(f32 in, written f32 out, scalar i32 "
      "what)",
      "its code takes argument 4294967295, and the last is 2",
      "its code takes argument 2, what, for another type, of 8 bytes",
      "its code takes argument 0, in, for another type, of 4 bytes",
      "its code takes argument 0, in, for a scalar",
      "its code takes argument 2, what, for a tensor",
      "TASSIGN places a tile at byte 1073741824; it takes a multiple of 32, and this tile fits up ",
      "a tile is made of 1 valid rows and 2000 valid columns",
      nullptr,
  };
  for (int32_t what = 0; what < static_cast<int32_t>(std::size(texts)); ++what) {
    LocalRanks ranks(2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      const std::vector<float> in(8, 1.0f);
      std::vector<float> out(8, 0.0f);
      Words words;
      words.tensor(WL_F32, in.data(), {8}).tensor(WL_F32, out.data(), {8}).scalar(WL_I32, what);
      Error error;
      const int code = words.launch(comm, "misused", &error);
      if (texts[what] == nullptr) {
        EXPECT_EQ(WL_OK, code) << error.message;
      } else if (isChecked() && !hasGpus() && what >= 6) {
        EXPECT_EQ(WL_DEVICE, code) << error.message;
      } else {
        EXPECT_EQ(WL_INVALID_ARGUMENT, code);
        EXPECT_TRUE(contains(error.message,
                             "launch of misused on rank " + std::to_string(rank) + ": its code "));
        EXPECT_TRUE(contains(error.message, texts[what]));
        EXPECT_EQ(WL_OK, wl_comm_status(comm, &error)) << "others go on";
      }
    });
  }
}

TEST(LaunchArguments, OfAWindowOfAnotherCommunicatorAreRefused) {
  LocalRanks others(2);
  Windows windows(others, 4096, 0);
  if (!others.isOwn(1)) return;
  const float in[8] = {};
  expectRefused("argument 1, out, lies in a window of another communicator",
                [&](Words& words, wl_window_t*, float*) {
                  words.tensor(WL_F32, in, {8});
                  words.tensor(WL_F32, windows.at(1, 0), {8}, windows.handle(1));
                });
}

// Ranks 0 and 1 launch each its own.
void expectMismatch(const std::vector<std::string>& what,
                    const std::function<int(int rank, wl_comm_t*, Windows&, Error*)>& call) {
  LocalRanks ranks(2);
  Windows windows(ranks, 4096, 0);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    EXPECT_EQ(WL_MISMATCH, call(rank, comm, windows, &error)) << error.message;
    for (const std::string& part : what) EXPECT_TRUE(contains(error.message, part));
    EXPECT_EQ(0.0f, *reinterpret_cast<float*>(windows.at(rank, 0))) << "nothing has moved";
  });
}

int shift(wl_comm_t* comm, Windows& windows, int rank, int64_t count, uint64_t offset,
          int32_t steps, Error* error) {
  static const std::vector<float> in(64, 1.0f);
  Words words;
  words.tensor(WL_F32, in.data(), {count})
      .tensor(WL_F32, windows.at(rank, offset), {count}, windows.handle(rank))
      .scalar(WL_I32, steps);
  return words.launch(comm, "shift", error);
}

TEST(Launch, TellsRanksThatDisagree) {
  expectMismatch({"rank 0 calls launch of shift", "rank 1 calls launch of shift",
                  "; argument 2, steps, is ", "1 on rank 0", "3 on rank 1"},
                 [](int rank, wl_comm_t* comm, Windows& windows, Error* error) {
                   return shift(comm, windows, rank, 8, 0, 1 + 2 * rank, error);
                 });
  expectMismatch({"argument 0, in, is ", "f32[8] on rank 0", "f32[9] on rank 1"},
                 [](int rank, wl_comm_t* comm, Windows& windows, Error* error) {
                   return shift(comm, windows, rank, 8 + rank, 0, 1, error);
                 });
  expectMismatch({"argument 1, out, lies at byte ", "byte 0 ", "byte 64 ", " of its window on "},
                 [](int rank, wl_comm_t* comm, Windows& windows, Error* error) {
                   return shift(comm, windows, rank, 8, rank == 0 ? 0 : 64, 1, error);
                 });
  expectMismatch({"rank 0 calls launch of shift", "rank 1 calls launch of scalars",
                  "; every rank launches one kernel, of one library"},
                 [](int rank, wl_comm_t* comm, Windows& windows, Error* error) {
                   if (rank == 0) return shift(comm, windows, 0, 8, 0, 1, error);
                   int32_t memory[2] = {};
                   Words words;
                   words.tensor(WL_I32, memory, {1, 1}).tensor(WL_I32, memory + 1, {1, 1});
                   words.scalar(WL_I32, 0).scalar(WL_I64, int64_t{1});
                   words.scalar(WL_F32, 0.0f).scalar(WL_F64, 0.0);
                   return words.launch(comm, "scalars", error);
                 });
  expectMismatch({"rank 0 calls launch of shift", "rank 1 calls barrier"},
                 [](int rank, wl_comm_t* comm, Windows& windows, Error* error) {
                   return rank == 0 ? shift(comm, windows, 0, 8, 0, 1, error)
                                    : callBarrier(comm, 0, error);
                 });
}

// All ranks wait for an item of rank 1, which lasts until `end` has ended them.
void holdUp(int64_t deadlineNs, int code, const std::string& what,
            const std::function<void(wl_comm_t*)>& end) {
  const Shared<std::atomic<int>> over;
  LocalRanks ranks(3);
  Windows windows(ranks, 64, 0);
  ranks.run([&](int rank, wl_comm_t* comm) {
    auto* own = reinterpret_cast<int32_t*>(windows.at(rank, 0));
    Words words;
    words.tensor(WL_I32, own, {1}, windows.handle(rank)).scalar(WL_I32, 1);
    Error error;
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    std::thread ending;
    if (rank == 0) {
      ending = std::thread([&] {
        awaitInside(comm, 1, WL_OP_LAUNCH);
        end(comm);
      });
    }
    const int got = words.launch(comm, "gate", &error, deadlineNs);
    if (rank != 1) {
      EXPECT_EQ(code, got) << error.message;
      EXPECT_TRUE(contains(error.message, what));
      ++*over;
      auto* gate = static_cast<int32_t*>(wl_window_address(windows.handle(rank), 1));
      if (await([&] { return *over == 2; })) __atomic_fetch_add(gate, 2, __ATOMIC_ACQ_REL);
    }
    if (ending.joinable()) ending.join();
    EXPECT_NE(WL_OK, wl_comm_status(comm, nullptr));
  });
}

TEST(Launch, EndsAtTheDeadlineAndNamesWhomAKernelWaitsFor) {
  // On targets that see looks at signals, the error names the phase that waits.
  if (isChecked()) {
    holdUp(400 * kMs, WL_DEVICE,
           "phase-waits: kernel gate, rank 1, block 0, instruction 2 of phase 0, TTEST: ",
           [](wl_comm_t*) {});
  } else {
    holdUp(200 * kMs, WL_DEADLINE_EXCEEDED, "in launch of gate", [](wl_comm_t*) {});
  }
}

TEST(Launch, EndsWithAnAbort) {
  holdUp(0, WL_ABORTED, "no more of it", [](wl_comm_t* comm) {
    EXPECT_EQ(WL_OK, wl_comm_abort(comm, "no more of it", nullptr));
  });
}

// Once the kernel of rank 1 runs, of which each of the others waits for what never comes.
TEST(LaunchFaults, AKillInsideAKernelNamesItsRank) {
  const Crew crew = {3, 1};
  Muster muster(crew, 60'000 * kMs);
  muster.run(
      [&](Mate& mate) {
        wl_window_t* window = nullptr;
        Error error;
        EXPECT_OF_MATE(mate, wl_window_create(mate.comm, 64, 0, &window, &error) == WL_OK);
        std::thread looking;
        if (mate.rank == 0) {
          const auto* gate = static_cast<const int32_t*>(wl_window_address(window, 1));
          looking = std::thread([gate, &mate] {
            const auto runs = [gate] { return __atomic_load_n(gate, __ATOMIC_ACQUIRE) > 0; };
            EXPECT_OF_MATE(mate, await(runs));
            mate.board.at[0] = 1;
          });
        }
        Words words;
        words.tensor(WL_I32, wl_window_address(window, mate.rank), {1}, window).scalar(WL_I32, 1);
        EXPECT_OF_MATE(mate, words.launch(mate.comm, "gate", &error) == WL_PEER_LOST);
        EXPECT_OF_MATE(mate, error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
        EXPECT_OF_MATE(mate, contains(error.message, "rank 1"));
        if (looking.joinable()) looking.join();
        wl_window_free(window);
      },
      [&] {
        EXPECT_TRUE(await([&] { return muster.board().at[0] == 1; }));
        kill(muster.pid(1), SIGKILL);
      });
  EXPECT_EQ(0, muster.board().wrong);
  EXPECT_EQ(muster.ends, (std::vector<int>{0, -SIGKILL, 0}));
}

// A copy of a library, as a file of its own.
class File {
 public:
  explicit File(const std::string& from) : bytes_(read(from)) {
    static std::atomic<int> number{0};
    path_ = testing::TempDir() + "windlass-launch-" + std::to_string(getpid()) + "-" +
            std::to_string(++number) + ".so";
  }
  ~File() { std::remove(path_.c_str()); }
  File(const File&) = delete;

  std::string& bytes() { return bytes_; }
  const std::string& path() const { return path_; }
  Elf64_Ehdr& header() { return *reinterpret_cast<Elf64_Ehdr*>(bytes_.data()); }
  // Symbol that the library exports. nullptr: no symbol of that name.
  Elf64_Sym* symbol(const std::string& name) {
    const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes_.data() + header().e_shoff);
    for (int i = 0; i < header().e_shnum; ++i) {
      if (sections[i].sh_type != SHT_DYNSYM) continue;
      const char* names = bytes_.data() + sections[sections[i].sh_link].sh_offset;
      auto* symbols = reinterpret_cast<Elf64_Sym*>(bytes_.data() + sections[i].sh_offset);
      for (size_t s = 0; s < sections[i].sh_size / sizeof *symbols; ++s)
        if (name == names + symbols[s].st_name) return &symbols[s];
    }
    return nullptr;
  }
  size_t segmentsEnd() {
    auto* segments = reinterpret_cast<const Elf64_Phdr*>(bytes_.data() + header().e_phoff);
    size_t end = 0;
    for (uint32_t i = 0; i < header().e_phnum; ++i)
      end = std::max<size_t>(end, segments[i].p_offset + segments[i].p_filesz);
    return end;
  }

  // End of the loaded part, from the start of the library.
  uint64_t memoryEnd() {
    auto* segments = reinterpret_cast<const Elf64_Phdr*>(bytes_.data() + header().e_phoff);
    uint64_t end = 0;
    for (int i = 0; i < header().e_phnum; ++i)
      if (segments[i].p_type == PT_LOAD)
        end = std::max<uint64_t>(end, segments[i].p_vaddr + segments[i].p_memsz);
    return end;
  }

  void expectRefused(int code, const std::string& what) {
    write();
    wl_kernel_library_t* loaded = nullptr;
    Error error;
    EXPECT_EQ(code, wl_kernel_library_load(path_.c_str(), wl_target(), &loaded, &error)) << what;
    EXPECT_EQ(nullptr, loaded);
    EXPECT_TRUE(contains(error.message, path_));
    EXPECT_TRUE(contains(error.message, what));
  }
  // Another file of that name: what is mapped of the last one stays.
  void write() {
    std::remove(path_.c_str());
    std::ofstream(path_, std::ios::binary) << bytes_;
  }

 private:
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string bytes_;
  std::string path_;
};

TEST(KernelLibrary, IsLoadedOnce) {
  EXPECT_EQ(library(), library());
  EXPECT_EQ(7, wl_kernel_count(library()));
  EXPECT_STREQ("ring_gather(any in, distributed written any out)",
               wl_kernel_signature(library(), kernel("ring_gather")));
  EXPECT_EQ(nullptr, wl_kernel_name(library(), 7));
  EXPECT_EQ(nullptr, wl_kernel_signature(library(), -1));
}

// A service that builds its kernels at run time loads many, each under its own name.
TEST(KernelLibrary, ComesOneAfterTheOther) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("windlass-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  for (int i = 0; i < 100; ++i) {
    const std::string copy = folder / ("kernels-" + std::to_string(i) + ".so");
    std::filesystem::copy_file(fileOf("test_kernels"), copy);
    wl_kernel_library_t* loaded = nullptr;
    Error error;
    EXPECT_EQ(WL_OK, wl_kernel_library_load(copy.c_str(), wl_target(), &loaded, &error))
        << "library " << i << ": " << error.message;
    std::filesystem::remove(copy);
    if (loaded == nullptr) break;
  }
  std::filesystem::remove_all(folder);
}

TEST(KernelLibrary, OfAFileThatIsNoneIsRefused) {
  wl_kernel_library_t* loaded = nullptr;
  Error error;
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            wl_kernel_library_load("/nowhere/x.so", wl_target(), &loaded, &error));
  EXPECT_TRUE(contains(error.message, "/nowhere/x.so: No such file"));
  const std::string pipe = testing::TempDir() + "windlass-launch-pipe-" + std::to_string(getpid());
  ASSERT_EQ(0, mkfifo(pipe.c_str(), 0600));
  EXPECT_EQ(WL_INVALID_ARGUMENT,
            wl_kernel_library_load(pipe.c_str(), wl_target(), &loaded, &error));
  EXPECT_TRUE(contains(error.message, "is no shared library"));
  std::remove(pipe.c_str());
  EXPECT_EQ(WL_RESOURCE, wl_kernel_library_load("/tmp", wl_target(), &loaded, &error));
  EXPECT_TRUE(contains(error.message, "/tmp"));

  File file(fileOf("test_kernels"));
  const std::string whole = file.bytes();
  const size_t segmentsEnd = file.segmentsEnd();
  file.bytes() = "#!/bin/sh\n";
  file.expectRefused(WL_INVALID_ARGUMENT, "is no shared library");
  file.bytes() = "";
  file.expectRefused(WL_INVALID_ARGUMENT, "is no shared library");
  // Nothing loads the part after the last segment, such as symbols for a debugger.
  for (const size_t length : {size_t{64}, size_t{200}, segmentsEnd - 1}) {
    file.bytes() = whole.substr(0, length);
    file.expectRefused(WL_INVALID_ARGUMENT, "is cut short");
  }
  file.bytes() = whole;
  file.header().e_machine = EM_RISCV;
  file.expectRefused(WL_UNSUPPORTED, "is built for RISC-V, and this machine is ");
  file.bytes() = whole;
  file.header().e_ident[EI_CLASS] = ELFCLASS32;
  file.expectRefused(WL_UNSUPPORTED, "is built for ");
  file.bytes() = whole;
  file.header().e_type = ET_REL;
  file.expectRefused(WL_INVALID_ARGUMENT, "is no shared library");
  file.bytes() = whole;
  file.header().e_phnum = 0;
  file.expectRefused(WL_INVALID_ARGUMENT, "is no shared library");

  const std::string symbol = "windlass_kernel_table";
  file.bytes() = whole;
  for (size_t at = 0; (at = file.bytes().find(symbol, at)) != std::string::npos; ++at)
    file.bytes().replace(at, symbol.size(), "windlass_other_table_");
  file.expectRefused(WL_INVALID_ARGUMENT, "no symbol windlass_kernel_table");
}

TEST(KernelLibrary, WhoseTableLiesElsewhereIsRefused) {
  const std::string symbol = "windlass_kernel_table";
  // A process does not load a name again that it has loaded.
  for (const char* where : {"behind all that is loaded", "in part behind it", "between words"}) {
    File file(fileOf("test_kernels"));
    ASSERT_NE(nullptr, file.symbol(symbol));
    uint64_t& place = file.symbol(symbol)->st_value;
    const std::string given = where;
    if (given == "behind all that is loaded") place += uint64_t{1} << 40;
    if (given == "in part behind it") place = file.memoryEnd() / 8 * 8 - 8;
    if (given == "between words") ++place;
    file.expectRefused(WL_INVALID_ARGUMENT, "no symbol windlass_kernel_table");
  }
}

TEST(KernelLibrary, OfAnotherTargetIsRefused) {
  wl_kernel_library_t* loaded = nullptr;
  Error error;
  const std::string own = std::string("it is built for target ") + wl_target();
  EXPECT_EQ(WL_UNSUPPORTED, wl_kernel_library_load(fileOf("test_kernels").c_str(), otherTarget(),
                                                   &loaded, &error));
  EXPECT_TRUE(contains(error.message, own + ", and was to be for " + otherTarget()));
}

TEST(KernelLibrary, WithABrokenTableIsRefused) {
  const char* const image = hasGpus() ? "it has no whole file of kernels for GPUs"
                                      : "it has kernels for GPUs, and its target has none";
  const struct {
    int code;
    const char* what;
  } cases[] = {
      {WL_OK, ""},
      {WL_INVALID_ARGUMENT, "is no table of kernels"},
      {WL_UNSUPPORTED, "its table is of version 99, and this Windlass reads 4"},
      {WL_UNSUPPORTED, "it is built for target x"},
      {WL_UNSUPPORTED, "it is built with the headers of another Windlass"},
      {WL_INVALID_ARGUMENT, "its table names 1 kernels where it has none"},
      {WL_INVALID_ARGUMENT, "kernel 0 has no name"},
      {WL_INVALID_ARGUMENT, "kernel 0 has no name"},
      {WL_INVALID_ARGUMENT, "kernel nothing lacks a function"},
      {WL_INVALID_ARGUMENT, "kernel nothing names 1 arguments"},
      {WL_INVALID_ARGUMENT, "kernel nothing names 4000000000 arguments; it has 1 to 32"},
      {WL_INVALID_ARGUMENT, "kernel nothing, argument 1: an earlier one has its name"},
      {WL_INVALID_ARGUMENT, "kernel nothing, argument 0: the one that decides its size"},
      {WL_INVALID_ARGUMENT, "kernel nothing, argument 0: a scalar is i32, i64, f32 or f64"},
      {WL_INVALID_ARGUMENT, "kernel nothing lacks a function of its session, or has one where its "
                            "target checks nothing"},
      {WL_INVALID_ARGUMENT, "kernel nothing lacks a function of its session"},
      {WL_INVALID_ARGUMENT, "kernel nothing lacks a function of its session"},
      {WL_INVALID_ARGUMENT, "kernel nothing lacks a function of its session"},
      {WL_INVALID_ARGUMENT, image},
      {WL_INVALID_ARGUMENT, image},
      {WL_INVALID_ARGUMENT, image},
      {WL_INVALID_ARGUMENT, image},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    setenv("WINDLASS_BROKEN_TABLE", std::to_string(i).c_str(), 1);
    File file(fileOf("broken_table"));
    if (cases[i].code != WL_OK) {
      file.expectRefused(cases[i].code, cases[i].what);
      continue;
    }
    file.write();
    wl_kernel_library_t* loaded = nullptr;
    Error error;
    EXPECT_EQ(WL_OK, wl_kernel_library_load(file.path().c_str(), wl_target(), &loaded, &error))
        << error.message;
    file.bytes() += "x";
    file.expectRefused(WL_UNSUPPORTED, "has changed since this process loaded it");
  }
  unsetenv("WINDLASS_BROKEN_TABLE");
}

}  // namespace launch_test
}  // namespace windlass_test
