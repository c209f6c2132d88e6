// SPDX-License-Identifier: Apache-2.0
// Graphs that hold collectives, over the stand-in for NVIDIA's driver: what their launches come to,
// and which captures are refused.
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "tests/native/offload/stream_programs.h"

namespace windlass_test {
namespace {

constexpr int kRanks = 3;
constexpr size_t kPart = 40;
constexpr size_t kCount = kRanks * kPart;
using Ints = std::vector<uint32_t>;

// What ranks have in turn, step by step as replay() has it, by plain loops.
struct Expected {
  std::vector<Ints> p, q;

  void goOn() {
    std::vector<Ints> mixed(kRanks, Ints(kCount));
    Ints total(kCount, 0);
    for (size_t rank = 0; rank < kRanks; ++rank) {
      for (size_t from = 0; from < kRanks; ++from)
        for (size_t i = 0; i < kPart; ++i)
          mixed[rank][from * kPart + i] = p[from][rank * kPart + i];
      for (size_t i = 0; i < kCount; ++i) total[i] += q[rank][i];
    }
    // Part r of the sum of all `mixed`, gathered: the whole sum.
    Ints whole(kCount, 0);
    for (const Ints& each : mixed)
      for (size_t i = 0; i < kCount; ++i) whole[i] += each[i];
    for (size_t rank = 0; rank < kRanks; ++rank) {
      p[rank] = mixed[rank];
      std::copy_n(total.begin(), kPart, p[rank].begin());
      q[rank] = whole;
      std::copy_n(mixed[rank].begin() + kPart, kPart, q[rank].begin());
    }
  }
};

// A rank's tensors.
struct State {
  explicit State(int device) {
    for (uint32_t** each : {&p, &q, &mixed, &total, &whole})
      *each = gpus::tensor<uint32_t>(device, kCount);
    part = gpus::tensor<uint32_t>(device, kPart);
    for (float** each : {&floats, &sums, &expected}) *each = gpus::tensor<float>(device, kCount);
  }
  uint32_t *p, *q, *mixed, *total, *whole, *part;
  float *floats, *sums, *expected;
};

// What ranks enqueue. The copies come after it.
void capture(wl_comm_t* comm, uint64_t on, const State& own) {
  uint64_t ticket = 1;
  const auto add = [&](int32_t operation, const void* in, uint64_t inElements, void* out,
                       uint64_t outElements, int32_t dtype, int32_t algorithm) {
    Error error;
    EXPECT_EQ(enqueue(comm, on, operation, in, inElements, out, outElements, dtype, algorithm, 0,
                      &ticket, &error),
              WL_OK)
        << error.message;
    EXPECT_EQ(ticket, 0u);
  };
  add(WL_OP_ALL_TO_ALL, own.p, kCount, own.mixed, kCount, WL_I32, WL_AUTO);
  add(WL_OP_ALL_REDUCE, own.q, kCount, own.total, kCount, WL_I32, WL_TWO_PHASE);
  add(WL_OP_REDUCE_SCATTER, own.mixed, kCount, own.part, kPart, WL_I32, WL_AUTO);
  add(WL_OP_ALL_GATHER, own.part, kPart, own.whole, kCount, WL_I32, WL_AUTO);
  add(WL_OP_ALL_REDUCE, own.floats, kCount, own.sums, kCount, WL_F32, WL_RING);
}

void copyOn(UserStream& stream, State& own) {
  stream.copy(own.p, own.mixed, 4 * kCount);
  stream.copy(own.p, own.total, 4 * kPart);
  stream.copy(own.q, own.whole, 4 * kCount);
  stream.copy(own.q, own.mixed + kPart, 4 * kPart);
}

void replay(int devices, int times) {
  gpus::reset();
  gpus::devices(devices);
  std::mt19937_64 random(seed());
  Program program(kRanks, devices, 1);
  std::vector<State> states;
  Expected expected;
  for (int rank = 0; rank < kRanks; ++rank) {
    states.emplace_back(rank % devices);
    State& own = states.back();
    for (size_t i = 0; i < kCount; ++i) {
      own.p[i] = static_cast<uint32_t>(random());
      own.q[i] = static_cast<uint32_t>(random());
      own.floats[i] = std::ldexp(static_cast<float>(static_cast<int32_t>(random())),
                                 static_cast<int>(random() % 40) - 20);
    }
    expected.p.emplace_back(own.p, own.p + kCount);
    expected.q.emplace_back(own.q, own.q + kCount);
  }
  const std::string before = gpus::held();
  {
    LocalRanks ranks(kRanks);
    ranks.run([&](int rank, wl_comm_t* comm) {
      State& own = states[static_cast<size_t>(rank)];
      Error error;
      EXPECT_EQ(allReduce(comm, own.floats, own.expected, kCount, WL_F32, WL_SUM, WL_RING, 0,
                          &error),
                WL_OK)
          << error.message;
    });
    program.beginCapture();
    ranks.run([&](int rank, wl_comm_t* comm) {
      capture(comm, program.stream(rank).handle(), states[static_cast<size_t>(rank)]);
    });
    for (int rank = 0; rank < kRanks; ++rank)
      copyOn(program.stream(rank), states[static_cast<size_t>(rank)]);
    void* const graph = program.endCapture();
    ASSERT_NE(graph, nullptr);
    for (int i = 1; i <= times; ++i) {
      for (State& own : states) std::memset(own.sums, 0, 4 * kCount);
      program.stream(0).launch(graph);
      program.stream(0).synchronize();
      expected.goOn();
      for (size_t rank = 0; rank < kRanks; ++rank) {
        const State& own = states[rank];
        ASSERT_EQ(std::memcmp(own.p, expected.p[rank].data(), 4 * kCount), 0) << i << " " << rank;
        ASSERT_EQ(std::memcmp(own.q, expected.q[rank].data(), 4 * kCount), 0) << i << " " << rank;
        ASSERT_EQ(std::memcmp(own.sums, own.expected, 4 * kCount), 0) << i << " " << rank;
      }
    }
    UserStream::dropGraph(graph);
    // And what no graph holds, after them.
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      uint64_t ticket = 0;
      EXPECT_EQ(program.sum(comm, rank, &ticket, &error), WL_OK) << error.message;
      EXPECT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
      EXPECT_EQ(program.out[static_cast<size_t>(rank)][0], program.sumAt(0));
    });
  }
  EXPECT_EQ(gpus::held(), before);
}

TEST_F(GpusStreams, AGraphOfSeveralCollectivesRunsAsOftenAsItIsLaunched) {
  for (const int devices : {1, 2, 3}) replay(devices, 1000);
}

// Each rank's stream captures what `begin` has it capture, and all refuse the operation.
void refuse(const std::function<void(Program&)>& begin, const std::function<void(Program&)>& end,
            const char* because) {
  gpus::reset();
  Program program(kRanks, 1, 100);
  LocalRanks ranks(kRanks);
  begin(program);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint64_t ticket = 0;
    EXPECT_EQ(program.sum(comm, rank, &ticket, &error), WL_UNSUPPORTED);
    EXPECT_TRUE(contains(error.message, because));
  });
  end(program);
  EXPECT_EQ(gpus::countCalls("cuLaunchCooperativeKernel"), 0);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint64_t ticket = 0;
    EXPECT_EQ(program.sum(comm, rank, &ticket, &error), WL_OK) << error.message;
    EXPECT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
    for (size_t i = 0; i < 100; ++i)
      ASSERT_EQ(program.out[static_cast<size_t>(rank)][i], program.sumAt(i)) << i;
  });
}

TEST_F(GpusStreams, ACaptureOfSomeRanksIsRefused) {
  refuse([](Program& program) { program.stream(1).beginCapture(); },
         [](Program& program) { UserStream::dropGraph(program.stream(1).endCapture()); },
         "the stream of rank 1 captures a graph and that of rank ");
}

TEST_F(GpusStreams, TwoGraphsAreRefused) {
  refuse(
      [](Program& program) {
        program.stream(0).beginCapture();
        program.stream(1).follow(program.stream(0));
        program.stream(2).beginCapture();
      },
      [](Program& program) {
        program.stream(0).follow(program.stream(1));
        for (const int rank : {0, 2}) UserStream::dropGraph(program.stream(rank).endCapture());
      },
      "capture two graphs");
}

TEST_F(GpusStreams, GraphsHoldNoMoreThanTheCommunicatorKeeps) {
  constexpr int kMost = 512;
  Program program(kRanks, 1, 100);
  LocalRanks ranks(kRanks);
  program.beginCapture();
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint64_t ticket = 0;
    for (int i = 0; i < kMost; ++i)
      ASSERT_EQ(program.sum(comm, rank, &ticket, &error), WL_OK) << i << ": " << error.message;
    EXPECT_EQ(program.sum(comm, rank, &ticket, &error), WL_RESOURCE);
    EXPECT_TRUE(contains(error.message, "graphs hold 512 operations of this communicator"));
  });
  void* const graph = program.endCapture();
  ASSERT_NE(graph, nullptr);
  program.stream(0).launch(graph);
  program.stream(0).synchronize();
  for (const int32_t* out : program.out)
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(out[i], program.sumAt(i)) << i;
  UserStream::dropGraph(graph);
}

}  // namespace
}  // namespace windlass_test
