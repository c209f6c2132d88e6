// SPDX-License-Identifier: Apache-2.0
// Messages beside closes, cancels and failures of other threads, and ranks that leave. The ranks
// are threads that read one another's memory, so that a test sees a copy in progress.
#include "tests/native/core/message/messages.h"

namespace windlass_test {
namespace messages_test {

// Takes some ten milliseconds to copy.
constexpr uint64_t kLong = uint64_t{64} << 20;

// The memory of a receive whose copy another thread watches.
class Watched {
 public:
  Watched() : bytes_(kLong) {}

  uint8_t* data() { return bytes_.data(); }
  // Blocks until the copy has begun.
  void awaitBegin() const {
    const auto begins = [&] { return __atomic_load_n(bytes_.data(), __ATOMIC_ACQUIRE) != 0; };
    while (!begins()) std::this_thread::yield();
  }
  // Copies end with the last byte.
  bool isWhole() const { return __atomic_load_n(&bytes_.back(), __ATOMIC_ACQUIRE) != 0; }

 private:
  Bytes bytes_;
};

bool areThreads() {
  return processes(1) == 0 && !isChecked();
}

// A thread looks at the messages of rank 0 while another begins sends and a third one closes the
// rank. No message of the rank arrives after its close.
TEST(MessageFault, NoSendBeginsAfterAClose) {
  if (!areThreads()) GTEST_SKIP() << "needs ranks of one process";
  constexpr int kPosted = 200;  // makes each look take long
  for (int round = 0; round < std::max(5, 100 / kSlow); ++round) {
    LocalRanks ranks(2);
    wl_comm_t* const comm = ranks.comms[0];
    Bytes out(100'000), in(100'000);
    std::atomic<bool> isClosed{false};
    std::thread looks([&] {
      Error error;
      std::vector<Bytes> into(kPosted, Bytes(1));
      Started posted(comm);
      for (int i = 0; i < kPosted; ++i)
        posted.start({receive(into[static_cast<size_t>(i)].data(), 1, 1, 1 + i)}, &error);
      uint64_t ticket = 0;
      while (wl_messages_next(comm, kMs, &ticket, &error) == WL_OK) {
      }
    });
    std::thread sends([&] {
      Error error;
      Started sent(comm);
      usleep(static_cast<useconds_t>(500 + round % 10 * 100));
      while (sent.start({send(out.data(), out.size(), 1, 0)}, &error) == WL_OK && !isClosed)
        if (sent.open() > 3) break;
    });
    std::thread closes([&] {
      Error error;
      usleep(static_cast<useconds_t>(500 + round % 10 * 100));
      wl_comm_close(comm, &error);
      isClosed = true;
    });
    closes.join();
    sends.join();
    Error error;
    EXPECT_NE(WL_OK, run(ranks.comms[1], receive(in.data(), in.size(), 0, 0), &error)) << round;
    looks.join();
  }
}

// Rank 0 copies a long message of rank 3 while rank 1 sends and leaves, and rank 2 sends. Then it
// looks for ranks that left, and finds both messages.
TEST(MessageFault, ARankThatSentAndLeftHarmsNobody) {
  if (!areThreads()) GTEST_SKIP() << "needs ranks of one process";
  LocalRanks ranks(4);
  Watched copied;
  std::atomic<bool> isPosted{false};
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint8_t values[2] = {};
    if (rank == 0) {
      Started started(comm);
      ASSERT_EQ(WL_OK, started.start({receive(copied.data(), kLong, 3, 0)}, &error));
      ASSERT_EQ(WL_OK,
                started.start({receive(values, 1, 2, 0), receive(values + 1, 1, 1, 0)}, &error));
      isPosted = true;
      EXPECT_EQ(WL_OK, started.awaitAll(&error)) << error.message;
      EXPECT_EQ(2, values[0]);
      EXPECT_EQ(1, values[1]);
      return;
    }
    const auto value = static_cast<uint8_t>(rank);
    if (rank == 3) {
      const Bytes out(kLong, 1);
      EXPECT_TRUE(await([&] { return isPosted.load(); }));
      EXPECT_EQ(WL_OK, run(comm, send(out.data(), kLong, 0, 0), &error)) << error.message;
      return;
    }
    copied.awaitBegin();
    EXPECT_EQ(WL_OK, run(comm, send(&value, 1, 0, 0), &error)) << error.message;
    if (rank == 1) {
      EXPECT_EQ(WL_OK, wl_comm_close(comm, &error)) << error.message;
    }
  });
}

// Rank 1 leaves without a message while rank 0 copies the first long one. So rank 0 looks for its
// message once more, and copies the second long one. Meanwhile a thread withdraws the receive.
// Returns false if the copy was over before that.
bool isWithdrawnWhileOthersAreCopied() {
  LocalRanks ranks(3);
  Watched first, second;
  std::atomic<bool> isPosted{false}, isSent{false};
  std::atomic<uint64_t> awaited{0};
  bool isWithdrawn = false;
  std::thread withdraws([&] {
    second.awaitBegin();
    Error error;
    int32_t withdrawn = 0;
    EXPECT_EQ(WL_OK, wl_messages_withdraw(ranks.comms[0], awaited, &withdrawn, &error));
    isWithdrawn = withdrawn == 1 && !second.isWhole();
  });
  int32_t code = WL_OK;
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    uint8_t value = 0;
    const Bytes out(rank == 2 ? kLong : 0, 1);
    Started withdrawable(comm), others(comm);
    if (rank == 0) {
      ASSERT_EQ(WL_OK, withdrawable.start({receive(&value, 1, 1, 0)}, &error));
      awaited = withdrawable.ticket(0);
      ASSERT_EQ(WL_OK, others.start({receive(first.data(), kLong, 2, 0)}, &error));
      ASSERT_EQ(WL_OK, others.start({receive(second.data(), kLong, 2, 1)}, &error));
      isPosted = true;
      code = others.awaitAll(&error);
      uint64_t ticket = 0;
      if (code == WL_OK) code = wl_messages_next(comm, kMs, &ticket, &error);  // it lives
    } else if (rank == 1) {
      first.awaitBegin();
      EXPECT_TRUE(await([&] { return isSent.load(); }));
      EXPECT_EQ(WL_OK, wl_comm_close(comm, &error)) << error.message;
    } else {
      EXPECT_TRUE(await([&] { return isPosted.load(); }));
      ASSERT_EQ(WL_OK, others.start({send(out.data(), kLong, 0, 0)}, &error));
      first.awaitBegin();
      ASSERT_EQ(WL_OK, others.start({send(out.data(), kLong, 0, 1)}, &error));
      isSent = true;
      others.awaitAll(&error);
    }
  });
  withdraws.join();
  EXPECT_TRUE(!isWithdrawn || code == WL_OK) << code;
  return isWithdrawn;
}

TEST(MessageFault, AReceiveIsWithdrawnWhileOthersAreCopied) {
  if (!areThreads()) GTEST_SKIP() << "needs ranks of one process";
  int withdrawn = 0;
  for (int attempt = 0; withdrawn < 3 && attempt < kAttempts; ++attempt)
    withdrawn += isWithdrawnWhileOthersAreCopied() ? 1 : 0;
  EXPECT_GT(withdrawn, 0);
}

// A thread in a call of rank 0 copies an asynchronous message of the rank when the rank aborts.
TEST(MessageFault, AFailureWhileAnotherThreadCopiesEndsEachBatchOnce) {
  if (!areThreads()) GTEST_SKIP() << "needs ranks of one process";
  LocalRanks ranks(2);
  Watched copied;
  const Bytes out(kLong, 1);  // read until all ranks have ended
  Started started(ranks.comms[0]);
  std::thread fails([&] {
    wl_comm_t* const comm = ranks.comms[0];
    copied.awaitBegin();
    Error error;
    uint64_t ticket = 0;
    EXPECT_EQ(WL_OK, wl_comm_abort(comm, "it is enough", &error));
    const int32_t code = wl_messages_next(comm, 1000 * kMs, &ticket, &error);
    EXPECT_TRUE(code == WL_ABORTED || ticket != 0) << code;
  });
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    if (rank == 1) {
      awaitInside(comm, 0, WL_OP_RECEIVE);
      run(comm, send(out.data(), kLong, 0, 0), &error);
      return;
    }
    uint8_t value = 0;
    ASSERT_EQ(WL_OK, started.start({receive(copied.data(), kLong, 1, 0)}, &error));
    EXPECT_EQ(WL_ABORTED, run(comm, receive(&value, 1, 1, 1), &error));
    EXPECT_TRUE(contains(error.message, "it is enough"));
  });
  fails.join();
}

}  // namespace messages_test
}  // namespace windlass_test
