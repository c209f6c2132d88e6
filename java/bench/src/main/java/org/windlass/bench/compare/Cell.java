// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import org.windlass.bench.data.ByteSize;
import org.windlass.bench.side.Operation;

/**
 * A point at which sides are compared.
 *
 * @param op as {@code windlass bench} names it, or a {@link Redistribution}
 * @param bytes as {@code windlass bench} counts them; 0 for a barrier
 */
record Cell(String op, int ranks, long bytes) implements Comparable<Cell> {
  static final String BARRIER = "barrier";

  private static final Comparator<Cell> ORDER =
      Comparator.comparing((Cell cell) -> Operation.named(cell.op).map(Enum::ordinal).orElse(-1))
          .thenComparing(Cell::op)
          .thenComparing(Cell::ranks)
          .thenComparing(Cell::bytes);

  /** The cells in order, without repetition. */
  static List<Cell> inOrder(Collection<Cell> cells) {
    return cells.stream().distinct().sorted().toList();
  }

  /** The larger of all ranks' inputs and all ranks' outputs. */
  long totalBytes() {
    return Operation.named(op)
        .map(each -> Math.max(each.inputBytes(ranks, bytes), each.outputBytes(ranks, bytes)))
        .map(each -> ranks * each)
        .orElse(0L);
  }

  /** What a line of panels of the chart has in common. */
  String family() {
    return Redistribution.isNamed(op) ? Redistribution.parse(op).meshes() : op;
  }

  /** What a panel of the chart shows: barriers at all numbers of ranks, else all sizes. */
  String panel() {
    return op.equals(BARRIER) || Redistribution.isNamed(op) ? op : op + ", " + ranks + " ranks";
  }

  @Override
  public int compareTo(Cell other) {
    return ORDER.compare(this, other);
  }

  @Override
  public String toString() {
    String what = op + ", " + ranks + " ranks";
    return bytes == 0 ? what : what + ", " + ByteSize.format(bytes);
  }
}
