// SPDX-License-Identifier: Apache-2.0
// What a checked target says of kernels of a library that break a rule: it fails the launch, and
// docs/reference/kernel-mistakes.md quotes it.
#include <fstream>
#include <iterator>
#include <sstream>

#include "native/isa/checked/breach.h"
#include "tests/native/core/launches.h"

namespace windlass_test {
namespace mistakes_test {

// Removes the rank numbers: another rank comes first in each run.
std::string steady(std::string text) {
  const char* word = "rank ";
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
    at += std::strlen(word);
    const size_t end = text.find_first_not_of("0123456789", at);
    text.replace(at, (end == std::string::npos ? text.size() : end) - at, "N");
  }
  return text;
}

// Breaches that all ranks report for one launch on `count` elements, one line each.
std::vector<std::string> breachesOf(const std::string& name, int64_t count) {
  constexpr int kRanks = 3;
  LocalRanks ranks(kRanks);
  // Room behind the arguments, which no kernel of a launch may touch.
  Windows windows(ranks, static_cast<uint64_t>(count) * 4 * (kRanks + 1), 0);
  std::vector<std::string> messages(kRanks);
  ranks.run([&](int rank, wl_comm_t* comm) {
    const std::vector<float> in(static_cast<size_t>(count), 1.0f);
    Words words;
    words.tensor(WL_F32, in.data(), {count})
        .tensor(WL_F32, windows.at(rank, 0), {count}, windows.handle(rank))
        .scalar(WL_I32, 1);
    Error error;
    if (words.launch(comm, name, &error, 0, library("mistakes")) == WL_OK) return;
    EXPECT_EQ(WL_DEVICE, error.code) << error.message;
    EXPECT_TRUE(contains(error.message, ": launch #"));
    EXPECT_TRUE(contains(error.message, "seed of the pipes' order "));
    EXPECT_EQ(1, error.faulty_rank_count);
    messages[static_cast<size_t>(rank)] = error.message;
  });
  std::vector<std::string> lines;
  for (const std::string& message : messages) {
    const std::string begin = std::string(" breaks what ") + wl_target() + " allows: ";
    const size_t at = message.find(begin);
    if (at == std::string::npos) continue;
    std::istringstream rest(message.substr(at + begin.size()));
    for (std::string line; std::getline(rest, line);)
      if (line.find("kernel " + name + ", rank ") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

std::string page(const char* name) {
  std::ifstream file(std::string(WINDLASS_REFERENCE_PAGES) + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Each reported line stands on the page, in the words of a5sim.
void expectRefused(const std::string& name, int64_t count, const std::string& rule) {
  const std::vector<std::string> lines = breachesOf(name, count);
  ASSERT_FALSE(lines.empty());
  const std::string told = steady(page("kernel-mistakes.md"));
  for (const std::string& line : lines) {
    EXPECT_TRUE(contains(line.c_str(), rule + ": kernel " + name + ", rank "));
    if (std::string(wl_target()) == "a5sim") {
      EXPECT_TRUE(told.find(steady(line)) != std::string::npos)
          << "docs/reference/kernel-mistakes.md lacks\n" << line;
    }
  }
}

TEST(Mistakes, AreToldAsThePageOnKernelsSays) {
  if (!isChecked()) GTEST_SKIP() << "sim checks nothing";
  expectRefused("whole_tiles", 1000, "transfer-tile");
  expectRefused("offset_in_elements", 10'000, "tile-overlap");
  expectRefused("past_the_end", 1000, "outside-memory");
  expectRefused("no_flag", 1000, "tile-race");
  expectRefused("wrong_need", 1000, "memory-race");
  expectRefused("needs_nobody", 1000, "memory-race");
  expectRefused("leaves_at_once", 1000, "memory-race");
  expectRefused("stores_to_input", 1000, "not-written");
}

TEST(Mistakes, ThePageNamesEveryRule) {
  const std::string text = page("kernel-instructions.md");
  for (int rule = 0; rule < windlass::checked::kRules; ++rule) {
    const std::string name = nameOf(static_cast<windlass::checked::Rule>(rule));
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  }
}

// Two items of a rank run at once where it has two cores.
TEST(Mistakes, OfTwoBlocksOfARankAreFoundOnTwoCores) {
  if (!isChecked()) GTEST_SKIP() << "sim checks nothing";
  for (const int cores : {1, 2}) {
    wl_group_config_t config = {};
    config.struct_size = sizeof config;
    config.ranks = 1;
    config.blocks = cores;
    wl_group_t* group = nullptr;
    wl_comm_t* comm = nullptr;
    wl_window_t* window = nullptr;
    Error error;
    ASSERT_EQ(WL_OK, wl_group_create(&config, &group, &error)) << error.message;
    ASSERT_EQ(WL_OK, wl_group_join(group, 0, &comm, &error)) << error.message;
    ASSERT_EQ(WL_OK, wl_window_create(comm, 4000, 0, &window, &error)) << error.message;
    const std::vector<float> in(1000, 1.0f);
    Words words;
    words.tensor(WL_F32, in.data(), {1000})
        .tensor(WL_F32, wl_window_address(window, 0), {1000}, window)
        .scalar(WL_I32, 0);
    const int code = words.launch(comm, "same_from_both", &error, 0, library("mistakes"));
    EXPECT_EQ(cores == 1 ? WL_OK : WL_DEVICE, code) << error.message;
    if (cores == 2) {
      EXPECT_TRUE(contains(error.message, "memory-race: kernel same_from_both, rank 0, block "));
    }
    wl_window_free(window);
    wl_comm_free(comm);
    wl_group_release(group);
  }
}

// The report has room for all breaches, however often a rule is broken.
TEST(Mistakes, AreToldWhole) {
  if (!isChecked()) GTEST_SKIP() << "sim checks nothing";
  LocalRanks ranks(2);
  Windows windows(ranks, 64 * 160 * 4, 0);
  ranks.run([&](int rank, wl_comm_t* comm) {
    const std::vector<float> in(64 * 160, 1.0f);
    Words words;
    words.tensor(WL_F32, in.data(), {64 * 160})
        .tensor(WL_F32, windows.at(rank, 0), {64 * 160}, windows.handle(rank))
        .scalar(WL_I32, 1);
    Error error;
    EXPECT_EQ(WL_DEVICE, words.launch(comm, "one_tile_in_a_loop", &error, 0, library("mistakes")));
    EXPECT_TRUE(contains(error.message, "tile-race: kernel one_tile_in_a_loop, rank "));
    EXPECT_TRUE(contains(error.message, " more of tile-race\n"));
    EXPECT_TRUE(contains(error.message, "\non a"));
    // Without WINDLASS_PIPE_SEED the operation's number.
    const std::string message = error.message;
    const size_t at = message.find("launch #") + std::strlen("launch #");
    const std::string number = message.substr(at, message.find(' ', at) - at);
    EXPECT_TRUE(contains(error.message, "seed of the pipes' order " + number));
  });
}

}  // namespace mistakes_test
}  // namespace windlass_test
