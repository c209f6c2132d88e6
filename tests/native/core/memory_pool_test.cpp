// SPDX-License-Identifier: Apache-2.0
// Memory pools: a rank's pieces against a slow model, and pools that ranks make, lose and drop, as
// threads and as processes. Collectives of pieces are in ordinary_memory_test.cpp.
#include "native/memory/memory_pool.h"
#include "tests/native/collective_calls.h"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>

#include "native/base/free_memory.h"
#include "native/memory/memory.h"
#include "tests/native/core/forked_rank.h"
#include "tests/native/core/held.h"
#include "tests/native/core/windows.h"

namespace windlass_test {
namespace memory_pool_test {

using windlass::kPage;
using windlass::MemoryPool;

constexpr uint64_t kLineBytes = MemoryPool::kAlignment;

// Pages from `memory` on that have memory in any process.
std::vector<bool> resident(const void* memory, uint64_t pages) {
  std::vector<unsigned char> found(pages);
  if (mincore(const_cast<void*>(memory), pages * kPage, found.data()) != 0) std::abort();
  std::vector<bool> all;
  for (const unsigned char page : found) all.push_back((page & 1) != 0);
  return all;
}

uint64_t countResident(const void* memory, uint64_t pages) {
  const std::vector<bool> all = resident(memory, pages);
  return static_cast<uint64_t>(std::count(all.begin(), all.end(), true));
}

// A pool over pages of its own.
class Pages {
 public:
  explicit Pages(uint64_t pages)
      : pool(pages * kPage), count(pages),
        memory(static_cast<unsigned char*>(windlass::mapMemory(pages * kPage, windlass::kSparse))) {
    if (memory == nullptr) std::abort();
    pool.layAt(memory);
  }
  ~Pages() { windlass::unmapMemory(memory, count * kPage); }
  Pages(const Pages&) = delete;

  MemoryPool pool;
  const uint64_t count;
  unsigned char* const memory;
};

// Who has each line of a pool.
class Model {
 public:
  explicit Model(uint64_t lines) : owners_(lines) {}

  static uint64_t linesOf(uint64_t bytes) {
    return bytes == 0 ? 1 : (bytes + kLineBytes - 1) / kLineBytes;
  }
  // Runs of lines that nobody has: start and length.
  std::vector<std::pair<uint64_t, uint64_t>> runs() const {
    std::vector<std::pair<uint64_t, uint64_t>> all;
    for (uint64_t line = 0; line < owners_.size(); ++line) {
      if (owners_[line] != 0) continue;
      if (line == 0 || owners_[line - 1] != 0) all.emplace_back(line, 0);
      ++all.back().second;
    }
    return all;
  }
  // The first of the shortest that are long enough; where there is none, the end.
  uint64_t bestFor(uint64_t lines) const {
    uint64_t best = owners_.size(), length = UINT64_MAX;
    for (const auto& [start, count] : runs()) {
      if (count < lines || count >= length) continue;
      best = start;
      length = count;
    }
    return best;
  }
  void give(uint64_t start, uint64_t lines, int owner) {
    std::fill_n(owners_.begin() + static_cast<int64_t>(start), lines, owner);
  }
  uint64_t used() const {
    return owners_.size() - static_cast<uint64_t>(std::count(owners_.begin(), owners_.end(), 0));
  }
  uint64_t largest() const {
    uint64_t most = 0;
    for (const auto& run : runs()) most = std::max(most, run.second);
    return most;
  }
  std::vector<bool> pages() const {
    std::vector<bool> all(owners_.size() * kLineBytes / kPage);
    for (uint64_t line = 0; line < owners_.size(); ++line)
      if (owners_[line] != 0) all[line * kLineBytes / kPage] = true;
    return all;
  }

 private:
  std::vector<int> owners_;
};

struct Piece {
  unsigned char* memory;
  uint64_t bytes;
  int id;

  unsigned char at(uint64_t i) const {
    return static_cast<unsigned char>(1 + (static_cast<uint64_t>(id) * 37 + i) % 255);
  }
  void fill() const {
    for (uint64_t i = 0; i < bytes; ++i) memory[i] = at(i);
  }
  bool isWhole() const {
    for (uint64_t i = 0; i < bytes; ++i)
      if (memory[i] != at(i)) return false;
    return true;
  }
  bool isZero() const {
    return std::all_of(memory, memory + bytes, [](unsigned char byte) { return byte == 0; });
  }
};

uint64_t randomBytes(std::mt19937_64& random) {
  constexpr uint64_t kBytes[] = {0, 1, 63, 64, 65, 1000, 4032, 4095, 4096, 4097, 8192, 20'000};
  return random() % 2 == 0 ? kBytes[random() % std::size(kBytes)] : random() % 70'000;
}

TEST(MemoryPool, GivesWhatASlowModelSays) {
  constexpr uint64_t kPages = 64;
  Pages pages(kPages);
  Model model(kPages * kPage / kLineBytes);
  std::mt19937_64 random(seed());
  std::vector<Piece> pieces;
  int refused = 0;
  const int steps = longForm() ? 100'000 : kSlow > 1 ? 300 : 1'500;
  for (int id = 1; id <= steps; ++id) {
    // In turns more is taken, and more given back.
    if (pieces.empty() || random() % 10 < (id / 100 % 2 == 0 ? 7u : 3u)) {
      Piece piece = {nullptr, randomBytes(random), id};
      const uint64_t lines = Model::linesOf(piece.bytes);
      const uint64_t expected = model.bestFor(lines);
      void* memory = nullptr;
      Error error;
      const int code = pages.pool.take(piece.bytes, &memory, &error);
      if (expected * kLineBytes == kPages * kPage) {
        ++refused;
        ASSERT_EQ(WL_RESOURCE, code) << "step " << id;
        ASSERT_TRUE(contains(error.message, "take " + std::to_string(piece.bytes) + " bytes"));
        const uint64_t free = kPages * kPage - model.used() * kLineBytes;
        ASSERT_TRUE(contains(error.message, std::to_string(free) + " are free, " +
                                                std::to_string(model.largest() * kLineBytes) +
                                                " of them side by side"));
      } else {
        ASSERT_EQ(WL_OK, code) << error.message;
        piece.memory = static_cast<unsigned char*>(memory);
        ASSERT_EQ(pages.memory + expected * kLineBytes, piece.memory) << "step " << id;
        ASSERT_TRUE(piece.isZero()) << "step " << id;
        piece.fill();
        model.give(expected, lines, id);
        pieces.push_back(piece);
      }
    } else {
      const size_t which = random() % pieces.size();
      const Piece piece = pieces[which];
      ASSERT_TRUE(piece.isWhole()) << "step " << id;
      Error error;
      ASSERT_EQ(WL_OK, pages.pool.giveBack(piece.memory, &error)) << error.message;
      model.give(static_cast<uint64_t>(piece.memory - pages.memory) / kLineBytes,
                 Model::linesOf(piece.bytes), 0);
      pieces[which] = pieces.back();
      pieces.pop_back();
    }
    ASSERT_EQ(model.used() * kLineBytes, pages.pool.used()) << "step " << id;
    ASSERT_EQ(model.pages(), resident(pages.memory, kPages)) << "step " << id;
  }
  EXPECT_GT(refused, 0);
  for (const Piece& piece : pieces) {
    EXPECT_TRUE(piece.isWhole());
    EXPECT_EQ(WL_OK, pages.pool.giveBack(piece.memory, nullptr));
  }
  EXPECT_EQ(0u, pages.pool.used());
  EXPECT_EQ(0u, countResident(pages.memory, kPages));
  void* whole = nullptr;
  EXPECT_EQ(WL_OK, pages.pool.take(kPages * kPage, &whole, nullptr));
  EXPECT_EQ(pages.memory, whole);
  EXPECT_EQ(kPages, countResident(pages.memory, kPages));
}

TEST(MemoryPool, IsOfAllThreads) {
  constexpr uint64_t kPages = 512;
  Pages pages(kPages);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(seed() + static_cast<uint64_t>(thread));
      std::vector<Piece> pieces;
      for (int step = 0; step < (kSlow > 1 ? 100 : 400); ++step) {
        Piece piece = {nullptr, randomBytes(random), 4 * step + thread};
        void* memory = nullptr;
        if (pages.pool.take(piece.bytes, &memory, nullptr) == WL_OK) {
          piece.memory = static_cast<unsigned char*>(memory);
          wrong += piece.isZero() ? 0 : 1;
          piece.fill();
          pieces.push_back(piece);
        }
        while (pieces.size() > random() % 12) {
          wrong += pieces.back().isWhole() ? 0 : 1;
          wrong += pages.pool.giveBack(pieces.back().memory, nullptr) == WL_OK ? 0 : 1;
          pieces.pop_back();
        }
      }
      for (const Piece& piece : pieces) {
        wrong += piece.isWhole() ? 0 : 1;
        wrong += pages.pool.giveBack(piece.memory, nullptr) == WL_OK ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, wrong);
  EXPECT_EQ(0u, pages.pool.used());
  EXPECT_EQ(0u, countResident(pages.memory, kPages));
}

TEST(MemoryPool, TakesBackWhatItHasGivenAndNothingElse) {
  Pages pages(4);
  void* piece = nullptr;
  Error error;
  ASSERT_EQ(WL_OK, pages.pool.take(1000, &piece, &error)) << error.message;
  int elsewhere = 0;
  for (void* wrong : {static_cast<void*>(static_cast<char*>(piece) + 64),
                      static_cast<void*>(static_cast<char*>(piece) + 1024),
                      static_cast<void*>(pages.memory + 4 * kPage), static_cast<void*>(&elsewhere),
                      static_cast<void*>(nullptr)}) {
    EXPECT_EQ(WL_INVALID_ARGUMENT, pages.pool.giveBack(wrong, &error));
    EXPECT_TRUE(contains(error.message, "is not what this memory pool has given"));
  }
  EXPECT_EQ(1024u, pages.pool.used());
  EXPECT_EQ(WL_OK, pages.pool.giveBack(piece, &error)) << error.message;
  EXPECT_EQ(WL_INVALID_ARGUMENT, pages.pool.giveBack(piece, &error));
  EXPECT_EQ(0u, pages.pool.used());
}

TEST(MemoryPool, ZeroesPagesThatTheProcessHasLocked) {
  Pages pages(4);
  Piece piece = {nullptr, 2 * kPage, 1};
  for (int round = 0; round < 2; ++round) {
    void* memory = nullptr;
    ASSERT_EQ(WL_OK, pages.pool.take(piece.bytes, &memory, nullptr));
    piece.memory = static_cast<unsigned char*>(memory);
    EXPECT_TRUE(piece.isZero());
    piece.fill();
    if (round == 0 && mlock(memory, piece.bytes) != 0) GTEST_SKIP() << "it may lock none";
    EXPECT_EQ(WL_OK, pages.pool.giveBack(memory, nullptr));
  }
}

TEST(MemoryPool, SaysWhatTheMachineLacks) {
  constexpr uint64_t kTooMuch = uint64_t{1} << 40;
  if (windlass::FreeMemory::look().bytes >= kTooMuch) GTEST_SKIP() << "this machine has more";
  Pages pages(kTooMuch / kPage);
  void* memory = nullptr;
  Error error;
  EXPECT_EQ(WL_RESOURCE, pages.pool.take(kTooMuch, &memory, &error));
  EXPECT_TRUE(contains(error.message, "cannot share 1099511627776 bytes of memory: "));
  EXPECT_TRUE(contains(error.message, " are free, says "));
  EXPECT_EQ(nullptr, memory);
  EXPECT_EQ(0u, pages.pool.used());
  EXPECT_EQ(0u, countResident(pages.memory, 1 << 20));
  EXPECT_EQ(WL_OK, pages.pool.take(kPage, &memory, &error)) << error.message;
}

// ---- pools of ranks ----------------------------------------------------------------------------

// One rank's.
class Pool {
 public:
  Pool(wl_comm_t* comm, uint64_t bytes) {
    Error error;
    EXPECT_EQ(WL_OK, wl_memory_pool_create(comm, bytes, 0, &handle, &error)) << error.message;
  }
  ~Pool() { wl_memory_pool_free(handle); }
  Pool(const Pool&) = delete;

  uint32_t* take(uint64_t bytes) {
    Error error;
    void* memory = nullptr;
    EXPECT_EQ(WL_OK, wl_memory_pool_alloc(handle, bytes, &memory, &error)) << error.message;
    return static_cast<uint32_t*>(memory);
  }
  void giveBack(void* memory) {
    Error error;
    EXPECT_EQ(WL_OK, wl_memory_pool_release(handle, memory, &error)) << error.message;
  }

  wl_memory_pool_t* handle = nullptr;
};

TEST(Pools, GiveEachRankWhatItAsksFor) {
  LocalRanks ranks(3);
  constexpr uint64_t kCount = 50'000;
  ranks.run([](int rank, wl_comm_t* comm) {
    Pool pool(comm, uint64_t{1} << 36);  // of which memory is taken as it is used
    Error error;
    std::vector<uint32_t*> others;
    for (int i = 0; i < 5 * rank; ++i) others.push_back(pool.take(1000));
    for (int round = 0; round < 3; ++round) {
      uint32_t* in = pool.take(4 * kCount);
      uint32_t* out = pool.take(3 * 4 * kCount);
      EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(in) % 64);
      EXPECT_EQ(0u, in[kCount - 1]);
      for (uint64_t i = 0; i < kCount; ++i)
        in[i] = stamp(static_cast<uint32_t>(round), static_cast<uint32_t>(rank), 0, i);
      ASSERT_EQ(WL_OK, allGather(comm, in, out, kCount, WL_U32, 0, &error)) << error.message;
      for (uint32_t from = 0; from < 3; ++from)
        for (uint64_t i = 0; i < kCount; ++i)
          ASSERT_EQ(stamp(static_cast<uint32_t>(round), from, 0, i), out[from * kCount + i]);
      pool.giveBack(in);
      pool.giveBack(out);
    }
    EXPECT_EQ(static_cast<uint64_t>(5 * rank) * 1024, wl_memory_pool_used(pool.handle));
    for (uint32_t* other : others) pool.giveBack(other);
    EXPECT_EQ(0u, wl_memory_pool_used(pool.handle));
    EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
}

TEST(Pools, MoveToAndFromWindows) {
  LocalRanks ranks(2);
  Windows windows(ranks, 4096, 0);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Pool pool(comm, 1 << 20);
    Error error;
    std::mt19937_64 random(1);
    const View row({100}, false, random);
    uint32_t* local = pool.take(400);
    for (uint32_t i = 0; i < 100; ++i) local[i] = stamp(1, static_cast<uint32_t>(rank), 0, i);
    const wl_tensor_t remote = row.tensor(windows.at(rank, 64), WL_U32);
    ASSERT_EQ(WL_OK, windows.put(rank, row.tensor(local, WL_U32), 1 - rank, remote, &error));
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    ASSERT_EQ(WL_OK, windows.get(rank, row.tensor(local, WL_U32), rank, remote, &error));
    for (uint32_t i = 0; i < 100; ++i)
      ASSERT_EQ(stamp(1, static_cast<uint32_t>(1 - rank), 0, i), local[i]);
    // An error about a peer's memory names the part that lies in a window.
    const wl_tensor_t piece = row.tensor(local, WL_U32);
    EXPECT_EQ(WL_INVALID_ARGUMENT, windows.put(rank, piece, 1 - rank, piece, &error));
    EXPECT_TRUE(contains(error.message, "reaches outside this rank's part of the window"));
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
  });
}

TEST(Pools, RefuseWhatIsWrong) {
  LocalRanks ranks(2);
  ranks.run([](int rank, wl_comm_t* comm) {
    Error error;
    wl_memory_pool_t* pool = nullptr;
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_pool_create(nullptr, 64, 0, &pool, &error));
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_pool_create(comm, 64, 0, nullptr, &error));
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_pool_create(comm, 64, -1, &pool, &error));
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_pool_create(comm, 0, 0, &pool, &error));
    EXPECT_TRUE(contains(error.message, "bytes is 0"));
    // All ranks get the same, and nothing is harmed.
    EXPECT_EQ(WL_RESOURCE, wl_memory_pool_create(comm, uint64_t{1} << 62, 0, &pool, &error));
    EXPECT_TRUE(contains(error.message, "more than a process can address"));
    EXPECT_EQ(WL_RESOURCE, wl_memory_pool_create(comm, UINT64_MAX, 0, &pool, &error));
    EXPECT_EQ(nullptr, pool);
    Pool small(comm, 100);
    void* memory = nullptr;
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_pool_alloc(nullptr, 1, &memory, &error));
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_pool_alloc(small.handle, 1, nullptr, &error));
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_pool_release(nullptr, memory, &error));
    EXPECT_EQ(WL_INVALID_ARGUMENT, wl_memory_pool_release(small.handle, nullptr, &error));
    EXPECT_EQ(0u, wl_memory_pool_used(nullptr));
    wl_memory_pool_free(nullptr);
    EXPECT_EQ(WL_RESOURCE, wl_memory_pool_alloc(small.handle, UINT64_MAX, &memory, &error));
    EXPECT_EQ(WL_RESOURCE, wl_memory_pool_alloc(small.handle, kPage + 1, &memory, &error));
    EXPECT_TRUE(contains(error.message, "of its 4096 on this rank 4096 are free, 4096 of them"));
    EXPECT_EQ(nullptr, memory);
    small.giveBack(small.take(kPage));
    EXPECT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    wl_window_t* window = nullptr;
    const int code = rank == 0 ? wl_memory_pool_create(comm, 8192, 0, &pool, &error)
                               : wl_window_create(comm, 8192, 0, &window, &error);
    EXPECT_EQ(WL_MISMATCH, code);
    EXPECT_TRUE(contains(error.message, "memory pool creation(8192 bytes)"));
  });
}

TEST(Pools, OfADeadCommunicatorGiveNothingMore) {
  LocalRanks ranks(2);
  ranks.run([](int rank, wl_comm_t* comm) {
    Error error;
    Pool pool(comm, 1 << 20);
    uint32_t* piece = pool.take(4000);
    piece[999] = 7;
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    if (rank == 0) {
      EXPECT_EQ(WL_OK, wl_comm_abort(comm, "enough", &error)) << error.message;
    }
    EXPECT_EQ(WL_ABORTED, callBarrier(comm, 0, &error));
    void* memory = nullptr;
    EXPECT_EQ(WL_ABORTED, wl_memory_pool_alloc(pool.handle, 64, &memory, &error));
    EXPECT_TRUE(contains(error.message, "the communicator of the memory pool is dead: rank 0"));
    EXPECT_EQ(nullptr, memory);
    EXPECT_EQ(7u, piece[999]);
    pool.giveBack(piece);
    EXPECT_EQ(0u, wl_memory_pool_used(pool.handle));
  });
}

TEST(PoolsOfProcesses, ComeAndGoAndLeaveNothing) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    const int before = Held::look().mappings;
    constexpr uint64_t kPages = 256;
    for (int round = 0; round < 40; ++round) {
      Pool pool(forked.comm, kPages * kPage);
      std::vector<uint32_t*> pieces;
      std::mt19937_64 random(static_cast<uint64_t>(100 * round + forked.rank));
      for (int i = 0; i < 5; ++i) pieces.push_back(pool.take(randomBytes(random)));
      uint32_t* in = pool.take(4'000);
      uint32_t* out = pool.take(3 * 4'000);
      const auto own = static_cast<uint32_t>(forked.rank);
      for (uint32_t i = 0; i < 1'000; ++i) in[i] = stamp(1, own, 0, i);
      CHECK_IN_CHILD(allGather(forked.comm, in, out, 1'000, WL_U32, 0, &error) == WL_OK);
      for (uint32_t i = 0; i < 3'000; ++i)
        CHECK_IN_CHILD(out[i] == stamp(1, i / 1000, 0, i % 1000));
      auto* part = reinterpret_cast<unsigned char*>(pieces[0]);  // it begins the rank's
      for (uint32_t* piece : pieces) pool.giveBack(piece);
      pool.giveBack(in);
      pool.giveBack(out);
      CHECK_IN_CHILD(countResident(part, kPages) == 0);
    }
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    CHECK_IN_CHILD(await([&] { return Held::look().mappings == before; }));
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, 0, 0}), results);
}

TEST(PoolsOfProcesses, OfAPeerThatDiedAreLikeItsWindows) {
  const std::vector<int> results = inProcesses(0, [](ForkedRank& forked) {
    Error error;
    CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
    const int before = Held::look().mappings;
    {
      Pool pool(forked.comm, 1 << 20);
      uint32_t* piece = pool.take(4'000);
      piece[999] = 7;
      CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_OK);
      if (forked.rank == 1) raise(SIGKILL);
      CHECK_IN_CHILD(callBarrier(forked.comm, 0, &error) == WL_PEER_LOST);
      void* memory = nullptr;
      CHECK_IN_CHILD(wl_memory_pool_alloc(pool.handle, 64, &memory, &error) == WL_PEER_LOST);
      CHECK_IN_CHILD(error.faulty_rank_count == 1 && error.faulty_ranks[0] == 1);
      CHECK_IN_CHILD(piece[999] == 7);
      wl_comm_t* left = nullptr;
      CHECK_IN_CHILD(wl_comm_shrink(forked.comm, 10'000 * kMs, &left, &error) == WL_OK);
      {
        Pool anew(left, 1 << 20);
        uint32_t* in = anew.take(40'000);
        std::fill_n(in, 10'000, 1u);
        CHECK_IN_CHILD(allReduce(left, in, in, 10'000, WL_U32, WL_SUM, WL_AUTO, 0, &error) ==
                       WL_OK);
        CHECK_IN_CHILD(in[9'999] == 2);
        CHECK_IN_CHILD(callBarrier(left, 0, &error) == WL_OK);
      }
      wl_comm_free(left);
      CHECK_IN_CHILD(piece[999] == 7);
      pool.giveBack(piece);
    }
    CHECK_IN_CHILD(await([&] { return Held::look().mappings == before; }));
    return 0;
  });
  EXPECT_EQ((std::vector<int>{0, -SIGKILL, 0}), results);
}

}  // namespace memory_pool_test
}  // namespace windlass_test
