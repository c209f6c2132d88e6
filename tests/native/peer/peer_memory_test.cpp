// SPDX-License-Identifier: Apache-2.0
// The memory of one other process: reading it, its end, and who may read it.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "native/peer/peer_memory.h"
#include "tests/native/core/children.h"
#include "tests/native/core/comms.h"
#include "tests/native/core/members.h"

namespace windlass_test {
namespace peer_memory_test {

TEST(PeerMemory, ReadsAProcessUntilItHasEnded) {
  NEEDS_READING_FOR("readv")
  const uint64_t probe = windlass::peerMemoryProbe();
  Waiting child(true);
  windlass::PeerMemory memory;
  Error error;
  ASSERT_EQ(WL_OK, memory.open(child.process, probe, &error)) << error.message;
  uint64_t found[2] = {};
  EXPECT_EQ(0, memory.read(&found[0], probe, sizeof found[0]));
  const windlass::PeerMemory::Run run = {probe, sizeof found[1]};
  EXPECT_EQ(0, memory.read(&found[1], &run, 1));
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(EFAULT, memory.read(&found[0], 8, sizeof found[0]));
  EXPECT_FALSE(memory.hasEnded());
  child.end();
  EXPECT_EQ(ESRCH, memory.read(&found[0], probe, sizeof found[0]));
  EXPECT_TRUE(memory.hasEnded());
  EXPECT_EQ(WL_PEER_LOST, windlass::PeerMemory().open(child.process, probe, &error));
}

TEST(PeerMemory, IsGoneBeforeTheEndOfItsProcessShows) {
  NEEDS_READING_FOR("readv")
  NEEDS_HOLDING
  const uint64_t probe = windlass::peerMemoryProbe();
  std::vector<uint64_t> data(10'000, 1);
  Waiting child(true);
  windlass::PeerMemory memory;
  Error error;
  ASSERT_EQ(WL_OK, memory.open(child.process, probe, &error)) << error.message;
  EXPECT_EQ(EFAULT, memory.read(data.data(), 8, 8));
  EXPECT_FALSE(memory.isGone());
  ASSERT_TRUE(holdWithoutMemory(child.pid));
  EXPECT_EQ(EFAULT, memory.read(data.data(), reinterpret_cast<uint64_t>(&data[5000]), 8));
  EXPECT_TRUE(memory.isGone());
  EXPECT_FALSE(memory.hasEnded());
  letGo(child.pid);
  child.end();
  EXPECT_TRUE(memory.isGone());
  EXPECT_TRUE(memory.hasEnded());
}

TEST(PeerMemory, OfAProcessThatEndsAsItIsOpenedIsLost) {
  NEEDS_READING_FOR("readv")
  NEEDS_HOLDING
  const uint64_t probe = windlass::peerMemoryProbe();
  Waiting child(true);
  ASSERT_TRUE(holdWithoutMemory(child.pid));
  Error error;
  std::atomic<bool> isOpened{false};
  // A thread may let go of what its process traces where it has traced it itself.
  std::thread opens([&] {
    windlass::PeerMemory memory;
    EXPECT_EQ(WL_PEER_LOST, memory.open(child.process, probe, &error)) << error.message;
    isOpened = true;
  });
  usleep(50'000);
  EXPECT_FALSE(isOpened.load());
  letGo(child.pid);
  opens.join();
}

// A small file, gone with it.
class WrittenFile {
 public:
  explicit WrittenFile(const std::string& text) {
    const int file = mkstemp(path_);
    if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      std::abort();
    close(file);
  }
  ~WrittenFile() { unlink(path_); }
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/windlass-test-XXXXXX";
};

TEST(PeerMemory, IsReadAsFarAsYamaLets) {
  using windlass::PeerMemoryUse;
  NEEDS_READING_FOR("readv")
  const WrittenFile without("Name:\ttest\nCapEff:\t0000000000000000\n");
  const WrittenFile with("Name:\ttest\nCapEff:\t0000000000080000\n");
  struct Case {
    const char* scope;
    const char* why;  // without CAP_SYS_PTRACE; nullptr: it reads
    bool isForAll;    // with it too
  };
  for (const Case& each : {Case{"0\n", nullptr, false}, Case{"", nullptr, false},
                           Case{"1\n", "is 1: only its ancestors read a process, and", false},
                           Case{"2\n", "is 2: only those with CAP_SYS_PTRACE read", false},
                           Case{"3\n", "is 3: no process reads another until", true}}) {
    const WrittenFile scope(each.scope);
    char why[256];
    EXPECT_EQ(each.why == nullptr, windlass::ownPeerMemory(PeerMemoryUse::kAuto, why, sizeof why,
                                                           {scope.path(), without.path()}));
    EXPECT_TRUE(contains(why, each.why == nullptr ? "works" : each.why));
    EXPECT_EQ(!each.isForAll, windlass::ownPeerMemory(PeerMemoryUse::kReadv, why, sizeof why,
                                                      {scope.path(), with.path()}));
    EXPECT_TRUE(contains(why, each.isForAll ? each.why : "works"));
  }
}

TEST(PeerMemory, OfAProcessWhoseFirstThreadHasEndedIsNotThatOfOneThatHas) {
  NEEDS_READING_FOR("readv")
  const uint64_t probe = windlass::peerMemoryProbe();
  Waiting child(false);
  Error error;
  int code = WL_OK;
  const int64_t start = wl_clock_ns();
  while (code == WL_OK && wl_clock_ns() - start < 20'000 * kMs)
    code = windlass::PeerMemory().open(child.process, probe, &error);
  EXPECT_EQ(WL_UNSUPPORTED, code);
  EXPECT_TRUE(contains(error.message, "its first thread has ended"));
}

}  // namespace peer_memory_test
}  // namespace windlass_test
