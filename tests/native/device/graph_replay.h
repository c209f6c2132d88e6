// SPDX-License-Identifier: Apache-2.0
// A graph of several collectives on any GPUs, launched again and again: each launch goes on from
// what the one before left, and a slow reference beside it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "tests/native/device/enqueued.h"

namespace windlass_test {

constexpr size_t kReplayedPart = 40;
using Ints = std::vector<uint32_t>;

// Reference for the contents of all ranks after each step, by plain loops.
struct Expected {
  std::vector<Ints> p, q;

  void goOn() {
    const size_t ranks = p.size();
    const size_t count = ranks * kReplayedPart;
    std::vector<Ints> mixed(ranks, Ints(count));
    Ints total(count, 0);
    for (size_t rank = 0; rank < ranks; ++rank) {
      for (size_t from = 0; from < ranks; ++from)
        for (size_t i = 0; i < kReplayedPart; ++i)
          mixed[rank][from * kReplayedPart + i] = p[from][rank * kReplayedPart + i];
      for (size_t i = 0; i < count; ++i) total[i] += q[rank][i];
    }
    // Part r of the sum of all `mixed`, gathered: the whole sum.
    Ints whole(count, 0);
    for (const Ints& each : mixed)
      for (size_t i = 0; i < count; ++i) whole[i] += each[i];
    for (size_t rank = 0; rank < ranks; ++rank) {
      p[rank] = mixed[rank];
      std::copy_n(total.begin(), kReplayedPart, p[rank].begin());
      q[rank] = whole;
      std::copy_n(mixed[rank].begin() + kReplayedPart, kReplayedPart, q[rank].begin());
    }
  }
};

// A rank's tensors, and what it enqueues of them.
struct Replayed {
  Replayed(int device, size_t ranks)
      : count(ranks * kReplayedPart),
        p(device, count),
        q(device, count),
        mixed(device, count),
        total(device, count),
        whole(device, count),
        part(device, kReplayedPart),
        floats(device, count),
        sums(device, count),
        expected(device, count),
        last(device, count) {}

  static void add(wl_comm_t* comm, uint64_t on, int32_t operation, const void* in,
                  uint64_t inElements, void* out, uint64_t outElements, int32_t dtype,
                  int32_t algorithm) {
    uint64_t ticket = 1;
    Error error;
    EXPECT_EQ(enqueue(comm, on, operation, in, inElements, out, outElements, dtype, algorithm, 0,
                      &ticket, &error),
              WL_OK)
        << error.message;
    EXPECT_EQ(ticket, 0u);
  }
  void enqueueFirst(wl_comm_t* comm, uint64_t on) const {
    add(comm, on, WL_OP_ALL_TO_ALL, p.data(), count, mixed.data(), count, WL_I32, WL_AUTO);
    add(comm, on, WL_OP_ALL_REDUCE, q.data(), count, total.data(), count, WL_I32, WL_TWO_PHASE);
    add(comm, on, WL_OP_REDUCE_SCATTER, mixed.data(), count, part.data(), kReplayedPart, WL_I32,
        WL_AUTO);
    add(comm, on, WL_OP_ALL_GATHER, part.data(), kReplayedPart, whole.data(), count, WL_I32,
        WL_AUTO);
    add(comm, on, WL_OP_ALL_REDUCE, floats.data(), count, sums.data(), count, WL_F32, WL_RING);
  }
  // Later ranks copy more, so that their streams are behind the first one's.
  void copyOn(UserStream& stream, int rank) const {
    for (int i = 0; i < 2 * rank; ++i) stream.copy(last.data(), total.data(), 4 * count);
    stream.copy(p.data(), mixed.data(), 4 * count);
    stream.copy(p.data(), total.data(), 4 * kReplayedPart);
    stream.copy(q.data(), whole.data(), 4 * count);
    stream.copy(q.data(), mixed.data() + kReplayedPart, 4 * kReplayedPart);
  }
  // Reduces the results of the copies on each rank's stream.
  void enqueueLast(wl_comm_t* comm, uint64_t on) const {
    add(comm, on, WL_OP_ALL_REDUCE, q.data(), count, last.data(), count, WL_I32, WL_TWO_PHASE);
  }

  const size_t count;
  const gpus::Memory<uint32_t> p, q, mixed, total, whole, part;
  const gpus::Memory<float> floats, sums, expected;
  const gpus::Memory<uint32_t> last;
};

// Of `ranks` ranks, each with device rank % devices.
inline void replay(int ranks, int devices, int times) {
  const auto all = static_cast<size_t>(ranks);
  const size_t count = all * kReplayedPart;
  std::mt19937_64 random(seed());
  const RankStreams streams(ranks, devices);
  std::vector<std::unique_ptr<Replayed>> states;
  Expected expected;
  for (int rank = 0; rank < ranks; ++rank) {
    states.push_back(std::make_unique<Replayed>(rank % devices, all));
    Ints p(count), q(count);
    std::vector<float> floats(count);
    for (size_t i = 0; i < count; ++i) {
      p[i] = static_cast<uint32_t>(random());
      q[i] = static_cast<uint32_t>(random());
      floats[i] = std::ldexp(static_cast<float>(static_cast<int32_t>(random())),
                             static_cast<int>(random() % 40) - 20);
    }
    states.back()->p.write(p);
    states.back()->q.write(q);
    states.back()->floats.write(floats);
    expected.p.push_back(std::move(p));
    expected.q.push_back(std::move(q));
  }
  LocalRanks group(ranks);
  group.run([&](int rank, wl_comm_t* comm) {
    const Replayed& own = *states[static_cast<size_t>(rank)];
    Error error;
    EXPECT_EQ(allReduce(comm, own.floats.data(), own.expected.data(), count, WL_F32, WL_SUM,
                        WL_RING, 0, &error),
              WL_OK)
        << error.message;
  });
  streams.beginCapture();
  group.run([&](int rank, wl_comm_t* comm) {
    states[static_cast<size_t>(rank)]->enqueueFirst(comm, streams.stream(rank).handle());
  });
  for (int rank = 0; rank < ranks; ++rank)
    states[static_cast<size_t>(rank)]->copyOn(streams.stream(rank), rank);
  group.run([&](int rank, wl_comm_t* comm) {
    states[static_cast<size_t>(rank)]->enqueueLast(comm, streams.stream(rank).handle());
  });
  void* const graph = streams.endCapture();
  ASSERT_NE(graph, nullptr);
  const std::vector<float> none(count, 0);
  for (int i = 1; i <= times; ++i) {
    for (const auto& own : states) own->sums.write(none);
    streams.stream(0).launch(graph);
    streams.stream(0).synchronize();
    expected.goOn();
    Ints last(count, 0);
    for (const Ints& q : expected.q)
      for (size_t at = 0; at < count; ++at) last[at] += q[at];
    for (size_t rank = 0; rank < all; ++rank) {
      const Replayed& own = *states[rank];
      ASSERT_EQ(own.p.read(), expected.p[rank]) << "launch " << i << ", rank " << rank;
      ASSERT_EQ(own.q.read(), expected.q[rank]) << "launch " << i << ", rank " << rank;
      ASSERT_EQ(own.last.read(), last) << "launch " << i << ", rank " << rank;
      const std::vector<float> sums = own.sums.read();
      ASSERT_EQ(std::memcmp(sums.data(), own.expected.read().data(), 4 * count), 0)
          << "launch " << i << ", rank " << rank;
    }
  }
  UserStream::dropGraph(graph);
  // Operations that no graph holds follow.
  group.run([&](int rank, wl_comm_t* comm) {
    const int device = rank % devices;
    const gpus::Memory<int32_t> in(device, count), out(device, count);
    std::vector<int32_t> own(count), summed(count);
    for (size_t i = 0; i < count; ++i) {
      own[i] = rank + static_cast<int32_t>(i);
      summed[i] = ranks * (ranks - 1) / 2 + ranks * static_cast<int32_t>(i);
    }
    in.write(own);
    Error error;
    uint64_t ticket = 0;
    EXPECT_EQ(sum(comm, streams.stream(rank).handle(), in.data(), out.data(), count, &ticket,
                  &error),
              WL_OK)
        << error.message;
    EXPECT_EQ(awaitEnqueued(comm, ticket, &error), WL_OK) << error.message;
    EXPECT_EQ(out.read(), summed);
  });
}

}  // namespace windlass_test
