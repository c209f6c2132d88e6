// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Tests of random seeds: which ones they get, and what a failure says. */
class RandomSeedsTest {
  private static final List<Long> SEEN = new ArrayList<>();

  private final Map<String, String> chosen = new HashMap<>();

  @BeforeEach
  void forgetSeeds() {
    SEEN.clear();
    for (String property : List.of(SeedRunner.PROPERTY, SeedRunner.SECONDS, SeedRunner.LONG)) {
      chosen.put(property, System.clearProperty(property));
    }
  }

  @AfterEach
  void restoreProperties() {
    chosen.forEach(
        (property, value) -> {
          if (value != null) {
            System.setProperty(property, value);
          }
        });
  }

  /** Not found by name as a test: run by the tests here alone. */
  static final class Passing {
    @RandomSeeds(40)
    void passes(long seed) {
      SEEN.add(seed);
    }
  }

  static final class More {
    @RandomSeeds(value = 3, inLong = 9)
    void passes(long seed) {
      SEEN.add(seed);
    }
  }

  static final class Lasting {
    @RandomSeeds(value = 2, seconds = 1)
    void passes(long seed) throws InterruptedException {
      SEEN.add(seed);
      Thread.sleep(1);
    }
  }

  /** Fails for the second fixed seed. */
  static final class Failing {
    @RandomSeeds(40)
    void failsForOne(long seed) {
      SEEN.add(seed);
      assertThat(seed).as("what differs").isNotEqualTo(1);
    }
  }

  @Test
  void asManyDifferentSeedsAsAskedFor() {
    assertThat(run(Passing.class)).containsExactly("SUCCESSFUL");
    assertThat(SEEN).hasSize(40).doesNotHaveDuplicates().startsWith(0L, 1L, -1L);
    List<Long> before = List.copyOf(SEEN);
    SEEN.clear();
    run(Passing.class);
    assertThat(SEEN).isNotEqualTo(before);
  }

  @Test
  void moreSeedsInTheLongForm() {
    run(More.class);
    assertThat(SEEN).hasSize(3);
    SEEN.clear();
    System.setProperty(SeedRunner.LONG, "true");
    try {
      run(More.class);
      assertThat(SEEN).hasSize(9);
      SEEN.clear();
      run(Passing.class);
      assertThat(SEEN).hasSize(40);
    } finally {
      System.clearProperty(SeedRunner.LONG);
    }
  }

  @Test
  void seedsForAsLongAsAskedFor() {
    long start = System.nanoTime();
    assertThat(run(Lasting.class)).containsExactly("SUCCESSFUL");
    assertThat(System.nanoTime() - start).isGreaterThan(1_000_000_000L);
    assertThat(SEEN).hasSizeGreaterThan(5).doesNotHaveDuplicates().startsWith(0L, 1L, -1L);
  }

  @Test
  void thePropertyChoosesForHowLong() {
    System.setProperty(SeedRunner.SECONDS, "0");
    try {
      assertThat(run(Lasting.class)).containsExactly("SUCCESSFUL");
    } finally {
      System.clearProperty(SeedRunner.SECONDS);
    }
    assertThat(SEEN).containsExactly(0L, 1L);
  }

  @Test
  void aFailureNamesItsSeedAndEndsTheTest() {
    List<String> results = run(Failing.class);
    assertThat(SEEN).containsExactly(0L, 1L);
    assertThat(results).hasSize(1);
    assertThat(results.get(0))
        .startsWith("FAILED seed 1 (-Dtest=Failing#failsForOne -Dwindlass.seed=1 runs it again): ")
        .contains("AssertionError", "what differs");
  }

  @Test
  void theFirstSeedIsNamedToo() {
    System.setProperty(SeedRunner.PROPERTY, "1");
    try {
      assertThat(run(Failing.class))
          .allMatch(result -> result.startsWith("FAILED seed 1 (-Dtest=Failing#failsForOne "));
    } finally {
      System.clearProperty(SeedRunner.PROPERTY);
    }
    assertThat(SEEN).containsExactly(1L);
  }

  @Test
  void thePropertyChoosesOneSeed() {
    System.setProperty(SeedRunner.PROPERTY, "-17");
    try {
      assertThat(run(Passing.class)).containsExactly("SUCCESSFUL");
    } finally {
      System.clearProperty(SeedRunner.PROPERTY);
    }
    assertThat(SEEN).containsExactly(-17L);
  }

  /** How each test ended, and with which message. */
  private static List<String> run(Class<?> tests) {
    List<String> results = new ArrayList<>();
    LauncherFactory.create()
        .execute(
            LauncherDiscoveryRequestBuilder.request().selectors(selectClass(tests)).build(),
            new TestExecutionListener() {
              @Override
              public void executionFinished(TestIdentifier test, TestExecutionResult result) {
                if (test.isTest()) {
                  results.add(
                      result.getStatus()
                          + result.getThrowable().map(t -> " " + t.getMessage()).orElse(""));
                }
              }
            });
    return results;
  }
}
