// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.WindlassException;
import org.windlass.internal.Native;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.TestStore;
import org.windlass.testing.RandomSeeds;

/** Starts of two ranks, of which one reads what nobody has said: it throws what is documented. */
@Timeout(300)
class MutatedStartTest {
  private static final int SIZE = 2;
  private static final Start.Config OPTIONS = new Start.Config(1, 0, 0, 1_000_000_000L, false);

  /** What a rank's start throws; null if it has started. */
  private static Throwable failure(AllGather all, int rank, Duration deadline) {
    return catchThrowable(
        () -> {
          for (long handle :
              Start.join(all, List.of(rank), SIZE, OPTIONS, new Host("", 0), deadline)) {
            Native.wl_comm_free(handle);
          }
        });
  }

  /** What both ranks throw, if rank 1 reads what rank 0 said otherwise, by the round's number. */
  private static List<Throwable> failures(
      Duration deadline, BiFunction<Integer, byte[], byte[]> reading) throws Exception {
    try (TestStore testStore = new TestStore(TestStore.Kind.SOCKET)) {
      StoreAllGather zero = new StoreAllGather(testStore.join(), "start", SIZE, null);
      StoreAllGather one = new StoreAllGather(testStore.join(), "start", SIZE, null);
      AtomicInteger rounds = new AtomicInteger();
      AllGather mutated =
          new AllGather() {
            @Override
            public List<byte[]> round(Map<Integer, byte[]> own, boolean isLast, Duration limit) {
              List<byte[]> said = one.round(own, isLast, limit);
              return List.of(
                  reading.apply(rounds.getAndIncrement(), said.get(0)), said.get(1));
            }

            @Override
            public void quit() {
              one.quit();
            }
          };
      CompletableFuture<Throwable> other =
          CompletableFuture.supplyAsync(() -> failure(mutated, 1, deadline));
      Throwable first = failure(zero, 0, deadline);
      return Arrays.asList(first, other.get(30, TimeUnit.SECONDS));
    }
  }

  /** Length of what stands before the value of a step: member, name of the step, kind, length. */
  private static int head(String step) {
    return 2 * Long.BYTES + Short.BYTES + step.length() + 1 + Integer.BYTES;
  }

  /** What a rank says in a step, with another value. */
  private static byte[] withValue(String step, byte[] said, byte[] value) {
    return ByteBuffer.allocate(head(step) + value.length)
        .put(said, 0, head(step))
        .putInt(head(step) - Integer.BYTES, value.length)
        .put(value)
        .array();
  }

  private static byte[] value(String step, byte[] said) {
    return Arrays.copyOfRange(said, head(step), said.length);
  }

  /** Rank 1 refuses what rank 0 says otherwise, by a message with these words. */
  private static void assertMismatch(
      int round, String step, UnaryOperator<byte[]> otherwise, String... words) throws Exception {
    Throwable failure =
        failures(
                TestStore.LONG,
                (number, said) ->
                    number == round
                        ? withValue(step, said, otherwise.apply(value(step, said)))
                        : said)
            .get(1);
    Failure.assertFails(
            Native.WL_MISMATCH,
            () -> {
              throw failure;
            })
        .contains(words);
  }

  @Test
  void sharedMemoryThatCannotBeReadIsNamed() throws Exception {
    assertMismatch(1, "share", said -> Arrays.copyOf(said, 7), "rank 0", "it has 7 bytes");
    assertMismatch(0, "arrive", said -> Arrays.copyOf(said, 7), "rank 0", "it ends early");
  }

  @Test
  void aRankThatSaysThatItIsAnotherIsNamed() throws Exception {
    assertMismatch(
        0, "arrive", said -> arrival(1, Native.wl_version(), said),
        "rank 0", "says that it is rank 1");
  }

  @Test
  void aRankOfAnotherReleaseIsRefusedByBothVersions() throws Exception {
    String own = Native.wl_version();
    assertMismatch(
        0, "arrive", said -> arrival(0, "0.0.9", said),
        "ranks 0 and 1 run windlass 0.0.9 and " + own);
    assertMismatch(
        0, "arrive",
        said -> ByteBuffer.wrap(said.clone()).putInt(0, Arrival.PROTOCOL - 1).array(),
        "rank 0 runs windlass " + own + ", which starts by protocol " + (Arrival.PROTOCOL - 1),
        "this one runs " + own + ", by protocol " + Arrival.PROTOCOL);
  }

  /** The same arrival, of another rank and library. */
  private static byte[] arrival(int rank, String library, byte[] said) {
    Arrival told = Arrival.of(0, said);
    return new Arrival(
            rank,
            library,
            told.target(),
            told.host(),
            told.machine(),
            told.named(),
            told.process(),
            told.cores(),
            told.cpus(),
            told.options())
        .toBytes();
  }

  @RandomSeeds(value = 4, inLong = 400)
  void whateverIsReadNothingElseIsThrown(long seed) throws Exception {
    Random random = new Random(seed);
    int one = 1 + random.nextInt(8);
    BiFunction<Integer, byte[], byte[]> reading =
        (round, said) -> random.nextInt(one) == 0 ? mutated(said, random) : said;
    for (Throwable failure : failures(Duration.ofMillis(200), reading)) {
      if (failure != null) {
        assertThat(failure).isInstanceOf(WindlassException.class);
      }
    }
  }

  private static byte[] mutated(byte[] value, Random random) {
    int length = random.nextBoolean() ? value.length : random.nextInt(value.length + 8);
    byte[] other = Arrays.copyOf(value, length);
    for (int i = random.nextInt(4); i > 0 && length > 0; i--) {
      other[random.nextInt(length)] = (byte) random.nextInt();
    }
    return other;
  }
}
