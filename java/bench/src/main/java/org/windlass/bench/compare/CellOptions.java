// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.ArrayList;
import java.util.List;
import org.windlass.bench.data.ByteSize;
import org.windlass.bench.side.Operation;
import org.windlass.error.InvalidArgumentException;
import picocli.CommandLine.Option;

/** Command-line options that select the collectives, numbers of ranks and sizes to compare. */
final class CellOptions {
  private static final int MOST_RANKS = 64;

  @Option(
      names = "--ops",
      paramLabel = "OP",
      split = ",",
      defaultValue =
          "barrier,all-to-all,broadcast,all-gather,reduce-scatter,all-reduce,send-receive,ring",
      description = "Operations (${DEFAULT-VALUE}).")
  private List<String> ops;

  @Option(
      names = "--ranks",
      paramLabel = "N",
      split = ",",
      defaultValue = "2,4,8,16",
      description = "Numbers of ranks (${DEFAULT-VALUE}).")
  private List<Integer> ranks;

  @Option(
      names = "--bytes",
      paramLabel = "B",
      split = ",",
      defaultValue = "4,256,4K,64K,1M,16M",
      description = "Sizes, as windlass bench counts them (${DEFAULT-VALUE}).")
  private List<String> bytes;

  @Option(
      names = "--total",
      paramLabel = "B",
      defaultValue = "1G",
      description =
          "Leaves out cells whose inputs or outputs take more over all ranks (${DEFAULT-VALUE}).")
  private String total;

  /** Returns the selected cells {@linkplain Cell#inOrder in order}. There is at least one. */
  List<Cell> cells() {
    long most = ByteSize.parse("--total", total);
    List<Cell> cells = new ArrayList<>();
    for (String op : ops) {
      boolean barrier = op.equals(Cell.BARRIER);
      boolean known = barrier || new Cell(op, 1, 0).isOfMessages();
      if (!known && Operation.named(op).isEmpty()) {
        throw new InvalidArgumentException("--ops: no operation " + op);
      }
      for (int count : ranks) {
        ComparisonOptions.requireUpTo(MOST_RANKS, "--ranks", count);
        for (String size : barrier ? List.of("") : bytes) {
          cells.add(new Cell(op, count, barrier ? 0 : sizeOf(size)));
        }
      }
    }
    cells.removeIf(cell -> cell.totalBytes() > most);
    cells.removeIf(cell -> cell.op().equals(Cell.SEND_RECEIVE) && cell.ranks() % 2 != 0);
    if (cells.isEmpty()) {
      throw new InvalidArgumentException("--total: no cell takes so little");
    }
    return Cell.inOrder(cells);
  }

  private static long sizeOf(String text) {
    long size = ByteSize.parse("--bytes", text);
    if (size % Float.BYTES != 0) {
      throw new InvalidArgumentException("--bytes: " + text + " is no multiple of an f32's 4");
    }
    return size;
  }
}
