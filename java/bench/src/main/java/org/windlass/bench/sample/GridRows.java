// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.util.ArrayList;
import java.util.List;
import org.windlass.error.InvalidArgumentException;
import org.windlass.gpu.CudaGrids;

/**
 * The rows of a table of grids, as its text has them: for each, what GPU and operation it is of,
 * how many ranks, how many of those on a GPU, from and up to how many bytes, and the cores of a
 * rank.
 */
public record GridRows(List<String> rows) {
  private static final String TITLE = "windlass-cuda-grids 1";
  private static final String END = "end";

  /** Immutable. */
  public GridRows {
    rows = List.copyOf(rows);
  }

  /** Of a table that nobody has written yet. */
  public static GridRows none() {
    return new GridRows(List.of());
  }

  /**
   * Those of a text, by which this process goes from then on; comments are left out.
   *
   * @throws InvalidArgumentException naming the line that is wrong
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

  /** With those of {@code others} in place of any that are of the same GPU, operation and ranks. */
  GridRows with(String key, List<String> others) {
    List<String> all = new ArrayList<>(rows);
    all.removeIf(row -> row.startsWith(key + " "));
    all.addAll(others);
    return new GridRows(all);
  }

  /** The whole table. */
  public String text() {
    StringBuilder text = new StringBuilder(TITLE + "\n# GPU, SMs, operation, ranks, of those on a GPU, from and to bytes, cores\n");
    rows.forEach(row -> text.append(row).append('\n'));
    return text.append(END).append(' ').append(rows.size()).append('\n').toString();
  }
}
