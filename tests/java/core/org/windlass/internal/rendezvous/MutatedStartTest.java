// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.internal.Native;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.LocalStore;
import org.windlass.internal.store.Meeting;
import org.windlass.internal.store.Store;
import org.windlass.testing.RandomSeeds;

/** Starts of two ranks, of which one reads what nobody has said: it is told so, and nothing else. */
@Timeout(300)
class MutatedStartTest {
  private static final int SIZE = 2;
  private static final Start.Config OPTIONS = new Start.Config(1, 0, 0, 1_000_000_000L, false);

  /** A way into {@code store} on which values are read as {@code reading} has them. */
  private static Store reading(Store store, UnaryOperator<byte[]> reading) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (proxy, method, arguments) -> {
              try {
                Object result = method.invoke(store, arguments);
                return result instanceof Optional<?> value
                    ? value.map(bytes -> reading.apply((byte[]) bytes))
                    : result;
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** What a rank's start throws; null where it has started. */
  private static Throwable failure(Store store, int rank, Duration deadline) {
    return catchThrowable(
        () -> {
          for (long handle :
              Start.join(
                  store,
                  "start/",
                  null,
                  null,
                  List.of(rank),
                  SIZE,
                  OPTIONS,
                  new Host("", 0),
                  deadline,
                  Failure::make)) {
            Native.wl_comm_free(handle);
          }
        });
  }

  /** Of both ranks, where rank 1 reads so. */
  private static List<Throwable> failures(Duration deadline, UnaryOperator<byte[]> reading)
      throws Exception {
    try (LocalStore store = new LocalStore(Failure::make);
        LocalStore other = store.join()) {
      CompletableFuture<Throwable> one =
          CompletableFuture.supplyAsync(() -> failure(reading(other, reading), 1, deadline));
      Throwable zero = failure(store, 0, deadline);
      return Arrays.asList(zero, one.get(30, TimeUnit.SECONDS));
    }
  }

  /** An outcome of {@code step} in which rank 0 has said something else; what else it is stays. */
  private static UnaryOperator<byte[]> saidByRankZero(
      String step, Function<byte[], byte[]> otherwise) {
    return value -> {
      Outcome outcome = Outcome.peek(value);
      if (outcome == null
          || outcome.kind() != Outcome.Kind.SAID
          || !outcome.step().equals(step)) {
        return value;
      }
      List<Word> words = new ArrayList<>();
      try {
        for (Outcome.Said each : outcome.said(SIZE)) {
          byte[] said = words.isEmpty() ? otherwise.apply(each.value()) : each.value();
          words.add(new Word(outcome.start(), each.member(), step, said, null));
        }
      } catch (IOException e) {
        throw new AssertionError(e);
      }
      return Outcome.said(outcome.start(), step, words).toValues().get(0);
    };
  }

  private static void assertMismatch(UnaryOperator<byte[]> reading, String why) throws Exception {
    Throwable failure = failures(Meeting.LONG, reading).get(1);
    Failure.assertFails(
            Native.WL_MISMATCH,
            () -> {
              throw failure;
            })
        .contains("rank 0", why);
  }

  @Test
  void sharedMemoryThatCannotBeReadIsNamed() throws Exception {
    assertMismatch(saidByRankZero("share", said -> Arrays.copyOf(said, 7)), "it has 7 bytes");
    assertMismatch(saidByRankZero("arrive", said -> Arrays.copyOf(said, 7)), "it ends early");
  }

  @Test
  void aRankThatSaysThatItIsAnotherIsNamed() throws Exception {
    assertMismatch(
        saidByRankZero(
            "arrive",
            said -> {
              Arrival told = Arrival.of(0, said, Failure::make);
              return new Arrival(
                      1,
                      told.library(),
                      told.target(),
                      told.host(),
                      told.machine(),
                      told.named(),
                      told.process(),
                      told.cores(),
                      told.cpus(),
                      told.options())
                  .toBytes();
            }),
        "says that it is rank 1");
  }

  @RandomSeeds(value = 4, inLong = 400)
  void whateverIsReadNothingElseIsThrown(long seed) throws Exception {
    Random random = new Random(seed);
    int one = 1 + random.nextInt(8);
    UnaryOperator<byte[]> reading = value -> random.nextInt(one) == 0 ? mutated(value, random) : value;
    for (Throwable failure : failures(Duration.ofMillis(200), reading)) {
      if (failure != null) {
        assertThat(failure).isInstanceOf(Failure.class);
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
