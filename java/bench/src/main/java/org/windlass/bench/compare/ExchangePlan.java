// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.windlass.error.ResourceException;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;
import org.windlass.plan.Chunk;
import org.windlass.plan.Plan;

/**
 * Writes Windlass's plan of a redistribution as numbers, for the program that runs it with MPI:
 *
 * <pre>
 * ranks, columns of the matrix, its bytes, 1 if the target is bf16, else 0
 * for each rank, as source then as target: rows, columns, number of boxes,
 *   and for each box: its first global row and column, its rows and columns, its first local ones
 * number of moves, and for each: source rank, target rank, rows, columns,
 *   first row and column in the source's matrix, in the target's
 * </pre>
 */
final class ExchangePlan {
  private ExchangePlan() {}

  static Path write(Path folder, Redistribution what, long bytes) {
    Path file = folder.resolve(what.toString().replace(':', '_') + "-" + bytes + ".plan");
    try {
      Files.createDirectories(folder);
      Files.writeString(file, text(what, bytes));
    } catch (IOException e) {
      throw new ResourceException("cannot write " + file + ": " + e.getMessage(), e);
    }
    return file;
  }

  static String text(Redistribution what, long bytes) {
    long[] shape = Redistribution.shape(bytes);
    int ranks = what.ranks();
    List<String> lines = new ArrayList<>();
    boolean cast = what.targetDtype() != Redistribution.DTYPE;
    lines.add(numbers(ranks, shape[1], bytes, cast ? 1 : 0));
    for (int rank = 0; rank < ranks; rank++) {
      addLocal(lines, what.source(), shape, rank);
      addLocal(lines, what.target(), shape, rank);
    }
    List<String> moves = moves(what, shape);
    lines.add(numbers(moves.size()));
    lines.addAll(moves);
    return String.join("\n", lines) + "\n";
  }

  private static void addLocal(List<String> lines, Layout layout, long[] shape, int rank) {
    if (!layout.mesh().contains(rank)) {
      lines.add(numbers(0, 0, 0));
      return;
    }
    Region region = layout.localRegion(shape, rank);
    List<Region.Box> boxes = region.boxes();
    lines.add(numbers(region.extent(0), region.extent(1), boxes.size()));
    for (Region.Box box : boxes) {
      lines.add(numbers(box.start()) + " " + numbers(box.length()) + " " + numbers(box.packedStart()));
    }
  }

  private static List<String> moves(Redistribution what, long[] shape) {
    Plan plan = Plan.of(what.source(), what.target(), shape, Redistribution.DTYPE);
    List<String> moves = new ArrayList<>();
    for (int rank : what.target().mesh().ranks()) {
      for (Chunk chunk : plan.chunksFor(rank)) {
        if (!chunk.isTarget()) {
          continue;
        }
        for (Chunk.Box box : chunk.boxes()) {
          moves.add(
              numbers(chunk.route().source(), rank) + " " + numbers(box.length()) + " "
                  + numbers(box.sourceStart()) + " " + numbers(box.targetStart()));
        }
      }
    }
    return moves;
  }

  private static String numbers(long... numbers) {
    StringBuilder text = new StringBuilder();
    for (long number : numbers) {
      text.append(text.length() == 0 ? "" : " ").append(number);
    }
    return text.toString();
  }
}
