// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.util.ArrayList;
import java.util.List;
import org.windlass.error.InvalidArgumentException;
import org.windlass.gpu.CudaGrids;

/**
 * The rows of a table of grids as text. A row names the GPU and operation, the number of ranks, and
 * the number of ranks on each GPU. It gives a range of bytes and the cores of a rank.
 */
public record GridRows(List<String> rows) {
  private static final String TITLE = "windlass-cuda-grids 1";
  private static final String END = "end";

  /** Copies the rows into an immutable list. */
  public GridRows {
    rows = List.copyOf(rows);
  }

  /** Returns an empty table. */
  public static GridRows none() {
    return new GridRows(List.of());
  }

  /**
   * Parses a table and makes this process use it from now on. Comments are left out.
   *
   * @throws InvalidArgumentException if a line is wrong; the message names it
   */
  public static GridRows of(String text) {
    CudaGrids.use(text);
    return new GridRows(
        text.lines()
            .skip(1)
            .map(line -> line.strip().replaceAll("\\s+", " "))
            .filter(line -> !line.isEmpty() && !line.startsWith("#"))
            .takeWhile(line -> !line.startsWith(END + " "))
            .toList());
  }

  /**
   * Returns a table in which {@code others} replace all rows of the GPU, operation and ranks in
   * {@code key}.
   */
  GridRows with(String key, List<String> others) {
    List<String> all = new ArrayList<>(rows);
    all.removeIf(row -> row.startsWith(key + " "));
    all.addAll(others);
    return new GridRows(all);
  }

  /** Returns the whole table as text. */
  public String text() {
    StringBuilder text = new StringBuilder(TITLE + "\n# GPU, SMs, operation, ranks, of those on a GPU, from and to bytes, cores\n");
    rows.forEach(row -> text.append(row).append('\n'));
    return text.append(END).append(' ').append(rows.size()).append('\n').toString();
  }
}
