// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import org.windlass.WindlassException;

/**
 * How a job stands that follows a source.
 *
 * @param job its name
 * @param version the last one that it was sent since it was linked; empty before the first
 * @param lag how many versions were sent after that one
 * @param lost why it is linked no more; empty while it is
 */
public record Follower(
    String job, OptionalLong version, long lag, Optional<WindlassException> lost) {
  /** Checks the components. */
  public Follower {
    Objects.requireNonNull(job, "job");
    Objects.requireNonNull(version, "version");
    Objects.requireNonNull(lost, "lost");
  }

  /** Such as {@code inference: version 4, 1 behind}. */
  @Override
  public String toString() {
    return job
        + ": "
        + lost.map(why -> "lost (" + why.getMessage() + ")")
            .orElse(
                (version.isPresent() ? "version " + version.getAsLong() : "no version yet")
                    + (lag == 0 ? "" : ", " + lag + " behind"));
  }
}
