// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.Communicator;
import org.windlass.InvalidArgumentException;
import org.windlass.UnsupportedException;

@Timeout(60)
class ExamplesTest {
  static Stream<Arguments> cases() {
    return Examples.all().stream()
        .flatMap(
            example ->
                IntStream.of(1, 2, 3, 4, 8).mapToObj(ranks -> Arguments.of(example.name(), ranks)));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void checksItsOwnResult(String name, int ranks) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    try (var group = Communicator.local(ranks)) {
      Examples.find(name).orElseThrow().body().run(group, ranks, out);
    }
    String printed = bytes.toString(StandardCharsets.UTF_8);
    assertThat(printed).startsWith(name + ":").contains("golden").hasLineCount(1);
  }

  /** With threads beside that take all cores; one follower is killed in between. */
  @Test
  @Timeout(240)
  void jobsStayInStepBesideBusyThreads() throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    AtomicBoolean isOver = new AtomicBoolean();
    for (int i = 0; i < Runtime.getRuntime().availableProcessors(); i++) {
      Thread busy = new Thread(() -> spinUntil(isOver));
      busy.setDaemon(true);
      busy.start();
    }
    try {
      Examples.find("weight-sync").orElseThrow().jobs().orElseThrow().run(out);
    } finally {
      isOver.set(true);
    }
    String printed = bytes.toString(StandardCharsets.UTF_8);
    assertThat(printed)
        .contains("kill -9 of inference-b")
        .containsPattern("inference-b: lost")
        .containsPattern("inference-a +turns to version 5 after [0-9]+ answers by 4")
        .contains("weight-sync: 5 versions from 2 trainer processes to 2 inference jobs");
  }

  private static void spinUntil(AtomicBoolean isOver) {
    while (!isOver.get()) {
      Thread.onSpinWait();
    }
  }

  @Test
  void mainsTakeTargetAndRanks() {
    AllToAllExample.main(new String[] {"--target", "sim", "--ranks", "2"});
    BroadcastExample.main(new String[] {"--ranks", "3"});
    AllGatherExample.main(new String[] {"--ranks", "3"});
    ReduceScatterExample.main(new String[] {"--ranks", "3"});
    AllReduceExample.main(new String[] {"--ranks", "3"});
    ExpertDispatchExample.main(new String[] {"--ranks", "3"});
    PutExample.main(new String[] {"--ranks", "3"});
    OverlappingDomainsExample.main(new String[] {"--ranks", "3"});
    WeightSyncExample.main(new String[] {});
    ManifestExample.main(new String[] {"--ranks", "3"});
    FusedViewsExample.main(new String[] {});
    ModelLayoutsExample.main(new String[] {});
    assertThatThrownBy(() -> BroadcastExample.main(new String[] {"--target", "a5"}))
        .isInstanceOf(UnsupportedException.class);
    assertThatThrownBy(() -> BroadcastExample.main(new String[] {"--rank", "3"}))
        .isInstanceOf(InvalidArgumentException.class);
    assertThatThrownBy(() -> BroadcastExample.main(new String[] {"--ranks"}))
        .isInstanceOf(InvalidArgumentException.class);
    assertThatThrownBy(() -> BroadcastExample.main(new String[] {"--ranks", "two"}))
        .isInstanceOf(InvalidArgumentException.class);
  }

  @Test
  void namesAreFound() {
    assertThat(Examples.all()).extracting(Examples.Example::name).doesNotHaveDuplicates();
    assertThat(Examples.find("broadcast")).isPresent();
    assertThat(Examples.find("broad")).isEmpty();
  }
}
