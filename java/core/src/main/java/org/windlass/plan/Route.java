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
 * it from there. The {@link #sources} hold the region, or with {@code Partial} the terms that are
 * reduced to it. It is at the same local coordinates on all of them. The {@link #targets} write it
 * at the same local coordinates.
 */
public final class Route {
  private final int source;
  private final Transport transport;
  private final List<Integer> sources;
  private final List<Integer> targets;
  private final Overlap[] overlaps;
  private final long numel;
  private final Terms terms;

  record Terms(DType dtype, DType wire, Optional<ReduceOp> op) {}

  Route(
      int source,
      Transport transport,
      List<Integer> sources,
      List<Integer> targets,
      Overlap[] overlaps,
      Terms terms) {
    this.source = source;
    this.transport = transport;
    this.sources = sources;
    this.targets = targets;
    this.overlaps = overlaps;
    this.terms = terms;
    long product = 1;
    for (Overlap overlap : overlaps) {
      product *= overlap.extent;
    }
    this.numel = product;
  }

  static Route whole(int source, List<Integer> targets, long[] shape, Terms terms) {
    Overlap[] overlaps = new Overlap[shape.length];
    for (int d = 0; d < shape.length; d++) {
      long[] all = {0, shape[d]};
      overlaps[d] = Overlap.of(all, all);
    }
    Transport transport = targets.size() > 1 ? Transport.BROADCAST : Transport.P2P;
    return new Route(source, transport, List.of(source), targets, overlaps, terms);
  }

  /**
   * Returns this route as {@code rank} takes part in it: another rank sends, and {@code rank} only
   * holds a term that is read for the reduction.
   */
  Route reduceOnly(int rank) {
    return new Route(rank, Transport.NONE, sources, List.of(), overlaps, terms);
  }

  /**
   * Returns the rank that sends the region. With {@link Transport#NONE}, no rank sends. It is then
   * the rank whose tensor another rank reads for the reduction.
   */
  public int source() {
    return source;
  }

  /** Returns how the bytes get from the source to the targets. */
  public Transport transport() {
    return transport;
  }

  /**
   * Returns the ranks whose local tensors give the region's values. With {@code Partial} they are
   * all ranks of a group, in the order in which their terms are reduced. Otherwise it is only the
   * source.
   */
  public List<Integer> sources() {
    return sources;
  }

  /** Returns the ranks that receive the region; empty for {@link Transport#NONE}. */
  public List<Integer> targets() {
    return targets;
  }

  /** Returns the operation that reduces the sources' terms; empty if there is one source. */
  public Optional<ReduceOp> op() {
    return sources.size() > 1 ? terms.op() : Optional.empty();
  }

  /** Returns the part of the global tensor that moves. */
  public Region region() {
    long[][] bounds = new long[overlaps.length][];
    for (int d = 0; d < bounds.length; d++) {
      long[] overlap = overlaps[d].bounds;
      bounds[d] = overlap.length == 0 ? new long[] {0, 0} : overlap;
    }
    return new Region(bounds);
  }

  /** Returns the number of elements of the region. */
  public long numel() {
    return numel;
  }

  /** Returns the number of bytes that each target receives, in the wire dtype. */
  public long bytes() {
    return terms.wire().bytesOf(numel);
  }

  /** Returns the bytes that one reduction reads from ranks other than the source. */
  public long reduceBytes() {
    return (sources.size() - 1) * termBytes();
  }

  long termBytes() {
    return terms.dtype().bytesOf(numel);
  }

  DType wire() {
    return terms.wire();
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
        && transport == other.transport
        && terms.equals(other.terms)
        && sources.equals(other.sources)
        && targets.equals(other.targets)
        && region().equals(other.region());
  }

  @Override
  public int hashCode() {
    return 31 * source + region().hashCode();
  }

  @Override
  public String toString() {
    String from = sources.size() > 1 ? source + " of " + sources : String.valueOf(source);
    return transport + " " + from + " -> " + targets + " " + region();
  }
}
