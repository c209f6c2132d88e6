// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;

/** A random program of all ranks with at most one fault, and what its run has to look like. */
record Program(int ranks, CommunicatorOptions options, List<Step> steps, Fault fault) {
  private static final int MOST_STEPS = 12;

  static Program random(long seed) {
    Random random = new Random(seed);
    int ranks = 1 + random.nextInt(8);
    List<Step> steps = new ArrayList<>();
    int count = 1 + random.nextInt(MOST_STEPS);
    for (int i = 0; i < count; i++) {
      steps.add(Step.random(i, ranks, random, true));
    }
    Fault fault = Fault.random(ranks, steps.size(), random);
    int[] cores = {0, 0, 1, ranks};
    int[] sequences = {1, 0x7fffff00, 0xffffff00, random.nextInt()};
    CommunicatorOptions options =
        CommunicatorOptions.defaults()
            .withDeadline(fault.deadline(steps.size()))
            .withCores(cores[random.nextInt(cores.length)])
            .withBlocks(random.nextInt(3))
            .withFirstSequence(sequences[random.nextInt(sequences.length)])
            .withPinnedThreads(random.nextBoolean())
            .withAdjustThreads(random.nextBoolean());
    return new Program(ranks, options, steps, fault);
  }

  /** Runs it on a fresh group; an AssertionError says what went wrong. */
  void run() {
    AtomicReferenceArray<Throwable> failures = new AtomicReferenceArray<>(ranks);
    try (LocalGroup group = LocalGroup.of(ranks, options)) {
      try {
        group.run(
            comm -> {
              try {
                runRank(comm);
              } catch (Throwable failure) {
                failures.set(comm.rank(), failure);
                throw failure;
              }
            });
      } catch (WindlassException | Fault.Thrown | Step.WrongData e) {
        // The ranks' own failures are looked at one by one.
      }
    } catch (MismatchException e) {
      // close() may be the first to see that ranks called different things.
      if (fault.isHarmless()) {
        throw e;
      }
    } finally {
      Thread.interrupted();
    }
    check(failures);
  }

  private void runRank(Communicator comm) {
    for (int i = 0; i < steps.size(); i++) {
      if (comm.rank() == fault.rank() && i == fault.step()) {
        fault.run(comm, steps.get(i), 2 * options.deadline().toMillis());
      } else {
        steps.get(i).run(comm);
      }
    }
  }

  private void check(AtomicReferenceArray<Throwable> failures) {
    for (int rank = 0; rank < ranks; rank++) {
      Throwable failure = failures.get(rank);
      boolean mistakes =
          isOutOfStep() || rank == fault.rank() && fault.kind() == Fault.Kind.MISTAKE;
      if (failure == null || (failure instanceof Step.WrongData && mistakes)) {
        continue;
      }
      if (failure instanceof Fault.Thrown && rank == fault.rank()) {
        continue;
      }
      if (fault.isHarmless() || !(failure instanceof WindlassException)) {
        throw new AssertionError("rank " + rank + " ended with " + failure, failure);
      }
      requirePlausible(rank, (WindlassException) failure, failures);
    }
  }

  /** Whether a rank's next step may be taken for the one that it has skipped. */
  private boolean isOutOfStep() {
    int next = fault.step() + 1;
    return fault.kind() == Fault.Kind.SKIP
        && next < steps.size()
        && steps.get(fault.step()).isLike(steps.get(next));
  }

  /** A peer's error names the rank at fault, or one that has failed because of it. */
  private void requirePlausible(
      int rank, WindlassException failure, AtomicReferenceArray<Throwable> failures) {
    if (rank == fault.rank()) {
      return;
    }
    boolean nested = steps.stream().anyMatch(s -> s.kind() == Step.Kind.SPLIT || s.kind() == Step.Kind.LINK);
    boolean names =
        failure.faultyRanks().stream()
            .anyMatch(c -> c == fault.rank() || (c < ranks && failures.get(c) != null));
    // Within a part or a link ranks have other numbers.
    if (failure.faultyRanks().isEmpty() || !(names || nested)) {
      throw new AssertionError(
          "rank " + rank + " names " + failure.faultyRanks() + ": " + failure, failure);
    }
  }
}
