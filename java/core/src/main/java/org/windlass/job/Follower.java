// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import org.windlass.error.WindlassException;

/**
 * State of a job that follows a source.
 *
 * @param job name of the job
 * @param version last version that it received since it was linked; empty before the first
 * @param lag number of versions that the source has sent after that version
 * @param lost why the job is no longer linked; empty while it is linked
 */
public record Follower(
    String job, OptionalLong version, long lag, Optional<WindlassException> lost) {
  public Follower {
    Objects.requireNonNull(job, "job");
    Objects.requireNonNull(version, "version");
    Objects.requireNonNull(lost, "lost");
  }

  /** Returns a text such as {@code inference: version 4, 1 behind}. */
  @Override
  public String toString() {
    String received = version.isPresent() ? "version " + version.getAsLong() : "no version yet";
    String current = received + (lag == 0 ? "" : ", " + lag + " behind");
    return job + ": " + lost.map(why -> "lost (" + reason(why) + ")").orElse(current);
  }

  /** Returns the message without its leading operation, which often repeats the link's name. */
  private static String reason(WindlassException why) {
    String message = why.getMessage();
    String operation = why.operation() + ": ";
    return message.startsWith(operation) ? message.substring(operation.length()) : message;
  }
}
