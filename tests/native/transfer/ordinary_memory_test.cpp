// SPDX-License-Identifier: Apache-2.0
// Transfers of ranks in several processes, forked, whose sources and targets lie in windows and on
// the heap, direct and staged, compared bit for bit with a loop over elements.
#include <algorithm>
#include <cerrno>
#include <csignal>

#include "native/base/dtype.h"
#include "native/base/target.h"
#include "tests/native/collective_calls.h"
#include "tests/native/core/members.h"
#include "tests/native/isa/reference.h"
#include "tests/native/transfer_configs.h"

namespace windlass_test {
namespace ordinary_memory_test {

using windlass::DType;
using windlass::ReduceOp;
using Extents = std::vector<int64_t>;

uint64_t productOf(const Extents& extents) {
  uint64_t product = 1;
  for (const int64_t extent : extents) product *= static_cast<uint64_t>(extent);
  return product;
}

// visit(coordinates) for each element of such a box, in row-major order.
template <class Visit>
void forEachElement(const Extents& extents, Visit&& visit) {
  Extents at(extents.size());
  for (uint64_t left = productOf(extents); left > 0; --left) {
    visit(static_cast<const Extents&>(at));
    for (size_t d = at.size(); d-- > 0 && ++at[d] == extents[d];) at[d] = 0;
  }
}

Extents sumOf(const Extents& a, const Extents& b) {
  Extents sum(a.size());
  std::transform(a.begin(), a.end(), b.begin(), sum.begin(), std::plus<>());
  return sum;
}

// A tensor of a rank, strided, with gaps: on the heap, or in the window from `at` on.
class Tensor {
 public:
  Tensor(DType dtype, const Extents& shape, unsigned char* window, std::mt19937_64& random)
      : dtype_(dtype), shape_(shape), strides_(shape.size()) {
    std::vector<size_t> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    if (random() % 2 == 0) std::shuffle(order.begin(), order.end(), random);
    int64_t step = random() % 4 == 0 ? 2 : 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides_[order[i]] = step;
      step = step * shape[order[i]] + static_cast<int64_t>(random() % 3);
    }
    bytes_ = static_cast<uint64_t>(step) * sizeOf(dtype) + 64;
    heap_.resize(random() % 3 == 0 ? 0 : bytes_);
    data_ = heap_.empty() ? window : heap_.data();
    if (bytes_ > kWindowBytes / 4) std::abort();
    std::fill_n(data_, bytes_, 0xe5);
  }

  unsigned char* at(const Extents& coordinates) const {
    int64_t offset = 0;
    for (size_t d = 0; d < coordinates.size(); ++d) offset += coordinates[d] * strides_[d];
    return data_ + static_cast<uint64_t>(offset) * sizeOf(dtype_);
  }
  void describe(Words* words) const {
    addBinding(static_cast<int32_t>(dtype_), data_, bytes_, shape_, strides_, words);
  }

 private:
  DType dtype_;
  Extents shape_;
  Extents strides_;
  uint64_t bytes_ = 0;
  std::vector<unsigned char> heap_;
  unsigned char* data_ = nullptr;
};

// A transfer as all ranks know it: each rank has a source of one shape, and a target cut along its
// first dimension into pieces, each a fold of boxes of some ranks' sources.
struct Plan {
  static constexpr uint64_t kPeriod = 509;
  static constexpr uint32_t kVersions = 4;

  struct Source {
    int rank;
    Extents start;
  };
  struct Piece {
    int64_t first;   // row of the target
    Extents length;
    std::vector<Source> sources;
    int stagedBy;  // the rank that folds and casts it before, -1: nobody
  };

  DType dtype;   // of sources
  DType wire;
  DType target;
  ReduceOp op;
  Extents shape;        // of each source
  Extents targetShape;  // of each target
  std::vector<std::vector<Piece>> pieces;  // of each rank's target
  std::vector<std::vector<uint64_t>> elements;  // of each rank's source

  Plan(std::mt19937_64& random, int ranks) {
    const windlass::Limits& limits = windlass::kTarget.limits;
    do {
      dtype = static_cast<DType>(random() % windlass::kDTypeCount);
      target = random() % 2 == 0 ? dtype : static_cast<DType>(random() % windlass::kDTypeCount);
      op = static_cast<ReduceOp>(random() % windlass::kReduceOpCount);
    } while (!windlass::canCast(dtype, target) || !limits.hasCast(dtype, target));
    wire = random() % 2 == 0 ? dtype : target;
    const size_t ndim = 1 + random() % 3;
    const bool isLarge = random() % (isChecked() ? 20 : 3) == 0;
    constexpr int64_t kMost[2][3] = {{3'000, 60, 14}, {100'000, 250, 40}};
    const int64_t most = kMost[isLarge ? 1 : 0][ndim - 1];
    const auto extent = [&] {
      return 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(most));
    };
    for (size_t d = 0; d < ndim; ++d) shape.push_back(extent());
    targetShape = shape;
    targetShape[0] = extent();
    for (int rank = 0; rank < ranks; ++rank) {
      auto& own = elements.emplace_back();
      for (uint64_t i = 0; i < kPeriod + 7 * kVersions; ++i)
        own.push_back(windlass::reference::randomElement(dtype, random));
    }
    const bool folds = windlass::canReduce(dtype, op) && limits.hasReduce(dtype, op);
    for (int rank = 0; rank < ranks; ++rank) {
      auto& own = pieces.emplace_back();
      for (int64_t row = 0; row < targetShape[0];) {
        Piece piece = {row, shape, {}, -1};
        const int64_t rows = std::min(shape[0], targetShape[0] - row);
        piece.length[0] = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
        const uint64_t sources = folds && random() % 3 == 0 ? 2 + random() % 2 : 1;
        for (uint64_t s = 0; s < sources; ++s) {
          Extents start(ndim);
          start[0] = static_cast<int64_t>(random() %
                                          static_cast<uint64_t>(shape[0] - piece.length[0] + 1));
          piece.sources.push_back({static_cast<int>(random() % static_cast<unsigned>(ranks)),
                                   start});
        }
        if (random() % 3 == 0) piece.stagedBy = piece.sources[0].rank;
        row += piece.length[0];
        own.push_back(piece);
      }
    }
  }

  // Element of the source of `rank` in run `version`. They repeat after a prime.
  uint64_t element(int rank, uint64_t index, uint32_t version) const {
    return elements[static_cast<size_t>(rank)][index % kPeriod + version * 7];
  }
  uint64_t indexOf(const Extents& at) const {
    uint64_t index = 0;
    for (size_t d = 0; d < at.size(); ++d)
      index = index * static_cast<uint64_t>(shape[d]) + static_cast<uint64_t>(at[d]);
    return index;
  }
  static uint64_t castOf(DType from, DType to, uint64_t code) {
    return from == to ? code : windlass::reference::cast(from, to, code);
  }
  // Expected element of the piece at these coordinates.
  uint64_t expected(const Piece& piece, const Extents& at, uint32_t version) const {
    std::vector<uint64_t> codes;
    for (const Source& source : piece.sources)
      codes.push_back(element(source.rank, indexOf(sumOf(source.start, at)), version));
    const uint64_t bits = 8 * sizeOf(dtype);
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    const uint64_t value =
        codes.size() == 1 ? codes[0] : windlass::reference::fold(dtype, codes, op) & mask;
    return castOf(wire, target, castOf(dtype, wire, value));
  }
};

// Description of the transfer that one rank states.
struct Stated {
  Words sources, targets, chunks, stages;
  uint64_t chunkCount = 0, stageCount = 0;

  Stated(const Plan& plan, int rank, const Tensor& source, const Tensor& target) {
    source.describe(&sources);
    target.describe(&targets);
    const auto number = [](auto value) { return static_cast<int64_t>(value); };
    const size_t ndim = plan.shape.size();
    const auto add = [&](const Extents& values) {
      chunks.insert(chunks.end(), values.begin(), values.end());
    };
    const auto addSources = [&](const Plan::Piece& piece) {
      for (const Plan::Source& from : piece.sources) {
        chunks.insert(chunks.end(), {from.rank, 0});
        add(from.start);
      }
    };
    const ReduceOp op = plan.op;
    int64_t stageBytes = 0;
    for (size_t reader = 0; reader < plan.pieces.size(); ++reader) {
      std::vector<int64_t> staged(plan.pieces.size());  // by each rank for this reader, so far
      for (const Plan::Piece& piece : plan.pieces[reader]) {
        const auto sourceCount = number(piece.sources.size());
        if (piece.stagedBy == rank) {
          stages.insert(stages.end(), {0, number(plan.target), number(ndim), stageBytes, 1});
          stages.insert(stages.end(), piece.length.begin(), piece.length.end());
          stages.push_back(number(reader));
          stageBytes += number((productOf(piece.length) * sizeOf(plan.target) + 63) / 64 * 64);
          chunks.insert(chunks.end(), {0, -(number(stageCount) + 1), number(plan.wire), number(op),
                                       number(ndim), sourceCount});
          add(piece.length);
          add(Extents(ndim));
          addSources(piece);
          ++stageCount;
          ++chunkCount;
        }
        if (static_cast<int>(reader) == rank) {
          Extents at(ndim);
          at[0] = piece.first;
          const bool isStaged = piece.stagedBy >= 0;
          chunks.insert(chunks.end(),
                        {isStaged ? 1 : 0, 0, number(isStaged ? plan.target : plan.wire),
                         number(op), number(ndim), isStaged ? 1 : sourceCount});
          add(piece.length);
          add(at);
          if (isStaged) {
            int64_t& n = staged[static_cast<size_t>(piece.stagedBy)];
            chunks.insert(chunks.end(), {piece.stagedBy, -(n++ + 1)});
            add(Extents(ndim));
          } else {
            addSources(piece);
          }
          ++chunkCount;
        } else if (piece.stagedBy >= 0) {
          ++staged[static_cast<size_t>(piece.stagedBy)];
        }
      }
    }
  }

  wl_transfer_config_t config() const {
    wl_transfer_config_t config = configOf(sources, 1, targets, 1, chunks, chunkCount);
    config.stages = stages.data();
    config.stage_words = stages.size();
    config.stage_count = stageCount;
    return config;
  }
};

// 0, or 1 and what is wrong.
int runPlan(const Plan& plan, Member& member, std::mt19937_64& random, std::string* wrong) {
  const auto me = static_cast<size_t>(member.rank);
  const Tensor source(plan.dtype, plan.shape, member.window, random);
  const Tensor target(plan.target, plan.targetShape, member.window + kWindowBytes / 2, random);
  const Stated stated(plan, member.rank, source, target);
  const wl_transfer_config_t config = stated.config();
  wl_transfer_t* transfer = nullptr;
  Error error;
  int code = wl_transfer_create(member.comm, &config, 0, &transfer, &error);
  const auto goesOn = [&] { return code == WL_OK && wrong->empty(); };
  for (uint32_t version = 1; goesOn() && version < Plan::kVersions; ++version) {
    forEachElement(plan.shape, [&](const Extents& at) {
      const uint64_t value = plan.element(member.rank, plan.indexOf(at), version);
      std::memcpy(source.at(at), &value, sizeOf(plan.dtype));
    });
    code = wl_transfer_run(transfer, version, 0, &error);
    for (const Plan::Piece& piece : plan.pieces[me]) {
      if (code != WL_OK) break;
      Extents first(plan.shape.size());
      first[0] = piece.first;
      forEachElement(piece.length, [&](const Extents& at) {
        const uint64_t wanted = plan.expected(piece, at, version);
        const uint64_t got = windlass::reference::loadElement(target.at(sumOf(first, at)),
                                                              sizeOf(plan.target));
        if (got == wanted || !wrong->empty()) return;
        *wrong = "version " + std::to_string(version) + ", row " + std::to_string(at[0]) +
                 " of the piece at " + std::to_string(piece.first) + ": " + std::to_string(got) +
                 ", not " + std::to_string(wanted);
      });
    }
    uint64_t moved = 0;
    if (code == WL_OK) code = wl_transfer_progress(transfer, member.rank, &moved, 1, &error);
    if (code == WL_OK && moved != productOf(plan.targetShape) * sizeOf(plan.target))
      *wrong = std::to_string(moved) + " bytes moved";
  }
  if (code != WL_OK) *wrong = error.message;
  // Peers go on to the next one's registration, unlike what they would do without this one.
  wl_transfer_free(transfer);
  return wrong->empty() ? 0 : 1;
}

class OrdinaryMemoryOfTransfers : public testing::TestWithParam<Spread> {};

TEST_P(OrdinaryMemoryOfTransfers, MovesDirectAndStaged) {
  const Spread spread = GetParam();
  NEEDS_READING_FOR(spread.use)
  const uint64_t chosen = seed();
  const int most = isChecked() ? 100 : 600;
  const int plans = kSlow > 1 || isChecked() ? repetitions(5, most) : repetitions(12, most);
  const Members all(spread, [&](Member& member) {
    std::mt19937_64 shared(chosen);
    for (int i = 0; i < plans; ++i) {
      const Plan plan(shared, spread.ranks);
      std::mt19937_64 own(chosen + static_cast<uint64_t>(1000 * i + member.rank + 1));
      std::string wrong;
      if (runPlan(plan, member, own, &wrong) == 0) continue;
      std::fprintf(stderr, "seed %llu, rank %d, plan %d, dtype %d to %d by %d, op %d: %s\n",
                   static_cast<unsigned long long>(chosen), member.rank, i,
                   static_cast<int>(plan.dtype), static_cast<int>(plan.target),
                   static_cast<int>(plan.wire), static_cast<int>(plan.op), wrong.c_str());
      return 1;
    }
    return 0;
  });
  EXPECT_EQ(allWell(spread), all.results) << "seed " << chosen;
}

std::vector<Spread> spreads() {
  std::vector<Spread> all;
  // Where each rank is a device, all stage.
  for (const char* use : {"readv", "stage"}) {
    if (isChecked() && std::strcmp(use, "readv") == 0) continue;
    all.insert(all.end(), {{2, 2, 64, 0, use}, {3, 3, 1, 0, use}, {2, 2, 64, 2, use}});
#if !defined(__SANITIZE_THREAD__)
    // ThreadSanitizer does not see how the other process orders what threads of this one do.
    all.insert(all.end(), {{2, 4, 64, 0, use}, {2, 5, 2, 1, use}});
#endif
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Spreads, OrdinaryMemoryOfTransfers, testing::ValuesIn(spreads()));

// A transfer of one rank's memory on the heap.
template <class T>
struct OnHeap {
  OnHeap(uint64_t sources, T value, uint64_t targets) : source(sources, value), target(targets) {}
  ~OnHeap() { wl_transfer_free(transfer); }
  OnHeap(const OnHeap&) = delete;
  OnHeap& operator=(const OnHeap&) = delete;

  // The source has an element every `step` elements of its memory.
  int create(const Member& member, int64_t step, const Words& chunks, uint64_t count,
             Error* error) {
    const auto viewOf = [](const std::vector<T>& memory, int64_t every) {
      Words words;
      addBinding(sizeof(T) == 1 ? WL_U8 : WL_U32, memory.data(), memory.size() * sizeof(T),
                 {static_cast<int64_t>(memory.size()) / every}, {every}, &words);
      return words;
    };
    const Words from = viewOf(source, step), to = viewOf(target, 1);
    const wl_transfer_config_t config = configOf(from, 1, to, 1, chunks, count);
    return wl_transfer_create(member.comm, &config, 0, &transfer, error);
  }

  std::vector<T> source;
  std::vector<T> target;
  wl_transfer_t* transfer = nullptr;
};

// Each rank takes what all have, side by side.
struct Gather : OnHeap<uint32_t> {
  Gather(const Member& member, int64_t count, Error* error)
      : OnHeap(static_cast<uint64_t>(count), static_cast<uint32_t>(member.rank) + 1,
               static_cast<uint64_t>(count * member.spread.ranks)) {
    code = create(member, 1, gatherChunks(member.spread.ranks, count),
                  static_cast<uint64_t>(member.spread.ranks), error);
  }

  int code;
};

TEST(OrdinaryMemoryOfTransfersThatFail, MoveNothingWhereReadingIsForcedAndAnotherStages) {
  if (isChecked()) GTEST_SKIP() << "where each rank is a device, all stage";
  const Spread spread = {2, 2, 64, 0, nullptr};
  const Members all(
      spread,
      [](Member& member) {
        Error error;
        Gather gather(member, 1000, &error);
        CHECK_IN_MEMBER(gather.code == WL_OK);
        for (int64_t attempt = 0; attempt < 3; ++attempt) {
          int64_t version = member.rank == 0 ? attempt : WL_ANY_VERSION;
          CHECK_IN_MEMBER(wl_transfer_move(gather.transfer, 1, &version, 0, &error) ==
                          WL_UNSUPPORTED);
          CHECK_IN_MEMBER(contains(error.message, "was set to stage. Nothing has moved"));
          CHECK_IN_MEMBER(version == WL_ANY_VERSION);
          CHECK_IN_MEMBER(wl_transfer_begun(gather.transfer) == 0);
          CHECK_IN_MEMBER(wl_transfer_run(gather.transfer, 1, 0, &error) == WL_UNSUPPORTED);
        }
        CHECK_IN_MEMBER(callBarrier(member.comm, 0, &error) == WL_OK);
        const bool isUntouched = std::all_of(gather.target.begin(), gather.target.end(),
                                             [](uint32_t value) { return value == 0; });
        CHECK_IN_MEMBER(isUntouched);
        return 0;
      },
      [](int process) { setenv("WINDLASS_PEER_MEMORY", process == 0 ? "readv" : "stage", 1); });
  EXPECT_EQ(allWell(spread), all.results);
}

// A box over scattered memory takes many system calls, so its item stops in the middle.
TEST(OrdinaryMemoryOfTransfersThatFail, StopWithinABoxAtTheDeadline) {
  const Spread spread = {2, 2, 64, 0, "readv"};
  NEEDS_READING_FOR(spread.use)
  const Members all(spread, [](Member& member) {
    constexpr int64_t kCount = 1 << 18;
    constexpr int64_t kStep = 16;
    OnHeap<uint8_t> own(kCount * kStep, 7, kCount);
    const bool isReader = member.rank == 0;
    const Words chunks = {0, 0, WL_U8, WL_SUM, 1, 1, kCount, 0, 1, 0, 0};
    Error error;
    CHECK_IN_MEMBER(own.create(member, kStep, isReader ? chunks : Words(), isReader ? 1 : 0,
                               &error) == WL_OK);
    CHECK_IN_MEMBER(wl_transfer_run(own.transfer, 1, 0, &error) == WL_OK);
    CHECK_IN_MEMBER(own.target[0] == (isReader ? 7 : 0) && own.target.back() == own.target[0]);
    const int code = wl_transfer_run(own.transfer, 2, isReader ? 2 * kMs : 0, &error);
    CHECK_IN_MEMBER(code == WL_DEADLINE_EXCEEDED);
    uint64_t moved = 7;
    CHECK_IN_MEMBER(wl_transfer_progress(own.transfer, member.rank, &moved, 1, &error) == WL_OK);
    CHECK_IN_MEMBER(moved == 0);
    return 0;
  });
  EXPECT_EQ(allWell(spread), all.results);
}

TEST(OrdinaryMemoryOfTransfersThatFail, NameWhoDies) {
  for (const char* use : {"readv", "stage"}) {
    const Spread spread = {3, 3, 64, 0, use};
    NEEDS_READING_FOR(spread.use)
    const Members all(
        spread,
        [](Member& member) {
          Error error;
          Gather gather(member, 1'000'000 / kSlow, &error);
          int code = gather.code;
          const int64_t start = wl_clock_ns();
          for (uint64_t version = 1; code == WL_OK && wl_clock_ns() - start < 60'000 * kMs;
               ++version) {
            code = wl_transfer_run(gather.transfer, version, 0, &error);
          }
          CHECK_IN_MEMBER(code == WL_PEER_LOST);
          CHECK_IN_MEMBER(error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
          return 0;
        },
        {},
        [](const std::vector<pid_t>& children) {
          usleep(70'000);
          kill(children[1], SIGKILL);
        });
    EXPECT_EQ((std::vector<int>{0, -SIGKILL, 0}), all.results);
  }
}

}  // namespace ordinary_memory_test
}  // namespace windlass_test
