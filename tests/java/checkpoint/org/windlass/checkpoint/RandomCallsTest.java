// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.layout.Layout;
import org.windlass.reshard.Reshard;
import org.windlass.testing.PublicApi;
import org.windlass.testing.RandomArguments;
import org.windlass.testing.RandomCalls;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Resources;

/**
 * Random calls of the whole public API of checkpoints with random arguments, most of them wrong: each
 * ends soon, with a result or a documented exception, and leaves nothing.
 */
class RandomCallsTest {
  private static final int CALLS_A_SESSION = 400;
  private static final int WARM_UP_SESSIONS = 10;

  @TempDir private Path folder;

  private final RandomCalls calls = new RandomCalls(PublicApi.calls(Checkpoint.class));
  private int sessions;
  private Resources before;

  @RandomSeeds(value = 2 * WARM_UP_SESSIONS, seconds = 5)
  void aRandomCallIsAnsweredOrRefusedAsDocumented(long seed) throws IOException {
    if (sessions++ == WARM_UP_SESSIONS) {
      before = Resources.settled();
    }
    session(seed);
  }

  @AfterEach
  void nothingIsLeftAndMostWereAnswered() {
    if (before != null) {
      before.requireNoMoreIn(Resources.settled());
      calls.requireMostAnswered(sessions * CALLS_A_SESSION);
    }
  }

  private void session(long seed) throws IOException {
    RandomArguments arguments = new RandomArguments(new Random(seed), folder);
    SafetensorsHeader.Item item = new SafetensorsHeader.Item("w", DType.F32, List.of(4L));
    Path written = folder.resolve("there");
    try (SafetensorsWriter writer = SafetensorsWriter.create(written, List.of(item), Map.of());
        Checkpoint in = Checkpoint.open(written);
        CheckpointWriter out = CheckpointWriter.begin(folder.resolve("out"), true)) {
      arguments.keep(item);
      arguments.keep(writer);
      arguments.keep(writer.header());
      arguments.keep(in);
      arguments.keep(in.files());
      arguments.keep(out);
      arguments.keep(Layout.parse("1:S0"));
      arguments.keep(Reshard.from(Layout.parse("1:R")).to("2:S0").in(written).out(folder.resolve("new")));
      for (int i = 0; i < CALLS_A_SESSION; i++) {
        calls.next(i, arguments);
      }
    }
    arguments.close();
    Thread.interrupted();
    try (Stream<Path> left = Files.walk(folder)) {
      for (Path path : left.sorted(Comparator.reverseOrder()).toList()) {
        if (!path.equals(folder)) {
          Files.delete(path);
        }
      }
    }
  }
}
