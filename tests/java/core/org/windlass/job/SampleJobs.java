// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.UUID;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;

/** Jobs for tests outside this package. */
public final class SampleJobs {
  private SampleJobs() {}

  /** One that nobody connects to. */
  public static Job alone(Communicator communicator, Path folder) {
    Map<String, String> environment =
        Map.of(
            "WINDLASS_LINK_RENDEZVOUS", "test-" + UUID.randomUUID(),
            "XDG_RUNTIME_DIR", folder.toString());
    return Job.of(
        "alone",
        communicator,
        CommunicatorOptions.defaults(),
        environment,
        Duration.ofSeconds(10));
  }
}
