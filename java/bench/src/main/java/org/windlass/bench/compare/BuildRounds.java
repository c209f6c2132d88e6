// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.ArrayList;
import java.util.DoubleSummaryStatistics;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.windlass.bench.sample.Times;

/**
 * Collects the times of all builds for a {@link Cell}. A round, in which each build is measured
 * once, counts only if an empty call took about the same time with each build. A host moves virtual
 * cores closer together or further apart between rounds, and the time of an empty call shows this.
 */
final class BuildRounds {
  /** Largest difference between the builds' empty calls in a round that counts, as a fraction. */
  private static final double MOST_APART = 0.25;

  /**
   * The same limit, as a fraction of the shortest median of any build. The larger limit applies.
   */
  private static final double OF_MEDIAN = 0.03;

  /** The other checkout's build, the same build again, and this checkout's build. */
  enum Build {
    OTHER,
    CONTROL,
    THIS
  }

  private final List<Map<Build, Times>> rounds = new ArrayList<>();
  private int leftOut;
  private int slowHere;

  /** Adds a round, or returns false if the times of the builds' empty calls differ too much. */
  boolean add(Map<Build, Times> round) {
    DoubleSummaryStatistics empty =
        round.values().stream().mapToDouble(Times::empty).summaryStatistics();
    double apart = empty.getMax() - empty.getMin();
    double shortest = round.values().stream().mapToDouble(Times::median).min().orElseThrow();
    boolean isAlike =
        apart <= MOST_APART * empty.getMin()
            || apart <= OF_MEDIAN * shortest;
    if (isAlike) {
      return rounds.add(round);
    }
    leftOut++;
    double others = Math.max(of(Build.OTHER, round).empty(), of(Build.CONTROL, round).empty());
    slowHere += of(Build.THIS, round).empty() > (1 + MOST_APART) * others ? 1 : 0;
    return false;
  }

  /**
   * Returns true if there were at least two rounds, but none of them counts, because an empty call
   * always took longer with this checkout's build. In this case the cause is the build, and not the
   * machine.
   */
  boolean isSlowByItself() {
    return rounds.isEmpty() && leftOut > 1 && slowHere == leftOut;
  }

  int count() {
    return rounds.size();
  }

  /** Returns the other build's median in microseconds, or NaN without a round. */
  double median() {
    return Row.median(rounds.stream().map(round -> round.get(Build.OTHER)).toList(), Times::median);
  }

  private static Times of(Build build, Map<Build, Times> round) {
    return Objects.requireNonNull(round.get(build));
  }

  /**
   * Returns the median ratio of a build's time to the time of the other checkout's build. NaN
   * without a round.
   */
  double ratio(Build build) {
    return Row.middle(
        rounds.stream()
            .mapToDouble(round -> of(build, round).median() / of(Build.OTHER, round).median()),
        (a, b) -> Math.sqrt(a * b));
  }
}
