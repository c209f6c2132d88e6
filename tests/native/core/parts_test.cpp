// SPDX-License-Identifier: Apache-2.0
// Collectives whose parts differ in size against slow references, bit for bit: ranks x counts x
// offsets x dtypes x in place or not, direct and by counted arrivals; over and over on one window;
// counts that disagree; too little room.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "tests/native/collective_calls.h"
#include "tests/native/core/local_ranks.h"

namespace windlass_test {
namespace parts_test {

using List = std::vector<int64_t>;
using Matrix = std::vector<List>;  // [from][to]

enum class Shape { kEven, kSome, kIdleRank, kSkewed, kNothing };
constexpr Shape kShapes[] = {Shape::kEven, Shape::kSome, Shape::kIdleRank, Shape::kSkewed,
                             Shape::kNothing};

// Counts of one shape, the same on every rank that draws from an equal generator.
List draw(Shape shape, size_t n, std::mt19937_64& random, int64_t large) {
  List counts(n);
  for (int64_t& count : counts) {
    if (shape == Shape::kEven) count = 17;
    if (shape == Shape::kSome) count = random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % 600);
    if (shape == Shape::kIdleRank) count = static_cast<int64_t>(random() % 90);
  }
  if (shape == Shape::kIdleRank) counts[random() % n] = 0;
  if (shape == Shape::kSkewed) counts[random() % n] = large;
  return counts;
}

Matrix drawMatrix(Shape shape, size_t n, std::mt19937_64& random, int64_t large) {
  Matrix counts(n, List(n));
  const size_t idle = random() % n;
  const size_t big = random() % n;
  for (size_t from = 0; from < n; ++from) {
    const bool sends = shape != Shape::kSkewed || from == big;
    if (sends) counts[from] = draw(shape, n, random, large);
    if (shape == Shape::kIdleRank) counts[from][idle] = 0;
  }
  if (shape == Shape::kIdleRank) counts[idle] = List(n);
  return counts;
}

List column(const Matrix& counts, size_t to) {
  List received;
  for (const List& row : counts) received.push_back(row[to]);
  return received;
}

int64_t sum(const List& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// Where parts of `counts` lie: side by side, or in random order with gaps.
List place(const List& counts, bool gaps, std::mt19937_64& random) {
  List order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  if (gaps) std::shuffle(order.begin(), order.end(), random);
  List offsets(counts.size());
  int64_t end = 0;
  for (const int64_t rank : order) {
    if (gaps) end += static_cast<int64_t>(random() % 9);
    offsets[static_cast<size_t>(rank)] = end;
    end += counts[static_cast<size_t>(rank)];
  }
  return offsets;
}

constexpr uint8_t kUntouched = 0x5c;
constexpr int64_t kRoom = 64;  // elements behind the last part and its gaps

uint8_t byteOf(uint32_t round, size_t from, size_t to, int64_t index) {
  return static_cast<uint8_t>(stamp(round, static_cast<uint32_t>(from), static_cast<uint32_t>(to),
                                    static_cast<uint64_t>(index)));
}

// One rank's buffer of elements of `width` bytes.
struct Buffer {
  Buffer(const List& counts, int64_t width)
      : elements(sum(counts) + 9 * static_cast<int64_t>(counts.size()) + kRoom),
        bytes(static_cast<size_t>(elements * width), kUntouched) {}

  uint8_t* at(int64_t byte) { return bytes.data() + byte; }

  int64_t elements;
  std::vector<uint8_t> bytes;
};

void write(uint8_t* to, int64_t bytes, uint32_t round, size_t from, size_t peer) {
  for (int64_t i = 0; i < bytes; ++i) to[i] = byteOf(round, from, peer, i);
}

// Reference for the bytes of rank `to` after the operation.
std::vector<uint8_t> expected(const Matrix& counts, size_t to, const List& offsets, int64_t width,
                              size_t size, uint32_t round) {
  std::vector<uint8_t> bytes(size, kUntouched);
  for (size_t from = 0; from < counts.size(); ++from) {
    write(bytes.data() + offsets[from] * width, counts[from][to] * width, round, from, to);
  }
  return bytes;
}

class Parts : public testing::TestWithParam<std::tuple<int, int>> {};

// Elements of a part that is cut into several pieces.
constexpr int64_t largeOf(int64_t width) {
  return 900'001 / width;
}

std::vector<std::pair<int, int>> widthsAndDTypes() {
  if (kSlow > 1) return {{4, WL_F32}};
  return {{1, WL_U8}, {2, WL_BF16}, {4, WL_F32}, {8, WL_F64}};
}

TEST_P(Parts, AllToAllMovesJustTheCountedElements) {
  const auto [ranksCount, cores] = GetParam();
  const auto n = static_cast<size_t>(ranksCount);
  LocalRanks ranks(ranksCount, 30'000'000'000, 0xfffffff0u, cores);
  uint32_t round = 0;
  for (const Shape shape : kShapes) {
    for (const auto& [width, dtype] : widthsAndDTypes()) {
      for (const bool gaps : {false, true}) {
        ++round;
        const uint64_t from = seed() + round;
        ranks.run([&, w = static_cast<int64_t>(width), type = dtype](int rank, wl_comm_t* comm) {
          const auto me = static_cast<size_t>(rank);
          std::mt19937_64 common(from);
          std::mt19937_64 own(from * 31 + me);
          const Matrix counts = drawMatrix(shape, n, common, largeOf(w));
          const List receives = column(counts, me);
          const List sendAt = place(counts[me], gaps, own);
          const List receiveAt = place(receives, gaps, own);
          Buffer in(counts[me], w), out(receives, w), packed(receives, w);
          for (size_t to = 0; to < n; ++to)
            write(in.at(sendAt[to] * w), counts[me][to] * w, round, me, to);
          Error error;
          ASSERT_EQ(WL_OK,
                    callAllToAllV(comm, in.at(0), static_cast<uint64_t>(in.elements),
                                  counts[me].data(), gaps ? sendAt.data() : nullptr, out.at(0),
                                  static_cast<uint64_t>(out.elements), receives.data(),
                                  gaps ? receiveAt.data() : nullptr, type, 0, &error))
              << error.message;
          EXPECT_EQ(expected(counts, me, receiveAt, w, out.bytes.size(), round), out.bytes)
              << "given, shape " << static_cast<int>(shape) << ", width " << w << ", rank " << rank;

          List received(n, -1);
          // The least room that holds it, on every other rank.
          const auto room = static_cast<uint64_t>(rank % 2 == 0 ? sum(receives) : packed.elements);
          ASSERT_EQ(WL_OK,
                    callAllToAllVPacked(comm, in.at(0), static_cast<uint64_t>(in.elements),
                                        counts[me].data(), gaps ? sendAt.data() : nullptr,
                                        packed.at(0), room, received.data(), type, 0, &error))
              << error.message;
          EXPECT_EQ(receives, received);
          const List sideBySide = place(receives, false, own);
          EXPECT_EQ(expected(counts, me, sideBySide, w, packed.bytes.size(), round), packed.bytes)
              << "packed, shape " << static_cast<int>(shape) << ", width " << w << ", rank "
              << rank;
        });
      }
    }
  }
}

TEST_P(Parts, AllGatherPutsEveryInputWhereItsCountSays) {
  const auto [ranksCount, cores] = GetParam();
  const auto n = static_cast<size_t>(ranksCount);
  LocalRanks ranks(ranksCount, 30'000'000'000, 0x7ffffff0u, cores);
  uint32_t round = 0;
  for (const Shape shape : kShapes) {
    for (const auto& [width, dtype] : widthsAndDTypes()) {
      for (const bool inPlace : {false, true}) {
        ++round;
        const uint64_t from = seed() + round;
        ranks.run([&, w = static_cast<int64_t>(width), type = dtype](int rank, wl_comm_t* comm) {
          const auto me = static_cast<size_t>(rank);
          std::mt19937_64 common(from);
          const List counts = draw(shape, n, common, largeOf(w));
          const List offsets = place(counts, false, common);
          Buffer part(counts, w), out(counts, w);
          uint8_t* in = inPlace ? out.at(offsets[me] * w) : part.at(0);
          write(in, counts[me] * w, round, me, 0);
          Error error;
          ASSERT_EQ(WL_OK, callAllGatherV(comm, in, static_cast<uint64_t>(counts[me]), out.at(0),
                                          static_cast<uint64_t>(sum(counts)), counts.data(), type,
                                          0, &error))
              << error.message;
          std::vector<uint8_t> want(out.bytes.size(), kUntouched);
          for (size_t s = 0; s < n; ++s)
            write(want.data() + offsets[s] * w, counts[s] * w, round, s, 0);
          EXPECT_EQ(want, out.bytes) << "shape " << static_cast<int>(shape) << ", width " << w
                                     << ", rank " << rank << (inPlace ? ", in place" : "");
          ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
        });
      }
    }
  }
}

// Values whose sum has the right bits only in the canonical order.
float floatAt(size_t rank, int64_t index) {
  const uint32_t bits = stamp(3, static_cast<uint32_t>(rank), 0, static_cast<uint64_t>(index));
  return (static_cast<float>(bits >> 8 & 0xffff) / 4096 - 8) *
         static_cast<float>(uint32_t{1} << bits % 13);
}

float folded(size_t n, int64_t index, int op) {
  float result = floatAt(0, index);
  for (size_t rank = 1; rank < n; ++rank) {
    const float next = floatAt(rank, index);
    if (op == WL_MAX) result = std::max(result, next);
    if (op == WL_MIN) result = std::min(result, next);
    if (op == WL_PRODUCT) result *= next;
    if (op == WL_SUM || op == WL_AVG) result += next;
  }
  return op == WL_AVG ? result / static_cast<float>(n) : result;
}

TEST_P(Parts, ReduceScatterKeepsTheCanonicalOrder) {
  const auto [ranksCount, cores] = GetParam();
  const auto n = static_cast<size_t>(ranksCount);
  LocalRanks ranks(ranksCount, 30'000'000'000, 1, cores);
  uint32_t round = 0;
  for (const Shape shape : kShapes) {
    for (int op = 0; op < (kSlow > 1 ? 1 : WL_REDUCE_OP_COUNT); ++op) {
      if (wl_dtype_can_reduce(WL_F32, op) == 0) continue;
      for (const bool inPlace : {false, true}) {
        const uint64_t from = seed() + ++round;
        ranks.run([&](int rank, wl_comm_t* comm) {
          const auto me = static_cast<size_t>(rank);
          std::mt19937_64 common(from);
          const List counts = draw(shape, n, common, largeOf(4));
          const List offsets = place(counts, false, common);
          const auto total = static_cast<size_t>(sum(counts));
          std::vector<float> whole(total + 1), part(static_cast<size_t>(counts[me]) + 1, -1);
          for (size_t i = 0; i < total; ++i) whole[i] = floatAt(me, static_cast<int64_t>(i));
          float* out = inPlace ? whole.data() + offsets[me] : part.data();
          Error error;
          ASSERT_EQ(WL_OK, callReduceScatterV(comm, whole.data(), total, out,
                                              static_cast<uint64_t>(counts[me]), counts.data(),
                                              WL_F32, op, 0, &error))
              << error.message;
          int64_t wrong = 0;
          for (int64_t i = 0; i < counts[me]; ++i) {
            const float want = folded(n, offsets[me] + i, op);
            wrong += std::memcmp(&want, out + i, sizeof want) != 0;
          }
          EXPECT_EQ(0, wrong) << "shape " << static_cast<int>(shape) << ", op " << op << ", rank "
                              << rank << (inPlace ? ", in place" : "");
          EXPECT_EQ(-1, part.back()) << "beyond the part";
          ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
        });
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RanksAndCores, Parts,
                         testing::Combine(testing::ValuesIn(rankCounts()),
                                          testing::Values(1, 64)));

// One window, other counts each time, counts and inputs rewritten as soon as a call returns, with
// operations of one size between.
TEST(PartsSoak, KeepTheirBitsOverAndOver) {
  for (const int count : {2, 3, 8}) {
    for (const int cores : {0, 64}) {
      const auto n = static_cast<size_t>(count);
      LocalRanks ranks(count, 30'000'000'000, 0x7fffffe0u, cores);
      std::atomic<int> wrong{0};
      const uint64_t first = seed();
      ranks.run([&](int rank, wl_comm_t* comm) {
        const auto me = static_cast<size_t>(rank);
        Error error;
        wl_window_t* window = nullptr;
        constexpr int64_t kHalf = 1 << 18;
        ASSERT_EQ(WL_OK, wl_window_create(comm, 2 * kHalf * 4, 0, &window, &error))
            << error.message;
        auto* in = static_cast<uint32_t*>(wl_window_address(window, rank));
        uint32_t* out = in + kHalf;
        std::mt19937_64 common(first);
        std::mt19937_64 own(first * 31 + me);
        for (uint32_t i = 0; i < 3000 / static_cast<uint32_t>(slow()) && wrong == 0; ++i) {
          const Shape shape = kShapes[common() % 5];
          Matrix counts = drawMatrix(shape, n, common, 12'000);
          const size_t kind = common() % 5;
          if (kind == 2 || kind == 3) counts.assign(n, counts[0]);
          List sends = counts[me];
          List receives = column(counts, me);
          const List sendAt = place(sends, false, common);
          const List receiveAt = place(receives, false, common);
          const auto value = [&](size_t from, size_t to, int64_t e) {
            return stamp(i, static_cast<uint32_t>(from), static_cast<uint32_t>(to),
                         static_cast<uint64_t>(e));
          };
          for (size_t to = 0; to < n; ++to) {
            for (int64_t e = 0; e < sends[to]; ++e) in[sendAt[to] + e] = value(me, to, e);
          }
          if (own() % 64 == 0) spinFor(static_cast<int64_t>(own() % 20'000));
          const auto sent = static_cast<uint64_t>(sum(sends));
          const auto room = static_cast<uint64_t>(sum(receives));
          int code = WL_OK;
          if (kind == 0) {
            code = callAllToAllV(comm, in, sent, sends.data(), nullptr, out, room,
                                 receives.data(), nullptr, WL_U32, 0, &error);
          } else if (kind == 1) {
            List received(n);
            code = callAllToAllVPacked(comm, in, sent, sends.data(), nullptr, out, room,
                                       received.data(), WL_U32, 0, &error);
            wrong += received != receives;
          } else if (kind == 2) {
            code = callAllGatherV(comm, in + sendAt[me], static_cast<uint64_t>(sends[me]), out,
                                  sent, sends.data(), WL_U32, 0, &error);
          } else if (kind == 3) {
            code = callReduceScatterV(comm, in, sent, out, static_cast<uint64_t>(sends[me]),
                                      sends.data(), WL_U32, WL_SUM, 0, &error);
          } else {
            uint32_t root = rank == 0 ? i : 0;
            code = broadcast(comm, &root, &root, 1, WL_U32, 0, WL_AUTO, 0, &error);
            wrong += root != i;
          }
          if (code != WL_OK) {
            ADD_FAILURE() << "rank " << rank << " iteration " << i << ": " << error.message;
            ++wrong;
            break;
          }
          std::memset(in, 0xee, sent * 4);
          if (kind == 2) {
            for (size_t from = 0; from < n; ++from) {
              for (int64_t e = 0; e < sends[from]; ++e)
                wrong += out[sendAt[from] + e] != value(from, from, e);
            }
          } else if (kind == 3) {
            for (int64_t e = 0; e < sends[me]; ++e) {
              uint32_t total = 0;
              for (size_t from = 0; from < n; ++from) total += value(from, me, e);
              wrong += out[e] != total;
            }
          } else if (kind < 2) {
            for (size_t from = 0; from < n; ++from) {
              for (int64_t e = 0; e < receives[from]; ++e)
                wrong += out[receiveAt[from] + e] != value(from, me, e);
            }
          }
          std::fill(sends.begin(), sends.end(), -7);
          std::fill(receives.begin(), receives.end(), -7);
        }
        wl_window_free(window);
      });
      EXPECT_EQ(0, wrong) << count << " ranks, " << cores << " cores";
    }
  }
}

testing::AssertionResult says(const char* text, const std::string& part) {
  if (std::strstr(text, part.c_str()) != nullptr) return testing::AssertionSuccess();
  return testing::AssertionFailure() << '"' << text << "\" does not say \"" << part << '"';
}

// Rank 2 expects one element more from rank 0 than it sends. Parts are large enough that ranks run
// one another's items.
TEST(PartsMismatch, NamesBothSidesAndBothCountsBeforeThePeersElementsAreWritten) {
  constexpr int64_t kPart = 50'000;
  constexpr uint64_t kAll = 4 * kPart;
  // In six attempts, each rank comes last once with either number of cores.
  const int attempts = few() ? 6 : 42;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const int cores = attempt % 2 == 0 ? 1 : 64;
    std::vector<std::vector<uint32_t>> outs(3, std::vector<uint32_t>(kAll, 7));
    const std::vector<uint32_t> in(kAll, 1);
    LocalRanks ranks(3, 20'000'000'000, 1, cores);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      const List sends(3, kPart);
      List receives(3, kPart);
      if (rank == 2) receives[0] = kPart + 1;
      // Each rank comes last in some attempts: also the one that has no part in it.
      if (rank == attempt / 2 % 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(WL_MISMATCH, callAllToAllV(comm, in.data(), kAll, sends.data(), nullptr,
                                           outs[static_cast<size_t>(rank)].data(), kAll,
                                           receives.data(), nullptr, WL_U32, 0, &error));
      EXPECT_TRUE(
          says(error.message, "rank 0 sends 50000 elements to rank 2, which expects 50001"));
      EXPECT_EQ(2, error.faulty_rank_count);
      EXPECT_EQ(0, error.faulty_ranks[0]);
      EXPECT_EQ(2, error.faulty_ranks[1]);
      EXPECT_EQ(WL_MISMATCH, callBarrier(comm, 0, &error)) << "a dead communicator stays dead";
    });
    const auto fromRankZero = outs[2].begin();
    ASSERT_EQ(kPart + 1, std::count(fromRankZero, fromRankZero + kPart + 1, 7u))
        << cores << " cores, attempt " << attempt;
  }
}

TEST(PartsMismatch, OfCountsThatMustBeAlikeNamesTheFirst) {
  for (const int cores : {1, 64}) {
    for (const uint64_t unit : {1, 5000}) {
      for (const bool gather : {true, false}) {
        std::vector<std::vector<uint32_t>> buffers(6, std::vector<uint32_t>(4 * 5000));
        LocalRanks ranks(3, 20'000'000'000, 1, cores);
        ranks.run([&](int rank, wl_comm_t* comm) {
          Error error;
          const auto me = static_cast<size_t>(rank);
          const auto one = static_cast<int64_t>(unit);
          const List counts = rank == 1 ? List{one, 2 * one, one} : List{one, one, 2 * one};
          const auto total = static_cast<uint64_t>(sum(counts));
          const auto own = static_cast<uint64_t>(counts[me]);
          uint32_t* whole = buffers[me].data();
          uint32_t* part = buffers[me + 3].data();
          int code = gather ? callAllGatherV(comm, part, own, whole, total, counts.data(), WL_U32,
                                             0, &error)
                            : callReduceScatterV(comm, whole, total, part, own, counts.data(),
                                                 WL_U32, WL_SUM, 0, &error);
          // A rank that needs no peer's word may return first, and then it learns at its next call.
          if (code == WL_OK) code = callBarrier(comm, 0, &error);
          EXPECT_EQ(WL_MISMATCH, code);
          EXPECT_TRUE(says(error.message, "; counts[1] is " + std::to_string(unit)) ||
                      says(error.message, "; counts[1] is " + std::to_string(2 * unit)))
              << error.message;
        });
      }
    }
  }
}

TEST(PartsMismatch, OfGivenAndPacked) {
  LocalRanks ranks(2);
  std::vector<std::vector<float>> buffers(4, std::vector<float>(8));
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    const auto me = static_cast<size_t>(rank);
    const List counts(2, 1);
    List received(2);
    const float* in = buffers[me].data();
    float* out = buffers[me + 2].data();
    EXPECT_EQ(WL_MISMATCH, rank == 0
                               ? callAllToAllV(comm, in, 8, counts.data(), nullptr, out, 8,
                                               counts.data(), nullptr, WL_F32, 0, &error)
                               : callAllToAllVPacked(comm, in, 8, counts.data(), nullptr, out, 8,
                                                     received.data(), WL_F32, 0, &error));
    EXPECT_TRUE(says(error.message, "rank 0 calls all-to-all-v(f32, receive counts given)"));
    EXPECT_TRUE(says(error.message, "rank 1 calls all-to-all-v(f32, packed as it comes)"));
  });
}

// Too little room on one rank: nobody's output changes, everybody learns who and how much, and the
// same call with more room works.
TEST(PackedRoom, TooLittleIsSaidOnEveryRankAndNothingMoves) {
  for (const int cores : {1, 64}) {
    for (const int n : {1, 2, 5}) {
      for (const uint64_t unit : {1, 40'000}) {
        LocalRanks ranks(n, 20'000'000'000, 1, cores);
        ranks.run([&](int rank, wl_comm_t* comm) {
          Error error;
          const auto size = static_cast<uint64_t>(n);
          const List counts(size, static_cast<int64_t>(unit));
          List received(size);
          const std::vector<uint32_t> in(size * unit, static_cast<uint32_t>(rank));
          std::vector<uint32_t> out(size * unit, 77);
          const bool tight = rank == n - 1;
          ASSERT_EQ(WL_INVALID_ARGUMENT,
                    callAllToAllVPacked(comm, in.data(), in.size(), counts.data(), nullptr,
                                        out.data(), out.size() - (tight ? 1 : 0),
                                        received.data(), WL_U32, 0, &error));
          EXPECT_TRUE(says(error.message, "out of rank " + std::to_string(n - 1) +
                                              " has room for " + std::to_string(size * unit - 1) +
                                              " elements, and " + std::to_string(size * unit) +
                                              " come to it"));
          EXPECT_EQ(std::vector<uint32_t>(size * unit, 77), out);
          ASSERT_EQ(WL_OK, callAllToAllVPacked(comm, in.data(), in.size(), counts.data(),
                                               nullptr, out.data(), out.size(), received.data(),
                                               WL_U32, 0, &error))
              << error.message;
          EXPECT_EQ(counts, received);
          for (uint64_t i = 0; i < out.size(); ++i)
            ASSERT_EQ(static_cast<uint32_t>(i / unit), out[i]);
        });
      }
    }
  }
}

TEST(PartsArguments, AreCheckedBeforeAnythingIsSent) {
  LocalRanks ranks(3);
  wl_comm_t* comm = ranks.comms[1];
  std::vector<float> in(12), out(12);
  const auto refused = [&](const List& sends, const List& sendAt, const List& receives,
                           const List& receiveAt, const std::string& part) {
    Error error;
    EXPECT_EQ(WL_INVALID_ARGUMENT,
              callAllToAllV(comm, in.data(), in.size(), sends.data(),
                            sendAt.empty() ? nullptr : sendAt.data(), out.data(), out.size(),
                            receives.data(), receiveAt.empty() ? nullptr : receiveAt.data(),
                            WL_F32, 0, &error));
    EXPECT_TRUE(says(error.message, part));
  };
  refused({4, 4, -1}, {}, {4, 4, 4}, {}, "allToAllv: sendCounts[2] is -1");
  refused({4, 4, 4}, {}, {4, 4, -9}, {}, "allToAllv: receiveCounts[2] is -9");
  refused({4, 4, 5}, {}, {4, 4, 4}, {},
          "allToAllv: sendCounts[2] is 5; from element 8 on, in holds 4 more");
  refused({4, 4, INT64_MAX}, {}, {4, 4, 4}, {}, "allToAllv: sendCounts[2] is 9223372036854775807");
  refused({4, 4, 4}, {0, 4, -8}, {4, 4, 4}, {}, "allToAllv: sendOffsets[2] is -8");
  refused({4, 4, 0}, {0, 4, 13}, {4, 4, 4}, {},
          "allToAllv: sendOffsets[2] is 13; in holds 12 elements");
  refused({4, 4, 4}, {}, {4, 4, 4}, {0, 9, 4},
          "allToAllv: receiveCounts[1] is 4; from element 9 on, out");
  refused({4, 4, 4}, {}, {4, 4, 4}, {0, 4, 7},
          "allToAllv: receiveOffsets[2] is 7: the part overlaps that of rank 1");
  refused({4, 4, 4}, {}, {4, 4, 4}, {8, 0, 0},
          "allToAllv: receiveOffsets[2] is 0: the part overlaps that of rank 1");
  refused({1, 4, 4}, {}, {4, 3, 4}, {}, "allToAllv: sendCounts[1] is 4 and receiveCounts[1] is 3");
  const List counts = {1, 4, 1};
  List received(3);
  const auto count = counts.data();
  const auto check = [&](int code, const Error& error, const std::string& part) {
    EXPECT_EQ(WL_INVALID_ARGUMENT, code);
    EXPECT_TRUE(says(error.message, part));
  };
  Error e;
  check(callAllToAllV(comm, in.data(), 12, nullptr, nullptr, out.data(), 12, count, nullptr,
                      WL_F32, 0, &e),
        e, "allToAllv: sendCounts is NULL");
  check(callAllToAllV(comm, in.data(), 12, count, nullptr, in.data() + 2, 8, count, nullptr,
                      WL_F32, 0, &e),
        e, "allToAllv: in (12 x f32) overlaps out (8 x f32); they must be apart");
  check(callAllToAllVPacked(comm, in.data(), 12, count, nullptr, in.data() + 2, 8,
                            received.data(), WL_F32, 0, &e),
        e, "allToAllv: in (12 x f32) overlaps out (8 x f32); they must be apart");
  check(callAllToAllVPacked(comm, in.data(), 5, count, nullptr, out.data(), 8, received.data(),
                            WL_F32, 0, &e),
        e, "allToAllv: sendCounts[2] is 1");
  // Without received_counts, the call states what it receives.
  check(callAllToAllVPacked(comm, in.data(), 12, count, nullptr, out.data(), 8, nullptr, WL_F32,
                            0, &e),
        e, "allToAllv: receiveCounts is NULL");
  check(callAllGatherV(comm, in.data(), 4, out.data(), 7, count, WL_F32, 0, &e), e,
        "allGatherv: out holds 7 elements, and counts add to 6");
  check(callAllGatherV(comm, in.data(), 3, out.data(), 6, count, WL_F32, 0, &e), e,
        "allGatherv: in holds 3 elements, and counts[1] is 4");
  check(callAllGatherV(comm, out.data(), 4, out.data(), 6, count, WL_F32, 0, &e), e,
        "allGatherv: in (4 x f32) overlaps out (6 x f32); in place, in is part 1 of out");
  check(callReduceScatterV(comm, in.data(), 6, in.data() + 2, 4, count, WL_F32, WL_SUM, 0, &e), e,
        "reduceScatterv: out (4 x f32) overlaps in (6 x f32); in place, out is part 1 of in");
  check(callReduceScatterV(comm, in.data(), 6, out.data(), 4, count, WL_F32, 9, 0, &e), e,
        "reduceScatterv: op 9");
  EXPECT_EQ(WL_UNSUPPORTED,
            callReduceScatterV(comm, in.data(), 6, out.data(), 4, count, WL_BOOL, WL_SUM, 0, &e));
  EXPECT_EQ(WL_OK, wl_comm_status(comm, &e)) << e.message;
}

}  // namespace parts_test
}  // namespace windlass_test
