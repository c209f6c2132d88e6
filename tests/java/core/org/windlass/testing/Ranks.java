// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.params.provider.Arguments;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;

/**
 * The ranks of a test, and where they live. What a rank does is checked on that rank, in the body,
 * which holds nothing that it shares with others or with the test but values.
 */
public record Ranks(Launch launch, int count) implements Serializable {
  private static final boolean IS_LONG = Boolean.getBoolean(SeedRunner.LONG);

  /** What each rank does; it goes to other processes with the values that it holds. */
  @FunctionalInterface
  public interface Body extends Serializable {
    void run(Communicator comm) throws Exception;
  }

  /** Those of the ranks' communicator. */
  @FunctionalInterface
  public interface Options extends Serializable {
    CommunicatorOptions get();
  }

  /** As many as {@code launch} takes, {@code count} or a few more. */
  public static Ranks atLeast(Launch launch, int count) {
    int taken = IntStream.range(count, count + 4).filter(launch::takes).findFirst().orElseThrow();
    return new Ranks(launch, taken);
  }

  /** All launches of each of {@code counts} on one host. */
  public static Stream<Ranks> each(int... counts) {
    return Arrays.stream(Launch.values())
        .filter(launch -> launch != Launch.HOSTS)
        .flatMap(
            launch -> IntStream.of(launch.of(counts)).mapToObj(count -> new Ranks(launch, count)));
  }

  /**
   * Pairs of ranks and {@code others}: in the long form all of them; else each number of ranks and
   * each other value at least once in each launch on one host.
   */
  public static Stream<Arguments> with(int[] counts, Object... others) {
    return Stream.of(Launch.values())
        .filter(launch -> launch != Launch.HOSTS)
        .flatMap(launch -> with(launch, counts, others));
  }

  /** The same, and where ranks live on several hosts. */
  public static Stream<Arguments> everywhereWith(int[] counts, Object... others) {
    return Stream.of(Launch.values()).flatMap(launch -> with(launch, counts, others));
  }

  private static Stream<Arguments> with(Launch launch, int[] counts, Object... others) {
    List<Arguments> pairs = new ArrayList<>();
    int[] taken = launch.of(counts);
    for (int i = 0; i < taken.length; i++) {
      for (int j = 0; j < others.length; j++) {
        boolean isTurn = i % others.length == j || j % taken.length == i;
        if (IS_LONG || isTurn) {
          pairs.add(Arguments.of(new Ranks(launch, taken[i]), others[j]));
        }
      }
    }
    return pairs.stream();
  }

  /** Runs {@code body} on each rank, and then closes them all. */
  public void run(Body body) {
    run(CommunicatorOptions::defaults, body);
  }

  /** The same with options of their communicator. */
  public void run(Options options, Body body) {
    if (launch != Launch.THREADS) {
      RankJvms.run(launch, count, options, body);
      return;
    }
    try (LocalGroup group = LocalGroup.of(count, options.get())) {
      group.run(body::run);
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  /** Whether a body goes over all of its cases here; else over some, chosen by turns. */
  public boolean isWhole() {
    return launch.isWhole();
  }

  /** {@code rounds} in the long form; else a fourth, or a tenth where ranks are processes. */
  public int rounds(int rounds) {
    return IS_LONG ? rounds : Math.max(1, rounds / (launch == Launch.THREADS ? 4 : 10));
  }

  @Override
  public String toString() {
    return count + (count == 1 ? " rank, as " : " ranks, as ") + launch;
  }
}
