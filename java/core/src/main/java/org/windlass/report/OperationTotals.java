// SPDX-License-Identifier: Apache-2.0
package org.windlass.report;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

/**
 * Totals of the operations of one kind that a rank has completed since its communicator was made.
 * See {@link org.windlass.Communicator#totals}.
 *
 * @param operation a name such as {@code all-to-all}
 * @param calls number of operations, failed ones included
 * @param failures number of operations that failed
 * @param bytes sum of the operations' {@link Report.Call#bytes}
 * @param waited sum of the operations' {@link Report.Call#waited}
 */
public record OperationTotals(
    String operation, long calls, long failures, long bytes, Duration waited) {
  public OperationTotals {
    Objects.requireNonNull(operation, "operation");
    Objects.requireNonNull(waited, "waited");
  }

  /**
   * Reads the totals of a {@code wl_comm_t}. For packages of Windlass.
   *
   * @hidden
   */
  public static List<OperationTotals> of(long comm) {
    try (Scratch scratch = Scratch.take()) {
      return IntStream.range(Native.WL_OP_NONE + 1, Native.WL_OP_COUNT)
          .mapToObj(operation -> of(comm, operation, scratch))
          .toList();
    }
  }

  private static OperationTotals of(long comm, int operation, Scratch scratch) {
    Native.wl_comm_totals(comm, operation, scratch.config(Structs.Totals.SIZE));
    return new OperationTotals(
        Native.wl_operation_name(operation),
        scratch.configLong(Structs.Totals.CALLS),
        scratch.configLong(Structs.Totals.FAILURES),
        scratch.configLong(Structs.Totals.BYTES),
        Duration.ofNanos(scratch.configLong(Structs.Totals.WAITED_NS)));
  }
}
