// SPDX-License-Identifier: Apache-2.0
// Messages: what ends them, what they take, and what a report has of them.
#include "tests/native/core/message/messages.h"

namespace windlass_test {
namespace messages_test {

TEST(Message, OfAnotherDTypeEndsTheCommunicator) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    std::vector<uint32_t> data(4);
    const int32_t code = rank == 0 ? run(comm, send(data.data(), 4, 1, 7, WL_I32), &error)
                                   : run(comm, receive(data.data(), 4, 0, 7, WL_F32), &error);
    if (rank == 1) {
      EXPECT_EQ(WL_MISMATCH, code);
      EXPECT_TRUE(contains(error.message, "rank 1: receive(at most 4 x f32 from rank 0, tag 7): "
                                          "rank 0 sends 4 x i32 with tag 7; dtypes must agree"));
      EXPECT_EQ(2, error.faulty_rank_count);
    }
    EXPECT_EQ(WL_MISMATCH, callBarrier(comm, 0, &error));
  });
}

TEST(Message, LongerThanItsReceiveEndsTheCommunicator) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes data(100'000);
    const int32_t code = rank == 0 ? run(comm, send(data.data(), 100'000, 1, 7), &error)
                                   : run(comm, receive(data.data(), 99'999, 0, WL_ANY), &error);
    EXPECT_EQ(WL_MISMATCH, code);
    EXPECT_TRUE(contains(error.message, "rank 0 sends 100000 x u8 with tag 7; a receive must have "
                                        "room for the whole message"));
  });
}

TEST(Message, ThatDoesNotFitLeavesNoLaterOneToItsReceive) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    std::vector<float> data(8);
    if (rank == 0) {
      ASSERT_EQ(WL_OK, run(comm, send(data.data(), 8, 1, 7, WL_F32), &error)) << error.message;
      ASSERT_EQ(WL_OK, run(comm, send(data.data(), 4, 1, 7, WL_F32), &error)) << error.message;
    }
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    if (rank == 1) {
      EXPECT_EQ(WL_MISMATCH, run(comm, receive(data.data(), 4, 0, 7, WL_F32), &error));
    }
    EXPECT_EQ(WL_MISMATCH, callBarrier(comm, 0, &error));
  });
}

// A slot that was never used has the number 0.
TEST(Message, HasANumberThatNoUnusedSlotHas) {
  for (const uint32_t first : {0xffffffffu, 0xfffffff4u, 0xfffffff1u}) {
    LocalRanks ranks(2, 20'000'000'000, first);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      uint8_t values[16] = {};
      Started started(comm);
      for (int i = 0; rank == 1 && i < 16; ++i)
        ASSERT_EQ(WL_OK, started.start({receive(values + i, 1, 0, 0, WL_BOOL)}, &error));
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
      const uint8_t one = 1;
      for (int i = 0; rank == 0 && i < 16; ++i)
        ASSERT_EQ(WL_OK, run(comm, send(&one, 1, 1, 0, WL_BOOL), &error)) << error.message;
      ASSERT_EQ(WL_OK, started.awaitAll(&error)) << error.message;
      for (int i = 0; rank == 1 && i < 16; ++i) {
        EXPECT_EQ(1, values[i]) << i << ", first " << first;
      }
      ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    });
  }
}

TEST(Message, ThatNoRankReceivesOrSendsPassesItsDeadline) {
  for (const bool sends : {true, false}) {
    LocalRanks ranks(2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      Bytes data(100'000);
      const auto message = sends ? send(data.data(), 100'000, 1, 5) : receive(data.data(), 7, 1, 5);
      if (rank == 0) {
        EXPECT_EQ(WL_DEADLINE_EXCEEDED, run(comm, message, &error, 50 * kMs));
      } else {
        EXPECT_EQ(WL_DEADLINE_EXCEEDED, callBarrier(comm, 0, &error));
      }
      EXPECT_TRUE(contains(error.message,
                           sends ? "rank 0 waited 0.050 s in send(100000 x u8 to rank 1, tag 5): "
                                   "rank 1 has not received it: "
                                 : "rank 0 waited 0.050 s in receive(at most 7 x u8 from rank 1, "
                                   "tag 5): rank 1 has not sent it: "));
      EXPECT_EQ(1, error.faulty_rank_count);
      EXPECT_EQ(1, error.faulty_ranks[0]);
    });
  }
}

TEST(Message, OfARankThatCloses) {
  for (const bool any : {true, false}) {
    LocalRanks ranks(2);
    ranks.run([&](int rank, wl_comm_t* comm) {
      Error error;
      Bytes data(10);
      if (rank == 1) {
        ASSERT_EQ(WL_OK, run(comm, send(data.data(), 10, 0, 5), &error));
        ASSERT_EQ(WL_OK, wl_comm_close(comm, &error)) << error.message;
        return;
      }
      ASSERT_EQ(WL_OK, run(comm, receive(data.data(), 10, any ? WL_ANY : 1, 5), &error))
          << error.message;
      if (!any && hosts(2) == 1) {
        ASSERT_TRUE(await([&] {
          wl_rank_state_t state = {};
          state.struct_size = sizeof state;
          wl_comm_state(comm, 1, &state);
          return state.closed == 1;
        }));
        EXPECT_EQ(WL_ABORTED, run(comm, send(data.data(), 1, 1, 5), &error));
        EXPECT_TRUE(contains(error.message, "rank 1 closed the communicator, and rank 0 waits in "
                                            "send(1 x u8 to rank 1, tag 5)"));
        return;
      }
      EXPECT_EQ(WL_ABORTED, run(comm, receive(data.data(), 10, any ? WL_ANY : 1, 5), &error));
      EXPECT_TRUE(contains(error.message, any ? "all other ranks closed the communicator, and rank "
                                                "0 waits in receive(at most 10 x u8 from any rank"
                                              : "rank 1 closed the communicator, and rank 0 waits "
                                                "in receive(at most 10 x u8 from rank 1, tag 5)"));
    });
  }
}

TEST(Message, AnAbortEndsIt) {
  LocalRanks ranks(3);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes data(100'000);
    if (rank == 2) {
      usleep(20'000);
      wl_comm_abort(comm, "it is enough", &error);
      return;
    }
    const auto message =
        rank == 0 ? send(data.data(), 100'000, 1, 5) : receive(data.data(), 1, WL_ANY, 6);
    EXPECT_EQ(WL_ABORTED, run(comm, message, &error));
    EXPECT_TRUE(contains(error.message, "it is enough"));
  });
}

TEST(Message, ThatIsAsynchronousDelaysNothing) {
  LocalRanks ranks(2);
  std::atomic<int> wrong{0};
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes out(300'000), in(300'000);
    fill(out.data(), out.size(), 1, rank, 1 - rank);
    Started started(comm);
    ASSERT_EQ(WL_OK, started.start({send(out.data(), out.size(), 1 - rank, 4)}, &error));
    for (int i = 0; i < 10; ++i) ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    EXPECT_EQ(1u, started.open());
    wl_message_t pair[] = {send(out.data(), 40, 1 - rank, 1), receive(in.data(), 40, 1 - rank, 1)};
    ASSERT_EQ(WL_OK, wl_messages(comm, pair, 2, 0, &error)) << error.message;
    ASSERT_EQ(WL_OK, started.start({receive(in.data(), in.size(), 1 - rank, 4)}, &error));
    ASSERT_EQ(WL_OK, started.awaitAll(&error)) << error.message;
    wrong += !isFilled(in.data(), in.size(), 1, 1 - rank, rank);
  });
  EXPECT_EQ(0, wrong);
}

TEST(Message, IsWithdrawnUnlessAnotherRankMayHaveSeenIt) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes out(300'000), in(300'000);
    Started started(comm);
    int32_t withdrawn = 0;
    ASSERT_EQ(WL_OK, started.start({receive(in.data(), in.size(), 1 - rank, 4)}, &error));
    ASSERT_EQ(WL_OK, wl_messages_withdraw(comm, started.ticket(0), &withdrawn, &error));
    EXPECT_EQ(1, withdrawn);
    ASSERT_EQ(WL_OK, wl_messages_withdraw(comm, started.ticket(0), &withdrawn, &error));
    EXPECT_EQ(2, withdrawn);
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    Started sent(comm);
    ASSERT_EQ(WL_OK, sent.start({send(out.data(), out.size(), 1 - rank, 4)}, &error));
    ASSERT_EQ(WL_OK, wl_messages_withdraw(comm, sent.ticket(0), &withdrawn, &error));
    EXPECT_EQ(0, withdrawn);
    ASSERT_EQ(WL_OK, callBarrier(comm, 0, &error)) << error.message;
    ASSERT_EQ(WL_OK, run(comm, receive(in.data(), in.size(), 1 - rank, 4), &error));
    ASSERT_EQ(WL_OK, sent.awaitAll(&error)) << error.message;
  });
}

TEST(Message, WithWrongArgumentsIsRefused) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes data(100);
    const auto expectRefused = [&](std::vector<wl_message_t> messages, const char* why) {
      EXPECT_EQ(WL_INVALID_ARGUMENT,
                wl_messages(comm, messages.data(), static_cast<uint32_t>(messages.size()), 0,
                            &error));
      EXPECT_TRUE(contains(error.message, why));
    };
    expectRefused({send(data.data(), 1, 2, 0)}, "send: peer is 2; it must lie in [0, 2)");
    expectRefused({send(data.data(), 1, WL_ANY, 0)}, "send: peer is -1");
    expectRefused({receive(data.data(), 1, -2, 0)}, "receive: peer is -2");
    expectRefused({send(data.data(), 1, 0, -1)}, "send: tag is -1; it must be 0 or more");
    expectRefused({receive(data.data(), 1, 0, -2)}, "receive: tag is -2");
    expectRefused({receive(nullptr, 1, 0, 0)}, "receive: data is NULL");
    expectRefused({receive(data.data(), 1, 0, 0, 99)}, "dtype 99 is unknown");
    expectRefused({send(data.data(), 10, 0, 0), receive(data.data() + 9, 10, 0, 0)}, "overlaps");
    expectRefused({receive(data.data() + 9, 10, 0, 0), receive(data.data(), 10, 0, 0)}, "overlaps");
    wl_message_t barrier = send(data.data(), 1, 0, 0);
    barrier.operation = WL_OP_BARRIER;
    expectRefused({barrier}, "barrier is no message: a group takes sends and receives");
    wl_message_t sends[] = {send(data.data(), 40, 1 - rank, 0), send(data.data(), 40, 1 - rank, 1)};
    ASSERT_EQ(WL_OK, wl_messages(comm, sends, 2, 0, &error)) << error.message;
    ASSERT_EQ(WL_OK, run(comm, receive(data.data(), 40, 1 - rank, 1), &error)) << error.message;
    ASSERT_EQ(WL_OK, run(comm, receive(data.data(), 40, 1 - rank, 0), &error)) << error.message;
  });
}

// Lanes and blocks take memory once they are used.
TEST(Message, OfManyRanksTakesLittleMemory) {
  if (processes(1) > 0 || kSlow > 1 || isChecked()) GTEST_SKIP() << "one process of threads tells";
  const auto residentBytes = [] {
    uint64_t pages[2] = {};
    FILE* const file = std::fopen("/proc/self/statm", "r");
    EXPECT_EQ(2, std::fscanf(file, "%lu %lu", &pages[0], &pages[1]));
    std::fclose(file);
    return pages[1] * 4096;
  };
  constexpr int kRanks = 1024;
  const uint64_t before = residentBytes();
  {
    LocalRanks ranks(kRanks);
    Error error;
    Bytes data(2000);
    const auto of = [&](int rank) { return ranks.comms[static_cast<size_t>(rank)]; };
    for (int rank = 0; rank < kRanks; ++rank)
      for (const int step : {1, 2, 5})
        ASSERT_EQ(WL_OK, run(of(rank), send(data.data(), 2000, (rank + step) % kRanks, step),
                             &error))
            << error.message;
    for (int rank = 0; rank < kRanks; ++rank)
      for (int i = 0; i < 3; ++i)
        ASSERT_EQ(WL_OK, run(of(rank), receive(data.data(), 2000, WL_ANY, WL_ANY), &error))
            << error.message;
    EXPECT_LT(residentBytes() - before, uint64_t{256} << 20);
    std::printf("%llu MiB\n", static_cast<unsigned long long>((residentBytes() - before) >> 20));
  }
}

TEST(Message, ThatWaitsIsInTheReport) {
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes data(100'000);
    if (rank == 0) {
      ASSERT_EQ(WL_OK, run(comm, send(data.data(), 100'000, 1, 5), &error)) << error.message;
      return;
    }
    wl_rank_state_t state = {};
    state.struct_size = sizeof state;
    ASSERT_TRUE(await([&] {
      wl_comm_state(comm, 0, &state);
      return state.operation == WL_OP_SEND && state.awaited == 1;
    }));
    wl_record_t record = {};
    record.struct_size = sizeof record;
    if (hosts(2) == 1) {  // records of a rank stay on its host
      ASSERT_EQ(1, wl_comm_recorded(comm, 0, &record, 1));
      EXPECT_STREQ("send(100000 x u8 to rank 1, tag 5)", record.text);
      EXPECT_EQ(1, record.root);
      EXPECT_EQ(0, record.op);
      EXPECT_EQ(WL_AUTO, record.algorithm);
    }
    ASSERT_EQ(WL_OK, run(comm, receive(data.data(), 100'000, 0, 5), &error)) << error.message;
  });
}

TEST(Message, ThatIsAsynchronousAndWaitsIsInTheReport) {
  if (hosts(2) > 1) GTEST_SKIP() << "hosts report the operations that their ranks enter";
  LocalRanks ranks(2);
  ranks.run([&](int rank, wl_comm_t* comm) {
    Error error;
    Bytes data(100'000);
    const auto awaits = [&](int peer) {
      wl_rank_state_t state = {};
      state.struct_size = sizeof state;
      wl_comm_state(comm, 0, &state);
      return state.busy == 0 && state.awaited == peer;
    };
    if (rank == 0) {
      Started started(comm);
      ASSERT_EQ(WL_OK, started.start({send(data.data(), data.size(), 1, 5)}, &error));
      ASSERT_EQ(WL_OK, started.awaitAll(&error)) << error.message;
      EXPECT_TRUE(awaits(-1));
    } else {
      EXPECT_TRUE(await([&] { return awaits(1); }));
      ASSERT_EQ(WL_OK, run(comm, receive(data.data(), data.size(), 0, 5), &error));
    }
  });
}

}  // namespace messages_test
}  // namespace windlass_test
