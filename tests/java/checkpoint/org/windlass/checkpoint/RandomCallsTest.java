// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.windlass.DType;
import org.windlass.layout.Layout;
import org.windlass.reshard.Reshard;
import org.windlass.testing.PublicApi;
import org.windlass.testing.RandomArguments;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.RandomSessions;

/** Random calls of the public API of checkpoints. */
class RandomCallsTest extends RandomSessions {
  RandomCallsTest() {
    super(PublicApi.calls(Checkpoint.class));
  }

  @RandomSeeds(value = SESSIONS, seconds = 2)
  void aRandomCallIsAnsweredOrRefusedAsDocumented(long seed) throws IOException {
    run(seed);
  }

  @Override
  protected void session(RandomArguments arguments, Path folder, Runnable calls)
      throws IOException {
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
      arguments.keep(
          Reshard.from(Layout.parse("1:R")).to("2:S0").in(written).out(folder.resolve("new")));
      calls.run();
    }
  }
}
