// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.layout.Region;

/**
 * One region of one tensor, with the ranks that move it: a source rank, and the ranks that receive
 * the region from it. The {@link #sources} hold the region or, with {@code Partial}, the terms
 * whose reduction is the region. It has the same local coordinates on all of them. The {@link
 * #targets} write it at the same local coordinates.
 */
public final class Route {
  private final int source;

  /** The ranks that hold the terms; empty if the source holds the values. */
  private final List<Integer> terms;

  private final List<Integer> targets;
  private final Overlap[] overlaps;
  private final long numel;
  private final Values values;

  /** The dtype at the source, the dtype on the wire, and the operation that reduces terms. */
  record Values(DType dtype, DType wire, Optional<ReduceOp> op) {}

  Route(
      int source, List<Integer> terms, List<Integer> targets, Overlap[] overlaps, Values values) {
    this.source = source;
    this.terms = terms;
    this.targets = targets;
    this.overlaps = overlaps;
    this.values = values;
    long product = 1;
    for (Overlap overlap : overlaps) {
      product *= overlap.extent;
    }
    this.numel = product;
  }

  static Route whole(int source, List<Integer> targets, long[] shape, Values values) {
    Overlap[] overlaps = new Overlap[shape.length];
    for (int d = 0; d < shape.length; d++) {
      long[] all = {0, shape[d]};
      overlaps[d] = Overlap.of(all, all);
    }
    return new Route(source, List.of(), targets, overlaps, values);
  }

  /**
   * Returns this route for {@code rank} if another rank sends, and {@code rank} only holds a term
   * that is read for the reduction.
   */
  Route reduceOnly(int rank) {
    return new Route(rank, terms, List.of(), overlaps, values);
  }

  /**
   * Returns the rank that sends the region. With {@link Transport#NONE}, no rank sends; then
   * returns the rank whose tensor another rank reads for the reduction.
   */
  public int source() {
    return source;
  }

  /** Returns how the bytes get from the source to the targets. */
  public Transport transport() {
    return switch (targets.size()) {
      case 0 -> Transport.NONE;
      case 1 -> targets.get(0) == source ? Transport.LOCAL : Transport.P2P;
      default -> Transport.BROADCAST;
    };
  }

  /**
   * Returns the ranks whose local tensors give the region's values. With {@code Partial}, these are
   * all ranks of a group, in the order in which their terms are reduced. Otherwise, the source is
   * the only one.
   */
  public List<Integer> sources() {
    return terms.isEmpty() ? List.of(source) : terms;
  }

  /** Returns the ranks that receive the region; empty for {@link Transport#NONE}. */
  public List<Integer> targets() {
    return targets;
  }

  /** Returns the operation that reduces the sources' terms; empty if there is one source. */
  public Optional<ReduceOp> op() {
    return terms.isEmpty() ? Optional.empty() : values.op();
  }

  /** Returns the part of the global tensor that moves. */
  public Region region() {
    long[][] bounds = new long[overlaps.length][];
    for (int d = 0; d < bounds.length; d++) {
      bounds[d] = overlaps[d].bounds;
    }
    return new Region(bounds);
  }

  /** Returns the number of elements of the region. */
  public long numel() {
    return numel;
  }

  /** Returns the number of bytes that each target receives, in the wire dtype. */
  public long bytes() {
    return values.wire().bytesOf(numel);
  }

  /** Returns the number of bytes that one reduction reads from ranks other than the source. */
  public long reduceBytes() {
    return (sources().size() - 1) * termBytes();
  }

  long termBytes() {
    return values.dtype().bytesOf(numel);
  }

  DType wire() {
    return values.wire();
  }

  List<Chunk.Box> boxes() {
    int ndim = overlaps.length;
    if (numel == 0) {
      return List.of();
    }
    List<Chunk.Box> boxes = new ArrayList<>();
    int[] at = new int[ndim];
    int d;
    do {
      long[] length = new long[ndim];
      long[] sourceStart = new long[ndim];
      long[] targetStart = new long[ndim];
      for (d = 0; d < ndim; d++) {
        Overlap overlap = overlaps[d];
        length[d] = overlap.length(at[d]);
        sourceStart[d] = overlap.sourceStart(at[d]);
        targetStart[d] = overlap.targetStart(at[d]);
      }
      boxes.add(new Chunk.Box(length, sourceStart, targetStart));
      for (d = ndim - 1; d >= 0 && ++at[d] == overlaps[d].segments; d--) {
        at[d] = 0;
      }
    } while (d >= 0);
    return boxes;
  }

  @Override
  public boolean equals(Object object) {
    return object instanceof Route other
        && source == other.source
        && values.equals(other.values)
        && terms.equals(other.terms)
        && targets.equals(other.targets)
        && region().equals(other.region());
  }

  @Override
  public int hashCode() {
    return 31 * source + region().hashCode();
  }

  @Override
  public String toString() {
    String from = terms.isEmpty() ? String.valueOf(source) : source + " of " + terms;
    return transport() + " " + from + " -> " + targets + " " + region();
  }
}
