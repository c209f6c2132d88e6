// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.util.Map;
import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.report.Report;

/** One operation at one size: what the sampler runs, and what the result says about it. */
public interface Workload {
  /** One rank's part. The sampler calls it from that rank's thread alone. */
  interface RankWork extends AutoCloseable {
    /** Writes this rank's input, if it has one, as that of {@code iteration}. Allocates nothing. */
    default void rewrite(long iteration) {}

    /** The operation, once. */
    void call();

    /** The operation as number {@code index} of a stream; a root rotates with it. */
    default void stream(int index) {
      call();
    }

    /** Has the device move just the bytes, where {@link #isOnDevices}; overwrites the output. */
    default void copy() {}

    /**
     * Compares all outputs of this rank with what the inputs of {@code iteration} give.
     *
     * @throws org.windlass.error.VerificationFailedException naming operation, rank and first
     *     difference
     */
    void verify(long iteration);

    @Override
    void close();
  }

  /** Makes one rank's buffers. Collective. */
  RankWork open(Communicator comm);

  int ranks();

  /** The size as the command line gives it; 0 of what has none. */
  default long bytes() {
    return 0;
  }

  /** Whether what it moves lies in the memory of devices, whose copies are its floor. */
  default boolean isOnDevices() {
    return false;
  }

  /** By what else it does the operation than what that is for; empty: by that. */
  default String by() {
    return "";
  }

  /** What else the ranks' last calls say, once all is measured: fields of the result. */
  default Map<String, Object> seen(Report report) {
    return Map.of();
  }

  /** Bytes that the rank which receives most receives from others. */
  default long receivedBytes() {
    return 0;
  }

  /**
   * Median time in microseconds in which pinned threads move just the bytes; empty if none move.
   */
  default OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.empty();
  }
}
