// SPDX-License-Identifier: Apache-2.0
// What becomes of an operation whose kernel breaks what the architecture allows, and of what a
// checked target lacks.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "native/core/executor/in_line_executor.h"
#include "native/core/names.h"
#include "native/isa/checked/instructions.h"
#include "native/isa/checked/session.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/comms.h"
#include "tests/native/core/windows.h"

namespace windlass_test {
namespace checked_test {

namespace checked = windlass::checked;
using windlass::Code;
using windlass::InLine;
using windlass::Launch;
using windlass::Position;

using Row = pto::GlobalTensor<int32_t, pto::Shape<>, pto::Stride<>>;
using Tile = pto::Tile<pto::TileType::Vec, int32_t, 1, 16>;

class A5Session : public checked::Session {
 public:
  A5Session(const char* kernel, const Launch& launch, const InLine& line,
            const std::vector<windlass::Reach>& reach)
      : Session(checked::kA5, kernel, launch.ranks, line, reach) {}
};

// The first core of each rank copies 16 words; the order says by which instructions.
template <class Order>
struct Copies {
  using Session = A5Session;
  static constexpr bool kEager = false;
  static uint32_t phases(const Launch&) { return 1; }
  static void plan(Launch& launch) { launch.cut(1, 1); }
  static uint32_t blocks(const Launch&, uint32_t) { return 1; }
  static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return windlass::kNobody; }
  static uint32_t leavesAfter(const Launch&, uint32_t) { return windlass::kNobody; }
  static bool goOn(A5Session& session, const Launch& launch, const InLine& own, Position& at) {
    if (at.left) return true;
    at.left = true;
    if (own.core != 0) return true;
    const checked::Core::Running running = session.run(own.core);
    const pto::Shape<> shape(1, 1, 1, 1, 16);
    Row from(reinterpret_cast<int32_t*>(const_cast<uint8_t*>(launch.in(own.rank))), shape);
    Row to(reinterpret_cast<int32_t*>(launch.out(own.rank)), shape);
    Tile tile;
    pto::TASSIGN(tile, 0);
    pto::TLOAD(tile, from);
    Order::order(own.rank);
    pto::TSTORE(to, tile);
    Order::stored(own.rank);
    return true;
  }
};

struct Body {
  static void stored(uint32_t) {}
  static void over(uint32_t) {}
};
struct Whole : Body {
  static void order(uint32_t) {
    set_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_MTE3, EVENT_ID0);
  }
};
struct BrokenOnRankOne : Body {
  static void order(uint32_t rank) {
    if (rank == 0) Whole::order(rank);
  }
};
// Rank 0 ends its part, and with it the operation, while rank 1 is still in its own.
struct BrokenOnRankOneFirst : BrokenOnRankOne {
  static std::atomic<bool> broken;
  static std::atomic<bool> told;

  static void order(uint32_t rank) {
    if (rank == 0) await([] { return broken.load(); });
    BrokenOnRankOne::order(rank);
  }
  static void stored(uint32_t rank) {
    if (rank == 0) return;
    broken = true;
    await([] { return told.load(); });
  }
  static void over(uint32_t rank) {
    if (rank == 0) told = true;
  }
};
std::atomic<bool> BrokenOnRankOneFirst::broken{false};
std::atomic<bool> BrokenOnRankOneFirst::told{false};

// Each rank waits for ever for what never comes: rank 1 once it has broken something.
struct Stuck : Copies<BrokenOnRankOne> {
  static bool goOn(A5Session& session, const Launch& launch, const InLine& own, Position& at) {
    if (!at.begun) {
      Position all;
      Copies::goOn(session, launch, own, all);
    }
    at.begun = true;
    return false;
  }
};

// Step in which memory is short on rank 1.
enum class Short { kSession, kCore, kVerdict };

template <Short where>
struct Starved : Copies<Whole> {
  class Session : public A5Session {
   public:
    Session(const char* kernel, const Launch& launch, const InLine& line,
            const std::vector<windlass::Reach>& reach)
        : A5Session(kernel, launch, line, reach), rank_(line.rank) {
      take(Short::kSession);
    }
    checked::Verdict verdict(bool over) {
      take(Short::kVerdict);
      return A5Session::verdict(over);
    }
    void take(Short at) const {
      if (at == where && rank_ == 1) throw std::bad_alloc();
    }

   private:
    const uint32_t rank_;
  };
  static bool goOn(Session& session, const Launch& launch, const InLine& own, Position& at) {
    if (own.core == 1) session.take(Short::kCore);
    return Copies::goOn(session, launch, own, at);
  }
};

// Runs one operation and collects the code and the error of each rank.
template <class Order, class Kernel = Copies<Order>>
void runCopies(Comms& ranks, std::vector<int>* codes, std::vector<Error>* errors) {
  codes->assign(ranks.comms.size(), -1);
  errors->resize(ranks.comms.size());
  ranks.run([&](uint32_t rank, windlass::Comm& comm) {
    int32_t in[16];
    int32_t out[16] = {};
    for (int32_t i = 0; i < 16; ++i) in[i] = i + static_cast<int32_t>(rank);
    windlass::Call call = {};
    call.descriptor = windlass::Descriptor::of(WL_OP_ALL_GATHER, 16, WL_I32);
    call.args = {in, out, nullptr};
    call.bytes = call.inBytes = call.outBytes = sizeof in;
    call.error = &(*errors)[rank];
    (*codes)[rank] = windlass::runOnCores<Kernel>(comm, call);
    Order::over(rank);
    if ((*codes)[rank] == WL_OK) {
      EXPECT_EQ(0, std::memcmp(in, out, sizeof in));
    }
  });
}

bool runsCores() { return Comms(1, 1).group->config().inLineCores > 0; }

TEST(Checked, WhatKeepsTheRulesRuns) {
  if (!runsCores()) GTEST_SKIP() << "the cpu executor runs no cores";
  Comms ranks(2, 2);
  std::vector<int> codes;
  std::vector<Error> errors;
  for (int i = 0; i < 3; ++i) {
    runCopies<Whole>(ranks, &codes, &errors);
    EXPECT_EQ(codes, (std::vector<int>{WL_OK, WL_OK})) << errors[0].message << errors[1].message;
  }
}

template <class Order, class Kernel = Copies<Order>>
void expectRankOneNamed(std::vector<int>* codes) {
  Comms ranks(2, 2);
  std::vector<Error> errors;
  runCopies<Order, Kernel>(ranks, codes, &errors);
  EXPECT_EQ(WL_DEVICE, (*codes)[1]);
  EXPECT_TRUE(contains(errors[1].message, "rank 1: all-gather #1 breaks what "));
  EXPECT_TRUE(contains(errors[1].message, "tile-race: kernel all-gather, rank 1, block 0"));
  EXPECT_TRUE(contains(errors[1].message, "TSTORE"));
  EXPECT_TRUE(contains(errors[1].message, "put set_flag and wait_flag"));
  EXPECT_TRUE(contains(errors[1].message, "seed of the pipes' order"));
  const wl_error_t* failure = ranks.group->failure();
  ASSERT_NE(nullptr, failure);
  EXPECT_EQ(WL_DEVICE, failure->code);
  EXPECT_EQ(1, failure->faulty_rank_count);
  EXPECT_EQ(1, failure->faulty_ranks[0]);
}

TEST(Checked, ABreachFailsTheOperationOfItsRankAndEndsTheCommunicator) {
  if (!runsCores()) GTEST_SKIP() << "the cpu executor runs no cores";
  std::vector<int> codes;
  expectRankOneNamed<BrokenOnRankOne>(&codes);
}

TEST(Checked, ABreachIsOfTheRankThatBrokeTheRuleWhoeverSeesItFirst) {
  if (!runsCores()) GTEST_SKIP() << "the cpu executor runs no cores";
  BrokenOnRankOneFirst::broken = BrokenOnRankOneFirst::told = false;
  std::vector<int> codes;
  expectRankOneNamed<BrokenOnRankOneFirst>(&codes);
  EXPECT_EQ(WL_DEVICE, codes[0]);
}

TEST(Checked, ABreachIsToldWhereWhatFollowsIsWaitedForInVain) {
  if (!runsCores()) GTEST_SKIP() << "the cpu executor runs no cores";
  std::vector<int> codes;
  expectRankOneNamed<BrokenOnRankOne, Stuck>(&codes);
  EXPECT_EQ(WL_DEVICE, codes[0]);
}

template <Short where>
void expectNoMemory() {
  Comms ranks(2, 2);
  std::vector<int> codes;
  std::vector<Error> errors;
  runCopies<Whole, Starved<where>>(ranks, &codes, &errors);
  EXPECT_EQ(WL_RESOURCE, codes[1]);
  EXPECT_TRUE(contains(errors[1].message, "rank 1"));
  EXPECT_TRUE(contains(errors[1].message, "out of memory"));
  const wl_error_t* failure = ranks.group->failure();
  ASSERT_NE(nullptr, failure);
  EXPECT_EQ(WL_RESOURCE, failure->code);
  EXPECT_EQ(1, failure->faulty_ranks[0]);
}

TEST(Checked, TooLittleMemoryForWhatChecksFailsTheOperation) {
  if (deviceCores() < 2) GTEST_SKIP() << "ranks have no second core";
  expectNoMemory<Short::kSession>();
  expectNoMemory<Short::kCore>();
  expectNoMemory<Short::kVerdict>();
}

// In a process of its own, which reads its environment anew.
TEST(Checked, ASeedThatIsNoneIsRefused) {
  if (!isChecked()) GTEST_SKIP() << wl_target() << " runs no pipes";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto create = [] {
    setenv("WINDLASS_PIPE_SEED", "12x", 1);
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = 1;
    wl_group_t* group = nullptr;
    Error error;
    const int code = wl_group_create(&config, &group, &error);
    std::fputs(error.message, stderr);
    std::_Exit(code == WL_INVALID_ARGUMENT ? 0 : 1);
  };
  EXPECT_EXIT(create(), testing::ExitedWithCode(0), "WINDLASS_PIPE_SEED is '12x', and a seed is");
}

// A seed that a breach reports, passed back, sets the order of every operation.
TEST(Checked, ASeedThatIsGivenIsEveryOperations) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto seeds = [](const char* given) {
    given == nullptr ? unsetenv("WINDLASS_PIPE_SEED") : setenv("WINDLASS_PIPE_SEED", given, 1);
    std::fprintf(stderr, "seeds %llu %llu", static_cast<unsigned long long>(checked::seedOf(4)),
                 static_cast<unsigned long long>(checked::seedOf(9)));
    std::_Exit(0);
  };
  EXPECT_EXIT(seeds(nullptr), testing::ExitedWithCode(0), "seeds 4 9");
  EXPECT_EXIT(seeds("17"), testing::ExitedWithCode(0), "seeds 17 17");
  EXPECT_EXIT(seeds("0"), testing::ExitedWithCode(0), "seeds 0 0");
}

TEST(Checked, RefusesWhatTheArchitectureLacks) {
  if (!isChecked()) GTEST_SKIP() << wl_target() << " has all";
  LocalRanks ranks(2);
  ranks.run([&](int, wl_comm_t* comm) {
    double in = 1;
    double out = 0;
    Error error;
    EXPECT_EQ(WL_UNSUPPORTED, allReduce(comm, &in, &out, 1, WL_F64, WL_SUM, WL_AUTO, 0, &error));
    EXPECT_TRUE(contains(error.message, wl_target()));
    EXPECT_TRUE(contains(error.message, "f64"));
    EXPECT_EQ(0, wl_dtype_can_reduce(WL_F64, WL_SUM));
    EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
}

std::string traceOfProfile() {
  uint64_t length = 0;
  EXPECT_EQ(WL_OK, wl_profile_trace(nullptr, 0, &length, nullptr));
  std::string trace(length, ' ');
  EXPECT_EQ(WL_OK, wl_profile_trace(&trace[0], trace.size(), &length, nullptr));
  EXPECT_EQ(trace.size(), length);
  return trace;
}

TEST(Checked, CountsWhatKernelsDoOnTargetsThatCheck) {
  Error error;
  if (!isChecked()) {
    uint64_t count = 0;
    EXPECT_EQ(WL_UNSUPPORTED, wl_profile_start(0, &error));
    EXPECT_TRUE(contains(error.message, "target sim does not count"));
    EXPECT_EQ(WL_UNSUPPORTED, wl_profile_kernels(nullptr, 0, &count, &error));
    EXPECT_EQ(WL_UNSUPPORTED, wl_profile_trace(nullptr, 0, &count, &error));
    return;
  }
  constexpr size_t kElements = 100000;
  constexpr uint64_t kBytes = kElements * sizeof(int32_t);
  LocalRanks ranks(2);
  Windows windows(ranks, 2 * kBytes, 1);
  ASSERT_EQ(WL_OK, wl_profile_start(1, &error)) << error.message;
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error own;
    EXPECT_EQ(WL_OK, allReduce(comm, windows.at(rank, 0), windows.at(rank, kBytes), kElements,
                               WL_I32, WL_SUM, WL_ONE_PHASE, 0, &own))
        << own.message;
  });
  wl_kernel_profile_t kernels[8] = {};
  kernels[0].struct_size = sizeof *kernels;
  uint64_t count = 0;
  ASSERT_EQ(WL_OK, wl_profile_kernels(kernels, 8, &count, &error)) << error.message;
  ASSERT_LE(count, 8u);
  const auto* found = std::find_if(kernels, kernels + count, [](const auto& each) {
    return std::strcmp(each.kernel, "all-reduce") == 0;
  });
  ASSERT_NE(kernels + count, found);
  EXPECT_EQ(2u, found->runs);
  // Each rank loads both inputs and stores its own output.
  EXPECT_EQ(4 * kBytes, found->bytes[2]);
  EXPECT_EQ(2 * kBytes, found->bytes[3]);
  EXPECT_GT(found->instructions[1], 0u);
  EXPECT_GT(found->flags, 0u);
  EXPECT_GT(found->notifies, 0u);
  EXPECT_GT(found->buffer_bytes, kBytes / 100);
  EXPECT_GT(found->overlap_cycles, 0u);
  EXPECT_LE(found->overlap_cycles, found->busy_cycles[3]);
  EXPECT_LE(found->busy_cycles[2], found->cycles);
  EXPECT_EQ(0u, found->cores % 2);
  const std::string trace = traceOfProfile();
  EXPECT_EQ(0u, trace.find("{\"traceEvents\":["));
  for (const char* text : {"rank 1", "PIPE_MTE2", "\"name\":\"TLOAD\",\"cat\":\"all-reduce\""}) {
    EXPECT_NE(std::string::npos, trace.find(text)) << text;
  }
  ASSERT_EQ(WL_OK, wl_profile_start(0, &error)) << error.message;
  EXPECT_EQ(std::string::npos, traceOfProfile().find("TLOAD"));
  ASSERT_EQ(WL_OK, wl_profile_kernels(kernels, 8, &count, &error)) << error.message;
  EXPECT_EQ(0u, count);
}

}  // namespace checked_test
}  // namespace windlass_test
