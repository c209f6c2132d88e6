// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.layout.Layout;
import org.windlass.plan.Plan;
import org.windlass.testing.Mutation;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Resources;

/**
 * Plans and layouts in which bytes were changed, cut, repeated or exchanged for other words: each is
 * read whole or refused.
 */
class MutatedTextsTest {
  private static final int WARM_UP = 200;
  private static final long[] SHAPE = {7, 5};

  private int cases;
  private int refused;
  private Resources before;

  @RandomSeeds(value = 2 * WARM_UP, seconds = 2)
  void aMutatedTextIsReadOrRefused(long seed) {
    if (cases++ == WARM_UP) {
      before = Resources.settled();
    }
    refused += isParsed(new Random(seed)) ? 0 : 1;
  }

  @AfterEach
  void nothingIsLeftAndSomeWereRefused() {
    if (before != null) {
      System.out.printf("%d mutated texts, %d refused%n", cases, refused);
      before.requireNoMoreNow();
      assertThat(refused).isBetween(cases / 10, cases - 1);
    }
  }

  private static boolean isParsed(Random random) {
    String layout = "dp=2xtp=4@[0-3,8-11]:S0*2,P:max";
    Plan plan = Plan.of(Layout.parse("2x2:S0,R"), Layout.parse("3@4:S1"), SHAPE, DType.F32);
    try {
      if (random.nextBoolean()) {
        Plan.parse(Mutation.of(plan.toJson(), random));
      } else {
        Layout.parse(Mutation.of(layout, random));
      }
      return true;
    } catch (InvalidArgumentException | UnsupportedException e) {
      assertThat(e.getMessage()).isNotBlank();
      return false;
    }
  }
}
