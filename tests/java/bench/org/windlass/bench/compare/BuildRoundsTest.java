// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.windlass.bench.compare.BuildRounds.Build.CONTROL;
import static org.windlass.bench.compare.BuildRounds.Build.OTHER;
import static org.windlass.bench.compare.BuildRounds.Build.THIS;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.windlass.bench.compare.BuildRounds.Build;
import org.windlass.bench.sample.Times;

/** Which rounds compare builds, and what they come to. */
class BuildRoundsTest {
  private static Times times(double median, double empty) {
    return new Times(median, median, median, median, empty, Double.NaN, Double.NaN);
  }

  private static Map<Build, Times> round(double other, double control, double own) {
    return Map.of(OTHER, times(other, 0.1), CONTROL, times(control, 0.1), THIS, times(own, 0.1));
  }

  @Test
  void aRatioIsTheMedianOfTheRatiosOfRounds() {
    BuildRounds rounds = new BuildRounds();
    assertThat(rounds.ratio(THIS)).isNaN();
    assertThat(rounds.add(round(1, 1, 2))).isTrue();
    assertThat(rounds.add(round(10, 20, 10))).isTrue();
    assertThat(rounds.add(round(4, 2, 2))).isTrue();
    assertThat(rounds.count()).isEqualTo(3);
    assertThat(rounds.median()).isEqualTo(4);
    assertThat(rounds.ratio(THIS)).isEqualTo(1);
    assertThat(rounds.ratio(CONTROL)).isEqualTo(1);
    rounds.add(round(1, 1, 4));
    assertThat(rounds.ratio(THIS)).isCloseTo(Math.sqrt(2), within(1e-12));
  }

  /** Cores that lie apart make an empty call slower, and the operation with it. */
  @Test
  void aRoundInWhichTheMachineChangedIsNoneUnlessTheCellIsLong() {
    BuildRounds rounds = new BuildRounds();
    Map<Build, Times> moved =
        Map.of(OTHER, times(0.5, 0.12), CONTROL, times(0.5, 0.12), THIS, times(1.5, 0.40));
    assertThat(rounds.add(moved)).isFalse();
    assertThat(rounds.count()).isZero();
    Map<Build, Times> little =
        Map.of(OTHER, times(0.5, 0.120), CONTROL, times(0.5, 0.125), THIS, times(0.6, 0.135));
    assertThat(rounds.add(little)).isTrue();
    Map<Build, Times> longer =
        Map.of(OTHER, times(50, 0.12), CONTROL, times(50, 0.12), THIS, times(51, 0.40));
    assertThat(rounds.add(longer)).isTrue();
    Map<Build, Times> held =
        Map.of(OTHER, times(8105, 100), CONTROL, times(5, 0.25), THIS, times(5, 0.25));
    assertThat(rounds.add(held)).isFalse();
    assertThat(rounds.isSlowByItself()).isFalse();
  }

  @Test
  void aBuildWithARoundThatComparesIsNotSlowByItself() {
    BuildRounds rounds = new BuildRounds();
    Map<Build, Times> moved =
        Map.of(OTHER, times(0.5, 0.15), CONTROL, times(0.5, 0.15), THIS, times(0.5, 0.20));
    assertThat(rounds.add(moved)).isFalse();
    assertThat(rounds.add(moved)).isFalse();
    assertThat(rounds.isSlowByItself()).isTrue();
    assertThat(
            rounds.add(
                Map.of(OTHER, times(0.5, 0.15), CONTROL, times(0.5, 0.15), THIS, times(0.5, 0.15))))
        .isTrue();
    assertThat(rounds.isSlowByItself()).isFalse();
  }

  @Test
  void aBuildWhoseRanksShareACoreIsSlowByItself() {
    BuildRounds rounds = new BuildRounds();
    Map<Build, Times> crowded =
        Map.of(OTHER, times(0.5, 0.15), CONTROL, times(0.5, 0.18), THIS, times(30, 15));
    assertThat(rounds.add(crowded)).isFalse();
    assertThat(rounds.isSlowByItself()).isFalse();
    assertThat(rounds.add(crowded)).isFalse();
    assertThat(rounds.isSlowByItself()).isTrue();
    Map<Build, Times> elsewhere =
        Map.of(OTHER, times(30, 15), CONTROL, times(0.5, 0.18), THIS, times(0.5, 0.15));
    assertThat(rounds.add(elsewhere)).isFalse();
    assertThat(rounds.isSlowByItself()).isFalse();
  }
}
