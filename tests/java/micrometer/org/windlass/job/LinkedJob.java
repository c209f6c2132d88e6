// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;

/** Jobs that find each other in a folder of a test. */
public final class LinkedJob {
  private LinkedJob() {}

  public static Job of(String name, Communicator communicator, Path folder) {
    Map<String, String> environment =
        Map.of("WINDLASS_LINK_RENDEZVOUS", folder.toString().replaceAll("\\W", "-"),
            "XDG_RUNTIME_DIR", folder.toString());
    Duration deadline = Duration.ofSeconds(40);
    return Job.of(name, communicator, CommunicatorOptions.defaults(), environment, deadline);
  }
}
