// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.util.Map;
import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.report.Report;

/** One operation at one size. The {@link org.windlass.bench.sample.Sampler} runs it. */
public interface Workload {
  /** One rank's part. The sampler calls it only from that rank's thread. */
  interface RankWork extends AutoCloseable {
    /** Writes this rank's input for {@code iteration}, if it has an input. Allocates nothing. */
    default void rewrite(long iteration) {}

    void call();

    /**
     * Runs the {@code index}-th operation of a back-to-back stream. If the operation has a root,
     * {@code index} selects it.
     */
    default void stream(int index) {
      call();
    }

    /**
     * Copies the same number of bytes on the device as the operation moves. Overwrites the output.
     */
    default void copy() {}

    /**
     * Checks all outputs of this rank against the inputs of {@code iteration}.
     *
     * @throws org.windlass.error.VerificationFailedException if a value is wrong; the message has
     *     operation, rank and first difference
     */
    void verify(long iteration);

    @Override
    void close();
  }

  /** Allocates one rank's buffers. The call is collective. */
  RankWork open(Communicator comm);

  int ranks();

  /** Returns the size as the command line gives it, or 0 for an operation without a size. */
  default long bytes() {
    return 0;
  }

  /**
   * Returns true if the data lies in the memory of devices. In this case, device copies are the
   * floor.
   */
  default boolean isOnDevices() {
    return false;
  }

  /** Returns the name of the alternative implementation to measure. Empty for the default one. */
  default String by() {
    return "";
  }

  /** Returns further fields of the JSON result, which describe the operation. */
  default Map<String, Object> details() {
    return Map.of();
  }

  /** Returns further fields of the JSON result, which the ranks' last calls determine. */
  default Map<String, Object> seen(Report report) {
    return Map.of();
  }

  /** Returns the largest number of bytes that a rank receives from other ranks. */
  default long receivedBytes() {
    return 0;
  }

  /**
   * Returns the median time, in microseconds, that pinned threads need to only move the bytes.
   * Empty if the operation moves no bytes.
   */
  default OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.empty();
  }
}
