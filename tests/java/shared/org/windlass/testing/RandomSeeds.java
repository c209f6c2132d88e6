// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A test that runs {@link #value()} times, and on for {@link #seconds()}, with another seed as its
 * one {@code long} parameter each time: a few fixed ones, then random ones. It ends at the first
 * failure, whose message begins with the seed and what runs it again: {@code -Dwindlass.seed=N} runs
 * seed N alone. JUnit sees one case, on one instance, so that a case costs what its body does.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@Test
@ExtendWith(SeedRunner.class)
public @interface RandomSeeds {
  /** How many seeds at least. */
  int value();

  /** How many where {@code -Dwindlass.long=true} is given; where it is 0, as many as without. */
  int inLong() default 0;

  /** For how long; where it is not 0, {@code -Dwindlass.chance.seconds=N} makes it N. */
  int seconds() default 0;
}
