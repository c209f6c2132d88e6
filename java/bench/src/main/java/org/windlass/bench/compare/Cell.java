// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.windlass.bench.data.ByteSize;
import org.windlass.bench.side.Operation;

/**
 * One measured point of a comparison: an operation, a number of ranks and a size.
 *
 * @param op name of the operation in {@code windlass bench}, or of a {@link Redistribution}
 * @param bytes size as {@code windlass bench} counts it; 0 for a barrier
 */
record Cell(String op, int ranks, long bytes) implements Comparable<Cell> {
  static final String BARRIER = "barrier";

  /** Messages between pairs of ranks, in both directions. */
  static final String SEND_RECEIVE = "send-receive";

  /** Messages of each rank to the next one. */
  static final String RING = "ring";

  private static final Comparator<Cell> ORDER =
      Comparator.comparing((Cell cell) -> Operation.named(cell.op).map(Enum::ordinal).orElse(-1))
          .thenComparing(Cell::op)
          .thenComparing(Cell::ranks)
          .thenComparing(Cell::bytes);

  static List<Cell> inOrder(Collection<Cell> cells) {
    return cells.stream().distinct().sorted().toList();
  }

  /** Returns a cell of size 0 that represents all sizes. One process measures all of them. */
  Cell group() {
    return new Cell(op, ranks, 0);
  }

  static Map<Cell, List<Cell>> grouped(List<Cell> cells) {
    return cells.stream()
        .collect(Collectors.groupingBy(Cell::group, TreeMap::new, Collectors.toList()));
  }

  boolean isOfMessages() {
    return op.equals(SEND_RECEIVE) || op.equals(RING);
  }

  /** Returns the bytes of all ranks' inputs or of all ranks' outputs, whichever is larger. */
  long totalBytes() {
    return Operation.named(op)
        .map(each -> Math.max(each.inputBytes(ranks, bytes), each.outputBytes(ranks, bytes)))
        .map(each -> ranks * each)
        .orElse(isOfMessages() ? ranks * bytes : 0L);
  }

  String family() {
    return Redistribution.isNamed(op) ? Redistribution.parse(op).meshes() : op;
  }

  /** Returns the title of the panel of a {@link Chart} that shows the cell. */
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
