// SPDX-License-Identifier: Apache-2.0
// The in-line executor and each kernel on it, on the emulator that refuses what Ascend's
// architectures would: all cores of all ranks take turns on the test's thread, in an order that a
// seed picks, as it does that of their pipes.
#define WINDLASS_TARGET_A2A3SIM  // a5sim's vocabulary is the same
#include "windlass/in_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/all_gather.h"
#include "kernels/all_gather_columns.h"
#include "kernels/all_gather_v.h"
#include "kernels/all_reduce.h"
#include "kernels/all_to_all.h"
#include "kernels/all_to_all_v.h"
#include "kernels/barrier.h"
#include "kernels/broadcast.h"
#include "kernels/chunk.h"
#include "kernels/one_sided.h"
#include "kernels/reduce.h"
#include "kernels/reduce_scatter.h"
#include "kernels/reduce_scatter_columns.h"
#include "kernels/reduce_scatter_v.h"
#include "kernels/scan.h"
#include "kernels/scatter.h"
#include "windlass/kernel_list.h"

namespace windlass {
namespace in_line_test {

using Values = std::vector<int32_t>;

// Those of 0 to 49, and in the long form of 0 to 999, that tests run. WINDLASS_TEST_SEEDS has them
// run so many.
std::vector<uint64_t> seeds() {
#if defined(__SANITIZE_ADDRESS__)
  constexpr uint64_t kFew = 2;  // where cores wait for all, and where they do not
#else
  constexpr uint64_t kFew = 10;
#endif
  uint64_t count = std::getenv("WINDLASS_TEST_LONG") == nullptr ? kFew : 1000;
  const char* const given = std::getenv("WINDLASS_TEST_SEEDS");
  if (given != nullptr) count = std::strtoull(given, nullptr, 10);
  if (count == 0) std::abort();
  std::vector<uint64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
#if !defined(__SANITIZE_ADDRESS__)
  // The smallest parts that take several tiles, for cores that wait for all cores and for cores
  // that do not.
  for (const uint64_t large : {27, 36})
    if (large >= count) all.push_back(large);
#endif
  return all;
}

struct alignas(kCoreLineBytes) Line {
  int32_t word = 0;
};

// Ranks and their cores, what an operation finds there, and the operation.
class Operation {
 public:
  Operation(const checked::Architecture& architecture, const char* kernel, uint64_t seed)
      : random_(seed),
        ranks(2 + random_() % 3),
        root(random_() % ranks),
        // Some take several tiles, and are cut into several pieces.
        elements(random_() % 16 == 0 ? 9000 : 1 + random_() % 64),
        machine({architecture, kernel, ranks, kCores, seed, false}),
        waitsForAll_(seed % 2 == 1),
        lines_(ranks * ranks * kCores),
        parts_(ranks),
        args_(ranks) {
    // Words wrap, as signed numbers and as unsigned ones.
    const uint32_t sequences[] = {1, 0x7fffff, 0x800000, 0xffffff, 0x1000000, 0x34567};
    sequence_ = sequences[random_() % 6];
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      in.emplace_back(ranks * elements);
      for (int32_t& value : in.back()) value = static_cast<int32_t>(random_());
      out.emplace_back(ranks * elements, -1);
      parts_[rank].resize(PartTable::bytes(ranks) / sizeof(uint64_t));
    }
    counters.resize(ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      args_[rank] = {placeOf(in[rank].data()), placeOf(out[rank].data()),
                     placeOf(parts_[rank].data())};
      share(rank, in[rank].data(), in[rank].size() * sizeof(int32_t));
      share(rank, out[rank].data(), out[rank].size() * sizeof(int32_t));
      share(rank, parts_[rank].data(), PartTable::bytes(ranks));
      share(rank, &counters[rank], sizeof(Line));
      share(rank, &lines_[rank * ranks * kCores], ranks * kCores * sizeof(Line));
      for (uint32_t core = 0; core < kCores; ++core)
        cores_.push_back(std::make_unique<checked::Core>(machine, rank, core));
    }
    launch.ranks = ranks;
    launch.root = root;
    launch.dtype = DType::kI32;
    launch.op = ReduceOp::kSum;
    launch.bytes = elements * sizeof(int32_t);
    launch.entries = reinterpret_cast<const unsigned char*>(args_.data());
    launch.entryStride = sizeof(RankArgs);
  }

  static Place placeOf(const void* data) {
    return Place::of(kAddressSpace, reinterpret_cast<uint64_t>(data));
  }
  PartTable& parts(uint32_t rank) { return *reinterpret_cast<PartTable*>(parts_[rank].data()); }
  void setTable(uint32_t rank, const uint64_t* words) { args_[rank].aux = placeOf(words); }
  checked::Core& core(uint32_t rank, uint32_t number) { return *cores_[rank * kCores + number]; }

  // Elements that rank `from` has for rank `to` where parts differ in size.
  uint64_t count(uint32_t from, uint32_t to) const {
    return (from * 7 + to * 3 + elements) % (elements + 1);
  }

  InLine lineOf(uint32_t rank, size_t core) {
    return {rank, static_cast<uint32_t>(core), kCores, sequence_, false, 1,
            reinterpret_cast<unsigned char*>(lines_.data()),
            ranks * kCores * sizeof(Line)};
  }
  // Lines as an earlier operation left them.
  void resetLines() {
    for (Line& line : lines_) line.word = static_cast<int32_t>(lineOf(0, 0).word(0) - 0xfd);
  }

  template <class K>
  void run() {
    K::plan(launch);
    const uint32_t phases = K::phases(launch);
    resetLines();
    std::vector<Position> at(cores_.size());
    std::vector<uint32_t> running(ranks, kCores);
    size_t left = cores_.size();
    if (waitsForAll_) bringLate();
    for (uint32_t turn = 0; left > 0; ++turn) {
      ASSERT_LT(turn, 20000u) << "a core waits for what nobody does";
      const size_t next = random_() % cores_.size();
      if (at[next].left) continue;
      const auto rank = static_cast<uint32_t>(next / kCores);
      const checked::Core::Running runs(*cores_[next]);
      const InLine own = lineOf(rank, next % kCores);
      if (waitsForAll_ && next % kCores == 0 && !at[next].told) bring(rank);
      if (waitsForAll_ && !awaitAllInLine(launch, own, at[next])) continue;
      if (!runInLine<K>(launch, own, at[next])) continue;
      --left;
      if (--running[rank] == 0 && K::leavesAfter(launch, rank) == kEveryRank) useAgain(rank);
    }
    for (const auto& each : cores_) each->finish();
    for (const Line& line : lines_) {
      ASSERT_EQ(line.word, static_cast<int32_t>(lineOf(0, 0).word(phases)));
    }
  }

  static constexpr uint32_t kCores = 2;

 private:
  std::mt19937_64 random_;

 public:
  const uint32_t ranks;
  const uint32_t root;
  const uint64_t elements;  // of a part
  checked::Machine machine;
  Launch launch = {};
  std::vector<Values> in;   // a part for each rank
  std::vector<Values> out;  // the same
  std::vector<Line> counters;

 private:
  void share(uint32_t rank, const void* data, size_t bytes) {
    machine.memory().add({rank, data, bytes, true});
  }
  // Inputs that ranks write themselves as they come to the operation: no host has seen all come.
  void bringLate() {
    brought_ = in;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      std::fill(in[rank].begin(), in[rank].end(), 0);
      share(rank, brought_[rank].data(), brought_[rank].size() * sizeof(int32_t));
    }
  }
  void bring(uint32_t rank) {
    uint8_t* from = reinterpret_cast<uint8_t*>(brought_[rank].data());
    uint8_t* to = reinterpret_cast<uint8_t*>(in[rank].data());
    put({to, from, in[rank].size() * sizeof(int32_t)});
  }
  // Uses the memory as a caller may after a rank has left: reads the output and writes the input.
  void useAgain(uint32_t rank) {
    const checked::Core::Running runs(core(rank, 0));
    uint8_t* from = reinterpret_cast<uint8_t*>(out[rank].data());
    uint8_t* to = reinterpret_cast<uint8_t*>(in[rank].data());
    put({to, from, out[rank].size() * sizeof(int32_t)});
  }

  uint32_t sequence_;
  const bool waitsForAll_;  // cores, before they touch what peers bring
  std::vector<Values> brought_;
  std::vector<Line> lines_;
  std::vector<std::vector<uint64_t>> parts_;
  std::vector<RankArgs> args_;
  std::vector<std::unique_ptr<checked::Core>> cores_;
};

// Output of each rank, computed from all inputs.
using Expected = std::function<void(const Operation& of, const std::vector<Values>& in,
                                    uint32_t rank, Values& out)>;

class InLineKernels : public testing::TestWithParam<const checked::Architecture*> {
 protected:
  // K over all seeds; prepare(operation) before.
  template <class K, typename Prepare>
  void run(const char* kernel, const Prepare& prepare, const Expected& expected) {
    for (const uint64_t seed : seeds()) {
      SCOPED_TRACE(std::string(kernel) + " on " + GetParam()->name + ", seed " +
                   std::to_string(seed));
      Operation operation(*GetParam(), kernel, seed);
      prepare(operation);
      const std::vector<Values> in = operation.in;
      operation.template run<K>();
      ASSERT_EQ(operation.machine.report(), "");
      for (uint32_t rank = 0; rank < operation.ranks; ++rank) {
        Values out(operation.out[rank].size(), -1);
        expected(operation, in, rank, out);
        ASSERT_TRUE(out == operation.out[rank]) << "the output of rank " << rank;
      }
      if (HasFatalFailure()) return;
    }
  }
  template <class K>
  void run(const char* kernel, const Expected& expected) {
    run<K>(kernel, [](Operation&) {}, expected);
  }
};

const auto copy = [](const Values& from, uint64_t start, uint64_t count, Values& to,
                     uint64_t at) {
  std::copy_n(from.begin() + static_cast<int64_t>(start), count,
              to.begin() + static_cast<int64_t>(at));
};
const auto add = [](const Values& from, uint64_t start, uint64_t count, Values& to, bool first) {
  for (uint64_t i = 0; i < count; ++i) {
    const auto sum = first ? 0 : static_cast<uint32_t>(to[i]);
    to[i] = static_cast<int32_t>(sum + static_cast<uint32_t>(from[start + i]));
  }
};

const Expected kAllToAll = [](const Operation& of, const auto& in, uint32_t rank, Values& out) {
  for (uint32_t p = 0; p < of.ranks; ++p)
    copy(in[p], rank * of.elements, of.elements, out, p * of.elements);
};
const Expected kAllGather = [](const Operation& of, const auto& in, uint32_t, Values& out) {
  for (uint32_t p = 0; p < of.ranks; ++p) copy(in[p], 0, of.elements, out, p * of.elements);
};
const Expected kBroadcast = [](const Operation& of, const auto& in, uint32_t, Values& out) {
  copy(in[of.root], 0, of.elements, out, 0);
};
const Expected kAllReduce = [](const Operation& of, const auto& in, uint32_t, Values& out) {
  for (uint32_t p = 0; p < of.ranks; ++p) add(in[p], 0, of.elements, out, p == 0);
};
const Expected kReduceScatter = [](const Operation& of, const auto& in, uint32_t rank,
                                   Values& out) {
  for (uint32_t p = 0; p < of.ranks; ++p)
    add(in[p], rank * of.elements, of.elements, out, p == 0);
};
const Expected kColumns = [](const Operation& of, const auto& in, uint32_t, Values& out) {
  const uint64_t rows = of.launch.rows();
  const uint64_t columns = of.elements / rows;
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint32_t p = 0; p < of.ranks; ++p)
      copy(in[p], row * columns, columns, out, (row * of.ranks + p) * columns);
  }
};

TEST_P(InLineKernels, MoveWholeParts) {
  run<AllToAllPush>("all-to-all", kAllToAll);
  run<AllToAllPull>("all-to-all, pulled", kAllToAll);
  run<Eager<AllToAllPull>>("all-to-all, eager", kAllToAll);
  run<AllGather>("all-gather", kAllGather);
  run<Eager<AllGatherPull>>("all-gather, eager", kAllGather);
  run<Broadcast>("broadcast", kBroadcast);
  run<Eager<Broadcast>>("broadcast, eager", kBroadcast);
  run<Scatter>("scatter", [](const Operation& of, const auto& in, uint32_t rank, Values& out) {
    copy(in[of.root], rank * of.elements, of.elements, out, 0);
  });
  run<Gather>("gather", [](const Operation& of, const auto& in, uint32_t rank, Values& out) {
    if (rank == of.root) kAllGather(of, in, rank, out);
  });
}

TEST_P(InLineKernels, MoveColumns) {
  const auto rows = [](Operation& of) {
    of.launch.root = of.elements % 3 == 0 ? 3 : (of.elements % 2 == 0 ? 2 : 1);
  };
  run<AllGatherColumns>("all-gather-dim", rows, kColumns);
  run<Eager<AllGatherColumnsPull>>("all-gather-dim, eager", rows, kColumns);
  const Expected reduced = [](const Operation& of, const auto& in, uint32_t rank, Values& out) {
    const uint64_t columns = of.elements / of.launch.rows();
    for (uint64_t i = 0; i < of.elements; ++i) {
      const uint64_t at = (i / columns * of.ranks + rank) * columns + i % columns;
      uint32_t sum = 0;
      for (uint32_t p = 0; p < of.ranks; ++p) sum += static_cast<uint32_t>(in[p][at]);
      out[i] = static_cast<int32_t>(sum);
    }
  };
  run<ReduceScatterColumns>("reduce-scatter-dim", rows, reduced);
  run<Eager<ReduceScatterColumns>>("reduce-scatter-dim, eager", rows, reduced);
}

TEST_P(InLineKernels, Reduce) {
  run<AllReduceOnePhase>("all-reduce, one-phase", kAllReduce);
  run<Eager<AllReduceOnePhase>>("all-reduce, eager", kAllReduce);
  run<AllReduceTwoPhase>("all-reduce, two-phase", kAllReduce);
  run<AllReduceRing>("all-reduce, ring", kAllReduce);
  run<AllReduceBidirectionalRing>("all-reduce, bidirectional ring", kAllReduce);
  run<ReduceScatter>("reduce-scatter", kReduceScatter);
  run<Eager<ReduceScatter>>("reduce-scatter, eager", kReduceScatter);
  const Expected atRoot = [](const Operation& of, const auto& in, uint32_t rank, Values& out) {
    if (rank == of.root) kAllReduce(of, in, rank, out);
  };
  run<windlass::Reduce>("reduce", atRoot);
  run<Eager<windlass::Reduce>>("reduce, eager", atRoot);
  const auto ofFirst = [](uint32_t own) {
    return [own](const Operation& of, const auto& in, uint32_t rank, Values& out) {
      std::fill_n(out.begin(), of.elements, 0);
      for (uint32_t p = 0; p < rank + own; ++p) add(in[p], 0, of.elements, out, false);
    };
  };
  run<Scan>("scan", ofFirst(1));
  run<Eager<Scan>>("scan, eager", ofFirst(1));
  run<ExclusiveScan>("exclusive-scan", ofFirst(0));
  run<Eager<ExclusiveScan>>("exclusive-scan, eager", ofFirst(0));
}

TEST_P(InLineKernels, MoveUnequalParts) {
  constexpr uint64_t kSize = sizeof(int32_t);
  const auto parts = [](Operation& of) {
    for (uint32_t rank = 0; rank < of.ranks; ++rank) {
      PartTable& table = of.parts(rank);
      uint64_t start = 0;
      for (uint32_t other = 0; other < of.ranks; ++other) {
        table.in(other) = {start * kSize, of.count(rank, other) * kSize};
        table.out(other) = {other * of.elements * kSize, of.count(other, rank) * kSize};
        start += of.count(rank, other);
      }
      table.largest = of.elements * kSize;
      table.room = of.ranks * of.elements * kSize;
    }
  };
  // Start of the elements of rank `from` for `rank`.
  const auto startOf = [](const Operation& of, uint32_t from, uint32_t rank) {
    uint64_t start = 0;
    for (uint32_t other = 0; other < rank; ++other) start += of.count(from, other);
    return start;
  };
  run<AllToAllV>("all-to-all-v", parts,
                 [&](const Operation& of, const auto& in, uint32_t rank, Values& out) {
                   for (uint32_t p = 0; p < of.ranks; ++p)
                     copy(in[p], startOf(of, p, rank), of.count(p, rank), out, p * of.elements);
                 });
  run<AllToAllVPacked>("all-to-all-v, packed", parts,
                       [&](const Operation& of, const auto& in, uint32_t rank, Values& out) {
                         uint64_t at = 0;
                         for (uint32_t p = 0; p < of.ranks; ++p) {
                           copy(in[p], startOf(of, p, rank), of.count(p, rank), out, at);
                           at += of.count(p, rank);
                         }
                       });
  // Its last rank has too little room, so that nothing moves anywhere.
  const auto tooLittle = [&](Operation& of) {
    parts(of);
    uint64_t needed = 0;
    for (uint32_t p = 0; p < of.ranks; ++p) needed += of.count(p, of.ranks - 1);
    of.parts(of.ranks - 1).room = needed * kSize - 1;
  };
  run<AllToAllVPacked>("all-to-all-v, packed, refused", tooLittle,
                       [](const Operation&, const auto&, uint32_t, Values&) {});
  const auto gathered = [](Operation& of) {
    for (uint32_t rank = 0; rank < of.ranks; ++rank) {
      uint64_t start = 0;
      for (uint32_t other = 0; other < of.ranks; ++other) {
        const uint64_t bytes = of.count(other, 0) * kSize;
        of.parts(rank).in(other) = of.parts(rank).out(other) = {start, bytes};
        start += bytes;
      }
      of.parts(rank).largest = of.elements * kSize;
    }
  };
  const Expected all = [](const Operation& of, const auto& in, uint32_t, Values& out) {
    uint64_t at = 0;
    for (uint32_t p = 0; p < of.ranks; ++p) {
      copy(in[p], 0, of.count(p, 0), out, at);
      at += of.count(p, 0);
    }
  };
  run<AllGatherV>("all-gather-v", gathered, all);
  run<Eager<AllGatherVPull>>("all-gather-v, eager", gathered, all);
  const Expected own = [](const Operation& of, const auto& in, uint32_t rank, Values& out) {
    uint64_t at = 0;
    for (uint32_t other = 0; other < rank; ++other) at += of.count(other, 0);
    for (uint32_t p = 0; p < of.ranks; ++p) add(in[p], at, of.count(rank, 0), out, p == 0);
  };
  run<ReduceScatterV>("reduce-scatter-v", gathered, own);
  run<Eager<ReduceScatterV>>("reduce-scatter-v, eager", gathered, own);
}

// Tables of a transfer of two phases. Phase 1 copies each rank's first part to its right neighbour,
// and phase 2 writes the sum of both to the second part. A signal counts both.
class TransferTables {
 public:
  explicit TransferTables(Operation& of) {
    const uint64_t part = of.elements;
    tables_.resize(of.ranks);
    for (uint32_t rank = 0; rank < of.ranks; ++rank) {
      const uint32_t right = (rank + 1) % of.ranks;
      std::vector<uint64_t>& words = tables_[rank];
      const uint64_t copies = ChunkItem::wordsOf(1, 1, 1);
      words = {2 | uint64_t{1} << 32, ChunkTable::kHeadWords + 3, 0, copies,
               copies + ChunkItem::wordsOf(1, 1, 2)};
      const auto head = [&](uint32_t phase, uint64_t sources) {
        const uint64_t i32 = static_cast<uint64_t>(DType::kI32);
        words.insert(words.end(), {i32 << 8 | uint64_t{1} << 16 | uint64_t{phase} << 32,
                                   1 | sources << 32, part * sizeof(int32_t), part});
      };
      const auto view = [&](uint32_t at, const int32_t* data, bool isTarget) {
        words.push_back(at | static_cast<uint64_t>(DType::kI32) << 32);
        words.push_back(Operation::placeOf(data).word);
        if (isTarget) words.push_back(Operation::placeOf(&of.counters[at]).word);
        words.push_back(1);
      };
      head(0, 1);
      view(right, of.out[right].data(), true);
      view(rank, of.in[rank].data(), false);
      head(1, 2);
      view(rank, of.out[rank].data() + part, true);
      view(rank, of.out[rank].data(), false);
      view(rank, of.in[rank].data(), false);
      of.setTable(rank, words.data());
    }
    of.launch.phases = 2;
  }

 private:
  std::vector<std::vector<uint64_t>> tables_;
};

TEST_P(InLineKernels, MoveChunksOfTransfers) {
  std::unique_ptr<TransferTables> tables;
  run<Redistribute>(
      "redistribute", [&](Operation& of) { tables = std::make_unique<TransferTables>(of); },
      [](const Operation& of, const auto& in, uint32_t rank, Values& out) {
        const Values& left = in[(rank + of.ranks - 1) % of.ranks];
        Values sum = left;
        add(in[rank], 0, of.elements, sum, false);
        copy(left, 0, of.elements, out, 0);
        copy(sum, 0, of.elements, out, of.elements);
        EXPECT_EQ(2, of.counters[rank].word);
      });
}

TEST_P(InLineKernels, PassABarrier) {
  run<Barrier>("barrier", [](const Operation&, const auto&, uint32_t, Values&) {});
}

TEST_P(InLineKernels, OfADeviceWaitForPeersUntilTheHostStopsThem) {
  Operation operation(*GetParam(), "barrier", 0);
  operation.resetLines();
  Barrier::plan(operation.launch);
  OffloadedOperation offloaded = {};
  offloaded.stop = reinterpret_cast<uint64_t>(&operation.counters[0].word);
  offloaded.stopValue = 7;
  Position at;
  const auto ends = [&] {
    return goOnOffloaded<KernelList<Barrier>>(offloaded, operation.launch, operation.lineOf(0, 0),
                                              at);
  };
  {
    const checked::Core::Running runs(operation.core(0, 0));
    EXPECT_FALSE(ends());
    operation.counters[0].word = 7;
    EXPECT_TRUE(ends());
  }
  EXPECT_FALSE(at.left);
  operation.core(0, 0).finish();
  EXPECT_EQ(operation.machine.report(), "");
}

// Each block of phase 1 reads what another core of its rank wrote in phase 0, and nobody else.
struct OwnPhases {
  static uint32_t phases(const Launch&) { return 2; }
  static void plan(Launch& launch) { launch.cut(1, 1); }
  static uint32_t blocks(const Launch& launch, uint32_t) { return launch.ranks; }
  static uint32_t needs(const Launch&, uint32_t, uint32_t, uint32_t) { return kNobody; }
  static void phase(const Launch& launch, uint32_t rank, uint32_t block, uint32_t k) {
    uint8_t* in = const_cast<uint8_t*>(launch.in(rank));
    uint8_t* out = launch.out(rank);
    const uint64_t other = (block + 1) % launch.ranks * launch.bytes;
    if (k == 0) put({out + block * launch.bytes, in + block * launch.bytes, launch.bytes});
    if (k == 1) put({in + block * launch.bytes, out + other, launch.bytes});
  }
  static uint32_t leavesAfter(const Launch&, uint32_t) { return kNobody; }
};

TEST_P(InLineKernels, FollowTheirRanksOwnCores) {
  run<OwnPhases>("own phases", [](const Operation&, const auto& in, uint32_t rank, Values& out) {
    out = in[rank];
  });
}

TEST_P(InLineKernels, ReachALineThatWraps) {
  Operation operation(*GetParam(), "looks", 0);
  const checked::Core::Running runs(operation.core(0, 0));
  const uint32_t words[] = {0,          1,          0x100,      0x3fffffff, 0x40000000,
                            0x7fffff00, 0x7fffffff, 0x80000000, 0x80000001, 0x80000100,
                            0xbfffffff, 0xffffff00, 0xffffffff};
  for (const uint32_t want : words) {
    for (const uint32_t seen : words) {
      operation.counters[0].word = static_cast<int32_t>(seen);
      comm::Signal signal(&operation.counters[0].word);
      EXPECT_EQ(static_cast<int32_t>(seen - want) >= 0, reachedInLine(signal, want))
          << seen << " as " << want;
    }
  }
}

// One rank puts and adds, and tells the other, which gets what it finds.
TEST_P(InLineKernels, MoveFromOneSide) {
  for (const uint64_t seed : seeds()) {
    SCOPED_TRACE(std::string(GetParam()->name) + ", seed " + std::to_string(seed));
    Operation operation(*GetParam(), "one-sided", seed);
    const auto length = static_cast<int64_t>(operation.elements);
    const int64_t one = 1;
    const auto view = [&](Values& of) {
      return StridedView{of.data(), DType::kI32, 1, &length, &one};
    };
    Values expected = operation.in[0];
    add(operation.in[1], 0, operation.elements, expected, false);
    comm::Signal signal(&operation.counters[1].word);
    {
      const checked::Core::Running runs(operation.core(0, 0));
      oneSidedMove(view(operation.out[1]), view(operation.in[0]));
      oneSidedNotify(signal.data(), 1);
    }
    {
      const checked::Core::Running runs(operation.core(1, 0));
      ASSERT_TRUE(comm::TTEST(signal, 1, comm::WaitCmp::GE));
      pipe_barrier(PIPE_ALL);
      oneSidedAccumulate(view(operation.out[1]), view(operation.in[1]));
      oneSidedNotify(&operation.counters[0].word, 1);
    }
    {
      const checked::Core::Running runs(operation.core(0, 0));
      comm::Signal back(&operation.counters[0].word);
      ASSERT_TRUE(comm::TTEST(back, 1, comm::WaitCmp::GE));
      pipe_barrier(PIPE_ALL);
      oneSidedMove(view(operation.out[0]), view(operation.out[1]));
      operation.core(0, 0).finish();
    }
    operation.core(1, 0).finish();
    ASSERT_EQ(operation.machine.report(), "");
    expected.resize(operation.elements);
    operation.out[0].resize(operation.elements);
    ASSERT_TRUE(expected == operation.out[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(On, InLineKernels, testing::Values(&checked::kA2A3, &checked::kA5),
                         [](const auto& of) { return of.param->name; });

}  // namespace in_line_test
}  // namespace windlass
