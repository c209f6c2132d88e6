// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.util.ArrayList;
import java.util.List;
import org.windlass.gpu.CudaGrids;

/**
 * The rows of the library's table of CUDA grids, as text. A row gives the number of cores (blocks
 * of threads) that a rank uses. It names the GPU, the operation, the number of ranks, the number of
 * ranks on each GPU, and a range of bytes.
 */
public record GridRows(List<String> rows) {
  private static final String TITLE = "windlass-cuda-grids 1";
  private static final String END = "end";

  public GridRows {
    rows = List.copyOf(rows);
  }

  public static GridRows none() {
    return new GridRows(List.of());
  }

  /** Parses a table that has no comments. From then on, this process uses the table. */
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

  /** Returns a table in which {@code others} replace all rows that begin with {@code key}. */
  GridRows with(String key, List<String> others) {
    List<String> all = new ArrayList<>(rows);
    all.removeIf(row -> row.startsWith(key + " "));
    all.addAll(others);
    return new GridRows(all);
  }

  public String text() {
    StringBuilder text = new StringBuilder(TITLE + "\n# GPU, SMs, operation, ranks, of those on a GPU, from and to bytes, cores\n");
    rows.forEach(row -> text.append(row).append('\n'));
    return text.append(END).append(' ').append(rows.size()).append('\n').toString();
  }
}
