// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.WindlassException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * Links that die at a random moment: the link is aborted, a rank leaves it, a rank's thread is
 * interrupted, or a rank stays away past the deadline. Whatever the moment, each receiver holds one
 * whole version or says that it holds none.
 *
 * <p>{@code -Dwindlass.link.kills=N} kills N links of each kind and form; without it they are 10,
 * and 50 where {@code windlass.long} is true.
 */
@Timeout(240)
class LinkFailureTest {
  private static final int KILLS =
      Integer.getInteger("windlass.link.kills", Boolean.getBoolean("windlass.long") ? 50 : 10);
  private static final int TENSORS = 6;
  private static final long ROWS = 64;
  private static final long[] SHAPE = {ROWS, 1500};
  private static final Duration DEADLINE = Duration.ofMillis(150);

  private enum Kill {
    ABORT,
    LEAVE,
    INTERRUPT,
    STAY_AWAY
  }

  /** Senders and receivers share rank 2 where they overlap. */
  private record Sides(DeviceMesh senders, DeviceMesh receivers) {
    static Sides of(boolean overlap) {
      return new Sides(DeviceMesh.of(overlap ? 3 : 2), DeviceMesh.of(2).at(2));
    }
  }

  /** What one rank has when its link is dead; {@code returned} is the last version, 0 for none. */
  private static final class Outcome {
    long returned;
    LinkTransfer transfer;
    final List<Tensor> bound = new ArrayList<>();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aReceiverHoldsOneVersionOrNone(boolean inPlace) throws Exception {
    long seed = System.nanoTime();
    Random random = new Random(seed);
    int incomplete = 0;
    for (int round = 0; round < KILLS; round++) {
      for (Kill kill : Kill.values()) {
        String what = kill + " of round " + round + ", seed " + seed;
        incomplete += kill(kill, inPlace, random.nextLong(), what);
      }
    }
    if (!inPlace) {
      assertThat(incomplete).isZero();
    }
  }

  /** How many receivers were left without a version. */
  private static int kill(Kill kill, boolean inPlace, long seed, String what) throws Exception {
    Random random = new Random(seed);
    Sides sides = Sides.of(random.nextBoolean());
    int victim = random.nextInt(4);
    long delayNs = random.nextInt(12_000_000);
    boolean checksums = random.nextInt(4) == 0;
    Outcome[] outcomes = {new Outcome(), new Outcome(), new Outcome(), new Outcome()};
    Thread[] threads = new Thread[4];
    Link[] links = new Link[4];
    CountDownLatch ready = new CountDownLatch(4);
    AtomicLong deadAt = new AtomicLong(Long.MAX_VALUE);
    try (LocalGroup group = LocalGroup.of(4)) {
      AtomicReference<Throwable> failure = new AtomicReference<>();
      ThrowingCallable body =
          () ->
              group.run(
                  comm -> {
                    int rank = comm.rank();
                    Link link = Link.open(comm, "dying", sides.senders, sides.receivers);
                    threads[rank] = Thread.currentThread();
                    links[rank] = link;
                    Moment moment =
                        () -> {
                          if (System.nanoTime() < deadAt.get()) {
                            return false;
                          }
                          if (kill == Kill.INTERRUPT && rank != victim) {
                            Thread.sleep(30); // only a call that blocks is interrupted
                          }
                          return kill == Kill.STAY_AWAY && rank == victim;
                        };
                    run(link, rank, sides, inPlace, checksums, outcomes[rank], ready, moment);
                  });
      Thread ranks = new Thread(() -> failure.set(catchThrowable(body)));
      ranks.start();
      ready.await();
      long at = System.nanoTime() + delayNs;
      deadAt.set(at);
      while (System.nanoTime() < at) {
        Thread.onSpinWait();
      }
      switch (kill) {
        case ABORT -> links[victim].communicator().abort("killed by the test");
        case LEAVE -> links[victim].close();
        case INTERRUPT -> threads[victim].interrupt();
        case STAY_AWAY -> {}
      }
      ranks.join();
      assertThat(failure.get()).as(what).isNull();
      // The link's failure is not that of the communicator that it was made from.
      for (int rank = 0; rank < 4; rank++) {
        assertThat(group.communicator(rank).failure()).as(what).isEmpty();
      }
    }
    int empty = check(outcomes, sides, inPlace, what);
    for (Link link : links) {
      link.close();
    }
    return empty;
  }

  /** Between two versions; true when the rank stays away from then on. */
  private interface Moment {
    boolean passed() throws InterruptedException;
  }

  /** The one that sends can't, and says so; who waits for it has done nothing wrong. */
  @Test
  void aSenderWhoseTensorIsClosedIsNamedToReceivers() {
    Layout from = Layout.parse("1:R");
    Layout to = Layout.parse("1@1:R");
    for (int round = 0; round < 30; round++) {
      try (LocalGroup group = LocalGroup.of(2)) {
        group.run(
            comm -> {
              Tensor own = Tensor.allocate(DType.F32, 16, 8);
              try (Link link = Link.open(comm, "policy", from.mesh(), to.mesh())) {
                LinkTransferBuilder builder = link.transferBuilder();
                if (comm.rank() == 1) {
                  LinkTransfer transfer = builder.into("w", new long[] {16, 8}, own, to).register();
                  assertThatThrownBy(transfer::receive)
                      .isInstanceOf(AbortedException.class)
                      .hasMessageContaining("rank 0")
                      .hasMessageContaining("source of tensor 'w'");
                  return;
                }
                LinkTransfer transfer = builder.add("w", new long[] {16, 8}, own, from).register();
                own.close();
                assertThatThrownBy(() -> transfer.send(1)).isInstanceOf(ClosedException.class);
              }
            });
      }
    }
  }

  private static void run(
      Link link,
      int rank,
      Sides sides,
      boolean inPlace,
      boolean checksums,
      Outcome outcome,
      CountDownLatch ready,
      Moment moment)
      throws InterruptedException {
    LinkTransferBuilder builder = link.transferBuilder();
    if (inPlace) {
      builder.inPlace();
    }
    if (checksums) {
      builder.checksums();
    }
    List<Tensor> sources = new ArrayList<>();
    Layout from = sides.senders.layout(Placement.shard(1));
    Layout to = sides.receivers.layout(Placement.shard(0));
    for (int i = 0; i < TENSORS; i++) {
      if (link.sends()) {
        sources.add(Tensor.allocate(DType.F32, from.localShape(SHAPE, rank)));
        builder.add("t" + i, SHAPE, sources.get(i), from);
      }
      if (link.receives()) {
        outcome.bound.add(Tensor.allocate(DType.F32, to.localShape(SHAPE, rank)));
        builder.into("t" + i, SHAPE, outcome.bound.get(i), to);
      }
    }
    LinkTransfer transfer;
    try {
      transfer = builder.register(Duration.ofSeconds(30));
    } finally {
      ready.countDown();
    }
    outcome.transfer = transfer;
    try {
      for (long version = 1; !moment.passed(); version++) {
        long filled = version;
        sources.forEach(source -> source.fill(filled));
        if (link.sends()) {
          transfer.send(version, DEADLINE);
        } else {
          transfer.receive(DEADLINE);
        }
        outcome.returned = version;
      }
    } catch (WindlassException dead) {
      assertThat(link.communicator().failure().isPresent() || dead instanceof ClosedException)
          .as(dead.toString())
          .isTrue();
    } finally {
      transfer.close();
    }
  }

  /** How many receivers hold no version though they had one, or part of one. */
  private static int check(Outcome[] outcomes, Sides sides, boolean inPlace, String what) {
    long newest = 0;
    for (int rank : sides.receivers.ranks()) {
      newest = Math.max(newest, outcomes[rank].returned);
    }
    int without = 0;
    for (int rank : sides.receivers.ranks()) {
      Outcome outcome = outcomes[rank];
      String here = what + ", rank " + rank;
      assertThat(outcome.returned).as(here).isBetween(newest - 1, newest);
      if (inPlace && newest > 0) {
        requireParts(outcome, newest, here);
      }
      OptionalLong version = outcome.transfer.version();
      if (version.isPresent()) {
        assertThat(version).as(here).hasValue(outcome.returned);
        assertThat(outcome.transfer.incomplete()).as(here).isEmpty();
        for (int i = 0; i < TENSORS; i++) {
          requireAll(outcome.transfer.tensor("t" + i), outcome.returned, here + ", t" + i);
        }
      } else if (outcome.returned > 0 || !outcome.transfer.incomplete().isEmpty()) {
        assertThat(inPlace).as(here).isTrue();
        requireTorn(outcome, here);
        without++;
      } else {
        assertThatThrownBy(() -> outcome.transfer.tensor("t0"))
            .as(here)
            .isInstanceOf(WindlassException.class);
      }
    }
    return without;
  }

  private static void requireTorn(Outcome outcome, String what) {
    List<String> incomplete = outcome.transfer.incomplete();
    for (int i = 0; i < TENSORS; i++) {
      String name = "t" + i;
      assertThatThrownBy(() -> outcome.transfer.tensor(name))
          .as(what)
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("version " + (outcome.returned + 1) + " did not arrive whole")
          .hasMessageContaining(incomplete.toString());
      if (!incomplete.contains(name)) {
        requireAll(outcome.bound.get(i), outcome.returned + 1, what + ", " + name);
      }
    }
  }

  /**
   * What one receiver has committed lies in the memory of every other, or is being replaced by the
   * version after it.
   */
  private static void requireParts(Outcome outcome, long version, String what) {
    for (int i = 0; i < TENSORS; i++) {
      for (float value : values(outcome.bound.get(i))) {
        if (value != version && value != version + 1) {
          throw new AssertionError(what + ": t" + i + " holds " + value + " beside " + version);
        }
      }
    }
  }

  private static void requireAll(Tensor tensor, long version, String what) {
    float[] values = values(tensor);
    for (int i = 0; i < values.length; i++) {
      if (values[i] != version) {
        throw new AssertionError(
            what
                + ": element "
                + i
                + " is "
                + values[i]
                + ", not "
                + version
                + " of "
                + Arrays.toString(tensor.shape()));
      }
    }
  }

  private static float[] values(Tensor tensor) {
    float[] values = new float[Math.toIntExact(tensor.numel())];
    tensor.copyTo(values);
    return values;
  }
}
