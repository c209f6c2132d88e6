// SPDX-License-Identifier: Apache-2.0
// Tables of grids as they are read: what each row is of, what is refused and how, and that no text
// does more harm than that.
#include "native/device/grid_table.h"

#include <random>

#include "tests/native/core/local_ranks.h"

namespace windlass_test {
namespace grid_table_test {

using windlass::GridTable;

const std::string kWhole =
    "windlass-cuda-grids 1\n"
    "# of an H100\n"
    "9.0 132 all-reduce 8 8 0 4096 2\n"
    "9.0 132 all-reduce 8 8 65536 1048576 16\n"
    "\n"
    "  9.0\t132 all-reduce 8 8 4097 65535 4\n"
    "9.0 132 all-reduce 8 1 0 70368744177664 8\n"
    "8.0 108 all-reduce 8 8 0 4096 3\n"
    "9.0 132 transfer 2 2 0 4096 5\n"
    "end 6\n";

GridTable tableOf(const std::string& text) {
  GridTable table;
  Error error;
  EXPECT_EQ(table.read(text, &error), WL_OK) << error.message;
  return table;
}

// Of an all-reduce.
uint32_t coresOf(const GridTable& table, uint64_t bytes, windlass::DeviceKind device = {9, 0, 132},
                 uint32_t ranks = 8, uint32_t sharers = 8) {
  return table.cores({device, WL_OP_ALL_REDUCE, ranks, sharers, bytes});
}

TEST(GridTable, SaysWhatItsRowsDo) {
  const GridTable table = tableOf(kWhole);
  EXPECT_EQ(coresOf(table, 0), 2u);
  EXPECT_EQ(coresOf(table, 4096), 2u);
  EXPECT_EQ(coresOf(table, 4097), 4u);
  EXPECT_EQ(coresOf(table, 65535), 4u);
  EXPECT_EQ(coresOf(table, 65536), 16u);
  EXPECT_EQ(coresOf(table, 1048576), 16u);
  EXPECT_EQ(coresOf(table, 1048577), 0u);
  EXPECT_EQ(coresOf(table, 1048577, {9, 0, 132}, 8, 1), 8u);
  EXPECT_EQ(coresOf(table, 4096, {8, 0, 108}), 3u);
  // The table has no row for another device, number of ranks, number of ranks a device, or
  // operation.
  EXPECT_EQ(coresOf(table, 4096, {9, 0, 114}), 0u);
  EXPECT_EQ(coresOf(table, 4096, {9, 1, 132}), 0u);
  EXPECT_EQ(coresOf(table, 4096, {8, 0, 132}), 0u);
  EXPECT_EQ(coresOf(table, 4096, {}), 0u);
  EXPECT_EQ(coresOf(table, 4096, {9, 0, 132}, 4, 4), 0u);
  EXPECT_EQ(coresOf(table, 4096, {9, 0, 132}, 8, 4), 0u);
  EXPECT_EQ(table.cores({{9, 0, 132}, WL_OP_ALL_GATHER, 8, 8, 4096}), 0u);
  // A link's moves are transfers.
  for (const int32_t operation : {WL_OP_TRANSFER, WL_OP_LINK_MOVE})
    EXPECT_EQ(table.cores({{9, 0, 132}, operation, 2, 2, 4096}), 5u);
  EXPECT_EQ(table.rowsOf({9, 0, 132}), 5u);
  EXPECT_EQ(table.rowsOf({8, 0, 108}), 1u);
  EXPECT_EQ(table.rowsOf({8, 9, 128}), 0u);
  EXPECT_EQ(coresOf(tableOf("windlass-cuda-grids 1\nend 0"), 4096), 0u);
}

TEST(GridTable, TakesEveryOperationThatDevicesRun) {
  for (const char* name :
       {"all-to-all", "broadcast", "all-gather", "all-gather-dim", "reduce-scatter",
        "all-reduce", "scatter", "gather", "reduce", "all-to-all-v", "all-gather-v",
        "reduce-scatter-v", "reduce-scatter-dim", "scan", "exclusive-scan", "transfer",
        "expert-dispatch", "expert-combine"}) {
    const std::string text =
        std::string("windlass-cuda-grids 1\n9.0 132 ") + name + " 2 2 0 4 1\nend 1\n";
    EXPECT_EQ(tableOf(text).rowsOf({9, 0, 132}), 1u);
  }
}

// Lines 2 and 3 of a table.
struct Wrong {
  const char* lines;
  const char* why;
};

TEST(GridTable, SaysWhichLineIsWrong) {
  const Wrong all[] = {
      {"9 132 all-reduce 8 8 0 4 2\nend 1", "line 2: '9' is no compute capability"},
      {"9. 132 all-reduce 8 8 0 4 2\nend 1", "line 2: '9.' is no compute capability"},
      {"0.1 132 all-reduce 8 8 0 4 2\nend 1", "line 2: '0.1' is no compute capability"},
      {"9.0.1 132 all-reduce 8 8 0 4 2\nend 1", "line 2: '9.0.1' is no compute capability"},
      {"9.0 0 all-reduce 8 8 0 4 2\nend 1", "line 2: '0' is no number of multiprocessors"},
      {"9.0 -1 all-reduce 8 8 0 4 2\nend 1", "line 2: '-1' is no number of multiprocessors"},
      {"9.0 132 all-reduction 8 8 0 4 2\nend 1", "'all-reduction' is no operation that GPUs run"},
      {"9.0 132 barrier 8 8 0 4 2\nend 1", "'barrier' is no operation that GPUs run"},
      {"9.0 132 none 8 8 0 4 2\nend 1", "'none' is no operation that GPUs run"},
      {"9.0 132 all-reduce 65 8 0 4 2\nend 1", "'65' is no number of ranks, 1 to 64"},
      {"9.0 132 all-reduce 8 9 0 4 2\nend 1", "'9' is no number of ranks on a GPU"},
      {"9.0 132 all-reduce 8 8 x 4 2\nend 1", "'x' is not from how many bytes on"},
      {"9.0 132 all-reduce 8 8 5 4 2\nend 1", "'4' is not up to how many bytes"},
      {"9.0 132 all-reduce 8 8 0 70368744177665 2\nend 1", "is not up to how many bytes"},
      {"9.0 132 all-reduce 8 8 0 18446744073709551616 2\nend 1", "is not up to how many bytes"},
      {"9.0 132 all-reduce 8 8 0 4 0\nend 1", "'0' is no number of cores, 1 to 1024"},
      {"9.0 132 all-reduce 8 8 0 4 1025\nend 1", "'1025' is no number of cores, 1 to 1024"},
      {"9.0 132 all-reduce 8 8 0 4\nend 1", "'' is no number of cores, 1 to 1024"},
      {"9.0 132 all-reduce 8 8 0 4 2 2\nend 1", "'2' stands after the number of cores"},
      {"9.0 132 all-reduce 8 8 0 4 2\r\nend 1", "line 2: '0x0d' is a byte that"},
      {"# \xc3\xa9\nend 0", "line 2: '0xc3' is a byte that"},
      {"9.0 132 all-reduce 8 8 0 4 2", "line 3: it lacks its last line"},
      {"9.0 132 all-reduce 8 8 0 4 2\nend", "line 3: '' is not how many rows stand before"},
      {"9.0 132 all-reduce 8 8 0 4 2\nend 2", "line 3: '2' is not how many rows stand before"},
      {"9.0 132 all-reduce 8 8 0 4 2\nend 1 1", "'1' stands after the number of rows"},
      {"end 0\nend 0", "line 3: something stands after the last one"},
      {"9.0 132 all-reduce 8 8 4 9 2\n9.0 132 all-reduce 8 8 0 4 2\nend 2",
       "lines 2 and 3 are of the same bytes"},
      {"9.0 132 all-reduce 8 8 4 9 2\n9.0 132 all-reduce 8 8 4 9 2\nend 2",
       "lines 2 and 3 are of the same bytes"},
  };
  for (const Wrong& one : all) {
    GridTable table = tableOf(kWhole);
    Error error;
    EXPECT_EQ(table.read(std::string("windlass-cuda-grids 1\n") + one.lines, &error),
              WL_INVALID_ARGUMENT)
        << one.lines;
    EXPECT_TRUE(contains(error.message, one.why));
    // It is as it was.
    EXPECT_EQ(coresOf(table, 4096), 2u);
  }
}

TEST(GridTable, RefusesWhatIsNone) {
  GridTable table;
  Error error;
  EXPECT_EQ(table.read("", &error), WL_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(error.message, "line 1: it is empty"));
  EXPECT_EQ(table.read("{\"version\": 1}", &error), WL_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(error.message, "is not how a table begins, windlass-cuda-grids 1"));
  EXPECT_EQ(table.read("windlass-cuda-grids 2\nend 0\n", &error), WL_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(error.message, "'2' is its version, and this library reads 1"));
  std::string large = "windlass-cuda-grids 1\n";
  large.append(GridTable::kMostTextBytes, '\n');
  EXPECT_EQ(table.read(large, &error), WL_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(error.message, "a table of grids has 1048576 at most"));
  EXPECT_TRUE(table.isEmpty());
}

// Wherever it is cut, but for the last line's end.
TEST(GridTable, ACutOneIsRefused) {
  for (size_t length = 0; length + 1 < kWhole.size(); ++length) {
    GridTable table;
    Error error;
    EXPECT_EQ(table.read(kWhole.substr(0, length), &error), WL_INVALID_ARGUMENT)
        << kWhole.substr(0, length);
  }
}

// Rows that are read from a changed table or from garbage stay within their bounds.
TEST(GridTable, NoTextDoesHarm) {
  std::mt19937_64 random(seed());
  const std::string alphabet = "0123456789. \t\n#-endalrw\r\x01\xff";
  for (int round = 0; round < 20'000 / kSlow; ++round) {
    std::string text = kWhole;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % text.size();
      const char byte = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1 + random() % 30, byte);
          break;
        default:
          text.erase(at, 1 + random() % 30);
      }
      if (text.empty()) text = " ";
    }
    if (round % 4 == 0) {
      text.resize(random() % 200);
      for (char& each : text) each = static_cast<char>(random());
    }
    GridTable table;
    Error error;
    const int32_t code = table.read(text, &error);
    ASSERT_TRUE(code == WL_OK || code == WL_INVALID_ARGUMENT) << text;
    ASSERT_NE(code == WL_OK, error.message[0] != 0) << text;
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{5000}, uint64_t{1} << 46, ~uint64_t{0}})
      ASSERT_LE(coresOf(table, bytes), GridTable::kMostCores) << text;
  }
}

}  // namespace grid_table_test
}  // namespace windlass_test
