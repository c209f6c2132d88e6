// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.time.Duration;
import java.util.List;
import org.windlass.DType;
import org.windlass.bench.workload.RedistributeWorkload;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.TransferMode;

/**
 * A redistribution of an f32 matrix from one mesh to another. Its name as a cell's operation has no
 * commas or spaces: mesh pair, source placements and target dtype, such as {@code
 * 1.1.4.2-4.2.1.1:R.S0.R.S1:bf16}. The target's placements are {@code R,R,SS0/k,S0}, with k the
 * size of its last mesh dimension. The target's ranks are numbered after the source's ranks.
 */
record Redistribution(String meshes, String placements, DType targetDtype) {
  static final List<String> MESHES =
      List.of(
          "1.1.4.2-4.2.1.1",
          "8.1.1.1-1.2.2.2",
          "1.2.4.1-8.1.1.1",
          "2.2.2.1-1.1.4.2",
          "2.4.1.1-1.2.4.1",
          "4.1.1.2-2.1.1.4",
          "4.1.2.1-1.1.1.8",
          "4.2.1.1-1.1.2.4");
  static final List<String> PLACEMENTS = List.of("R.S0.R.S1", "R.R.R.S1", "R.P.R.S1");
  static final DType DTYPE = DType.F32;

  static boolean isNamed(String op) {
    return op.indexOf(':') >= 0;
  }

  static Redistribution parse(String name) {
    String[] parts = name.split(":");
    if (parts.length != 3 || parts[0].split("-").length != 2) {
      throw new InvalidArgumentException(
          "'" + name + "' is no redistribution such as 1.1.4.2-4.2.1.1:R.S0.R.S1:bf16");
    }
    Redistribution parsed = new Redistribution(parts[0], parts[1], DType.parse(parts[2]));
    parsed.target(); // throws if the strings are not layouts
    return parsed;
  }

  Layout source() {
    return Layout.parse(
        meshes.split("-")[0].replace('.', 'x') + ":" + placements.replace('.', ','));
  }

  Layout target() {
    String mesh = meshes.split("-")[1];
    String split = mesh.substring(mesh.lastIndexOf('.') + 1);
    return Layout.parseTarget(mesh.replace('.', 'x') + ":R,R,SS0/" + split + ",S0", source());
  }

  int ranks() {
    return target().mesh().highestRank() + 1;
  }

  Cell cell(long side) {
    return new Cell(toString(), ranks(), DTYPE.bytesOf(side * side));
  }

  /** Returns the shape of a square f32 matrix of about {@code bytes} bytes. */
  static long[] shape(long bytes) {
    long side = Math.round(Math.sqrt((double) bytes / DTYPE.bytes()));
    return new long[] {side, side};
  }

  /** Returns the bytes written to all targets for a source matrix of {@code bytes} bytes. */
  long targetBytes(long bytes) {
    long[] shape = shape(bytes);
    return target().mesh().ranks().stream()
        .mapToLong(rank -> targetDtype.bytesOf(target().localRegion(shape, rank).numel()))
        .sum();
  }

  RedistributeWorkload workload(long bytes, TransferMode mode) {
    return new RedistributeWorkload(
        TensorSpec.of("bench", DTYPE, source(), shape(bytes)),
        TensorSpec.of("bench", targetDtype, target(), shape(bytes)),
        targetDtype,
        mode,
        false,
        Duration.ofMinutes(1));
  }

  @Override
  public String toString() {
    return meshes + ":" + placements + ":" + targetDtype;
  }
}
