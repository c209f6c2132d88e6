// SPDX-License-Identifier: Apache-2.0
// The words of bound plans: what is read from them is what was cut into them, wherever they lie;
// and what ranks make together of boxes that several of them take.
#include <algorithm>
#include <map>

#include "native/transfer/table.h"
#include "native/transfer/transfer.h"
#include "tests/native/core/comms.h"
#include "tests/native/transfer/views.h"

namespace windlass_test {
namespace table_test {

using windlass::ChunkItem;
using windlass::ChunkTable;
using windlass::DType;
using windlass::kMostPhases;
using windlass::WordList;

// visit(item, phase) for each item of an operation's table, block by block.
template <class Visit>
void forEachItem(const uint64_t* words, Visit&& visit) {
  const ChunkTable table = {words};
  for (uint32_t k = 0; k < table.phases(); ++k) {
    for (uint32_t b = 0; b < table.blocks(); ++b) {
      const uint64_t n = uint64_t{k} * table.blocks() + b;
      ChunkItem item = {table.start(n)};
      for (; item.words != table.start(n + 1); item.words += item.size()) visit(item, k);
    }
  }
}

// For each element of a box, a digest of its addresses at each target and source.
using Elements = std::vector<uint64_t>;

void addElements(const ChunkItem& item, Elements* elements) {
  int64_t index[windlass::kMaxDims] = {};
  const auto placeOf = [&](const uint64_t* view, const int64_t* strides) {
    int64_t offset = 0;
    for (uint32_t d = 0; d < item.ndim(); ++d) offset += index[d] * strides[d];
    const auto bytes = static_cast<int64_t>(windlass::sizeOf(ChunkItem::dtypeOf(view)));
    return ChunkItem::placeOf(view).word + static_cast<uint64_t>(offset * bytes);
  };
  for (;;) {
    uint64_t digest = 0;
    const auto add = [&](uint64_t place) { digest = (digest ^ place) * 0x9e3779b97f4a7c15u; };
    for (uint32_t t = 0; t < item.targets(); ++t)
      add(placeOf(item.target(t), ChunkItem::targetStrides(item.target(t))));
    for (uint32_t s = 0; s < item.sources(); ++s)
      add(placeOf(item.source(s), ChunkItem::sourceStrides(item.source(s))));
    elements->push_back(digest);
    uint32_t d = item.ndim();
    for (;;) {
      if (d == 0) return;
      --d;
      if (++index[d] < item.extents()[d]) break;
      index[d] = 0;
    }
  }
}

// A box at places that no other box has. Dimensions lie in any order.
WordList randomBox(uint64_t number, std::mt19937_64& random) {
  const uint64_t largest = longForm() ? 400'000 : 20'000;  // bytes that another extent multiplies
  const uint64_t ndim = random() % 4, targets = 1 + random() % 4, sources = 1 + random() % 3;
  const uint64_t phase = random() % 3 == 0 ? random() % 700 : random() % 3;
  std::vector<uint64_t> extents;
  uint64_t bytes = 2;
  for (uint64_t d = 0; d < ndim; ++d) {
    const uint64_t choices[] = {1, 2, 13, 64, 300};
    extents.push_back(bytes > largest ? 1 : choices[random() % 5]);
    bytes *= extents.back();
  }
  WordList words = {1 | uint64_t{12} << 8 | ndim << 16 | phase << 32, targets | sources << 32,
                    bytes};
  words.insert(words.end(), extents.begin(), extents.end());
  for (uint64_t v = 0; v < targets + sources; ++v) {
    const DType dtype = v < targets ? DType::kBF16 : DType::kF32;
    words.push_back(v | static_cast<uint64_t>(dtype) << 32);
    words.push_back((number * 8 + v + 1) << 32);
    if (v < targets) words.push_back(number << 20 | v << 4 | 8);
    std::vector<uint64_t> order(ndim), strides(ndim);
    for (uint64_t d = 0; d < ndim; ++d) order[d] = d;
    std::shuffle(order.begin(), order.end(), random);
    uint64_t step = 1;
    for (const uint64_t d : order) {
      strides[d] = step;
      step *= extents[d];
    }
    words.insert(words.end(), strides.begin(), strides.end());
  }
  return words;
}

// Work of an item: the bytes that it writes, or half of all that it moves. It is four times as much
// if rows of its target are not rows of its source.
uint64_t workOf(const ChunkItem& item) {
  const uint64_t written = item.bytes() * item.targets();
  const uint64_t elements = item.bytes() / sizeOf(ChunkItem::dtypeOf(item.target(0)));
  const uint64_t moved =
      written + elements * item.sources() * sizeOf(ChunkItem::dtypeOf(item.source(0)));
  for (uint32_t d = 0; d < item.ndim(); ++d) {
    const bool isRow = ChunkItem::targetStrides(item.target(0))[d] == 1 && item.extents()[d] > 1;
    if (isRow && ChunkItem::sourceStrides(item.source(0))[d] != 1)
      return 4 * std::max(written, moved / 2);
  }
  return std::max(written, moved / 2);
}

TEST(Table, HoldsEveryElementOfEveryBoxOnceWhereverItLies) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < (kSlow > 1 ? 1 : repetitions(4, 8)); ++round) {
    windlass::ItemMaker maker;
    std::map<uint64_t, WordList> boxes;  // by the place of the first target
    std::map<uint64_t, uint32_t> counts;
    for (uint64_t number = 0; number < 12; ++number) {
      WordList words = randomBox(number, random);
      const ChunkItem box = {words.data()};
      const uint64_t turn = random() % 9;
      for (uint32_t part = 0; part < box.targets(); ++part)
        counts[number] = maker.add(box, part, turn);
      boxes[number] = std::move(words);
    }
    windlass::PlanTable table;
    Error error;
    ASSERT_EQ(WL_OK, maker.finish(&table, &error)) << error.message;
    // The table as another rank may receive it.
    const WordList copy = table.words();
    std::map<uint64_t, Elements> found;
    std::map<uint64_t, uint32_t> items;
    const uint32_t operations = (table.phases() + kMostPhases - 1) / kMostPhases;
    for (uint32_t n = 0; n < operations; ++n) {
      const uint64_t* words = copy.data() + (table.ofOperation(n) - table.words().data());
      uint64_t work = 0;
      forEachItem(words, [&](const ChunkItem& item, uint32_t phase) {
        const uint64_t number = ((ChunkItem::placeOf(item.target(0)).word >> 32) - 1) / 8;
        const ChunkItem box = {boxes[number].data()};
        EXPECT_EQ(box.words[0], item.words[0]);
        EXPECT_EQ(box.words[1], item.words[1]);
        EXPECT_EQ(box.phase(), n * kMostPhases + phase);
        for (uint32_t t = 0; t < box.targets(); ++t) {
          EXPECT_EQ(box.target(t)[0], item.target(t)[0]);
          EXPECT_EQ(ChunkItem::signalOf(box.target(t)).word,
                    ChunkItem::signalOf(item.target(t)).word);
        }
        const size_t before = found[number].size();
        addElements(item, &found[number]);
        EXPECT_EQ(item.bytes(), 2 * (found[number].size() - before));
        work += workOf(item);
        ++items[number];
      });
      EXPECT_EQ(work, table.workBytes(n));
    }
    for (auto& [number, words] : boxes) {
      Elements expected;
      addElements({words.data()}, &expected);
      std::sort(expected.begin(), expected.end());
      std::sort(found[number].begin(), found[number].end());
      EXPECT_TRUE(expected == found[number]) << "box " << number;
      EXPECT_EQ(counts[number], items[number]);
    }
    // Beyond what this rank needs there is a table without items.
    const ChunkTable beyond = {table.ofOperation(operations)};
    EXPECT_EQ(0u, beyond.phases());
    EXPECT_EQ(0u, beyond.blocks());
    EXPECT_EQ(0u, table.workBytes(operations));
  }
}

// Each rank takes all of the next one's matrix, and all ranks take rank 0's.
TEST(Table, ABoxThatSeveralRanksTakeIsReadOnceByAllOfThem) {
  if (isChecked()) GTEST_SKIP() << "where each rank is a device, it writes its own targets alone";
  static constexpr int64_t kRows = 400, kColumns = 900;
  static constexpr uint64_t kBytes = kRows * kColumns * sizeof(float);
  for (const uint32_t cores : {1u, 64u}) {
    static constexpr uint32_t kRanks = 5;
    Comms comms(kRanks, cores);
    std::atomic<uint64_t> shared{0}, alone{0};
    comms.run([&](uint32_t rank, windlass::Comm& comm) {
      const auto matrix = [](std::vector<float>* memory) {
        memory->resize(kRows * kColumns);
        const auto at = reinterpret_cast<int64_t>(memory->data());
        return Words{WL_F32, 2, at, at, kBytes, kRows, kColumns, kColumns, 1};
      };
      std::vector<float> memory[3];
      const Words source = matrix(&memory[0]);
      Words targets = matrix(&memory[1]), chunks;
      for (const int64_t word : matrix(&memory[2])) targets.push_back(word);
      const int64_t next = (rank + 1) % kRanks;
      for (const int64_t from : {int64_t{0}, next == 0 ? 1 : next}) {
        const int64_t target = from == 0 ? 0 : 1;
        chunks.insert(chunks.end(), {0, target, WL_F32, WL_SUM, 2, 1, kRows, kColumns, 0, 0, from,
                                     0, 0, 0});
      }
      const wl_transfer_config_t config = configOf(source, 1, targets, 2, chunks, 2);
      Error error;
      windlass::Transfer transfer(comm);
      ASSERT_EQ(WL_OK, windlass::Transfer::create(comm, config, 0, &transfer, &error))
          << error.message;
      uint64_t own = 0;
      forEachItem(transfer.table().ofOperation(0), [&](const ChunkItem& item, uint32_t) {
        if (ChunkItem::rankOf(item.source(0)) == 0) {
          EXPECT_EQ(kRanks, item.targets());
          for (uint32_t t = 0; t < kRanks; ++t)
            EXPECT_EQ(t, ChunkItem::rankOf(item.target(t)));
          shared += item.bytes();
          own += item.bytes();
        } else {
          alone += item.bytes();
        }
      });
      EXPECT_GE(own, kBytes / kRanks / 2) << "rank " << rank << " does its share";
      for (size_t i = 0; i < memory[0].size(); ++i)
        memory[0][i] = static_cast<float>(i % 1000 + 1000 * rank);
      ASSERT_EQ(WL_OK, transfer.run(1, 0, &error)) << error.message;
      uint64_t wrong = 0;
      for (size_t i = 0; i < memory[0].size(); ++i) {
        wrong += memory[1][i] != static_cast<float>(i % 1000);
        wrong += memory[2][i] != static_cast<float>(i % 1000 + 1000 * (next == 0 ? 1u : next));
      }
      EXPECT_EQ(0u, wrong);
      uint64_t moved[2] = {};
      transfer.moved(static_cast<int32_t>(rank), moved, 2);
      EXPECT_EQ(kBytes, moved[0]);
      EXPECT_EQ(kBytes, moved[1]);
    });
    EXPECT_EQ(kBytes, shared) << cores << " cores";
    // Ranks 0 and 4 take rank 1's.
    EXPECT_EQ((kRanks - 1) * kBytes, alone) << cores << " cores";
  }
}

}  // namespace table_test
}  // namespace windlass_test
