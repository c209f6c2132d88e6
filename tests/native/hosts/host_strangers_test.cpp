// SPDX-License-Identifier: Apache-2.0
// What reaches the port of a wire of whoever was not told its name: it is dropped, before anything
// it says is done.
#include <cstring>

#include "native/hosts/ucx/wire.h"
#include "tests/native/core/forks.h"

namespace windlass_test {
namespace host_strangers_test {

using windlass::Wire;

// A wire over loopback, and what came by it.
class End final : public windlass::WireEnds {
 public:
  End() {
    Error error;
    const windlass::WireSettings settings = {"lo", nullptr, nullptr};
    EXPECT_EQ(WL_OK, windlass::openWire(settings, *this, &wire_, &error)) << error.message;
  }

  Wire& wire() { return *wire_; }
  const std::vector<std::string>& came() const { return came_; }
  bool isAnyLost() const { return isAnyLost_; }
  std::vector<unsigned char> name() {
    Error error;
    std::vector<unsigned char> name;
    EXPECT_EQ(WL_OK, wire_->address(&name, &error)) << error.message;
    return name;
  }
  uint32_t connect(const std::vector<unsigned char>& name) {
    Error error;
    uint32_t peer = 0;
    EXPECT_EQ(WL_OK, wire_->connect(name.data(), name.size(), &peer, &error)) << error.message;
    return peer;
  }

 private:
  void arrived(Run first, Run second) override {
    std::string text(reinterpret_cast<const char*>(first.at), first.bytes);
    text.append(reinterpret_cast<const char*>(second.at), second.bytes);
    came_.push_back(std::move(text));
  }
  void lost(uint32_t, const char*) override { isAnyLost_ = true; }
  void lackMemory() override { ADD_FAILURE() << "no memory"; }

  std::unique_ptr<Wire> wire_;
  std::vector<std::string> came_;
  bool isAnyLost_ = false;
};

// Memory of 64 KiB that one end shares, and everything that another end does with it.
struct Moves {
  static constexpr uint64_t kBytes = uint64_t{64} << 10;
  static constexpr uint64_t kWordAt = 32 << 10;
  static constexpr uint64_t kWord = 0x1122334455667788;
  static constexpr uint32_t kRank = 3;
  static constexpr uint64_t kTurn = 9;

  // One of each: messages short and long, past what waits and not; puts, words, what lands, a get.
  void make(End& from, uint32_t peer, const std::vector<unsigned char>& key) {
    Error error;
    Wire& wire = from.wire();
    uint32_t region = 0;
    ASSERT_EQ(WL_OK, wire.reach(peer, key.data(), key.size(), &region, &error)) << error.message;
    const Wire::Part parts[] = {{"abc", 3}, {bytes.data(), 4096}};
    const Wire::Word word = {region, kWordAt + 8, kWord};
    ASSERT_TRUE(wire.send(peer, parts, 1, nullptr));
    ASSERT_TRUE(wire.send(peer, parts, 2, nullptr));
    ASSERT_TRUE(wire.send(peer, parts, 1, nullptr, Wire::Order::kPast));
    ASSERT_TRUE(wire.putWord({peer, region, kWordAt}, kWord, nullptr));
    ASSERT_TRUE(wire.put({peer, region, 0}, bytes.data(), 100, nullptr, &word));
    ASSERT_TRUE(wire.land({peer, kRank, kTurn, 0}, bytes.data(), 1000, unread, word));
    ASSERT_TRUE(wire.get({peer, region, kWordAt + 64}, &got, sizeof got, unread));
  }

  windlass::Unread unread = std::make_shared<std::atomic<uint32_t>>(0);
  std::vector<unsigned char> bytes = std::vector<unsigned char>(8192, 7);
  uint64_t got = 0;
};

void driveFor(End& one, End& other, int64_t ns) {
  for (const int64_t start = wl_clock_ns(); wl_clock_ns() - start < ns;) {
    one.wire().progress();
    other.wire().progress();
  }
}

// In a process of its own, since UCX is opened once a process.
template <class Body>
void inAnotherProcess(Body&& body) {
  Forks forks(1, [&](int) {
    body();
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(std::vector<int>{0}, forks.wait());
}

void guessTheName() {
  End own;
  End stranger;
  std::vector<unsigned char> shared(Moves::kBytes);
  std::vector<unsigned char> landed(1000);
  std::memset(shared.data() + Moves::kWordAt + 64, 5, 8);
  const std::vector<unsigned char> before = shared;
  std::vector<unsigned char> key;
  Error error;
  ASSERT_EQ(WL_OK, own.wire().share(shared.data(), shared.size(), &key, &error)) << error.message;
  own.wire().receive(Moves::kRank, Moves::kTurn, landed.data(), landed.size());

  const std::vector<unsigned char> name = own.name();
  // The secret follows the magic number and the length.
  constexpr size_t kSecretAt = 8;
  std::mt19937_64 random(seed());
  std::vector<unsigned char> guessed = name;
  guessed[kSecretAt + random() % 16] ^= static_cast<unsigned char>(1u << random() % 8);
  Moves guesses;
  guesses.make(stranger, stranger.connect(guessed), key);
  driveFor(own, stranger, 300 * kMs);
  EXPECT_TRUE(own.came().empty()) << own.came().size() << " messages";
  EXPECT_EQ(before, shared);
  EXPECT_EQ(std::vector<unsigned char>(1000), landed);
  EXPECT_EQ(0u, guesses.got);
  EXPECT_FALSE(own.isAnyLost());

  // The same of who was told.
  Moves moves;
  moves.make(stranger, stranger.connect(name), key);
  const bool isAllThere = await([&] {
    driveFor(own, stranger, kMs);
    return own.came().size() == 3 && moves.got != 0 && landed[999] == 7;
  }, 20'000 * kMs);
  EXPECT_TRUE(isAllThere) << own.came().size() << " messages";
  EXPECT_EQ(0x0505050505050505u, moves.got);
  uint64_t words[2];
  std::memcpy(words, shared.data() + Moves::kWordAt, sizeof words);
  EXPECT_EQ(Moves::kWord, words[0]);
  EXPECT_EQ(Moves::kWord, words[1]);
  EXPECT_EQ(std::vector<unsigned char>(100, 7),
            std::vector<unsigned char>(shared.begin(), shared.begin() + 100));
}

TEST(HostStrangers, NothingIsDoneForWhoWasNotToldTheName) {
  inAnotherProcess(guessTheName);
}

void compareNames() {
  End one;
  End other;
  const std::vector<unsigned char> first = one.name();
  const std::vector<unsigned char> second = other.name();
  EXPECT_NE(std::vector<unsigned char>(first.begin() + 8, first.begin() + 24),
            std::vector<unsigned char>(second.begin() + 8, second.begin() + 24));
  EXPECT_EQ(first, one.name());
}

TEST(HostStrangers, EachWireHasASecretOfItsOwn) {
  inAnotherProcess(compareNames);
}

}  // namespace host_strangers_test
}  // namespace windlass_test
