// SPDX-License-Identifier: Apache-2.0
package org.windlass.layout;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Copies;
import org.windlass.internal.Cut;

/**
 * A layout of a tensor on ranks: a mesh, with one placement for each of its dimensions. Sharding
 * applies in the order of mesh dimensions, so two mesh dimensions that shard the same tensor
 * dimension cut it twice.
 *
 * @param mesh the ranks
 * @param placements one for each mesh dimension, in order
 */
public record Layout(DeviceMesh mesh, List<Placement> placements) {
  /**
   * Largest number of pieces into which one strided shard may cut a dimension. The limit bounds
   * memory.
   */
  private static final int MAX_PIECES = 1 << 24;

  /**
   * Creates a layout.
   *
   * @throws InvalidArgumentException if the number of placements is not the number of mesh
   *     dimensions, or {@code Partial} placements have different operations
   */
  public Layout {
    Objects.requireNonNull(mesh, "mesh");
    placements = Copies.list(placements, "placements");
    if (placements.size() != mesh.ndim()) {
      throw new InvalidArgumentException(
          placements.size() + " placements for the " + mesh.ndim() + " dimensions of mesh " + mesh);
    }
    ReduceOp op = null;
    for (Placement placement : placements) {
      if (placement instanceof Placement.Partial partial) {
        if (op != null && op != partial.op()) {
          throw new InvalidArgumentException(
              "partial placements of one layout have one operation, not both " + op + " and "
                  + partial.op());
        }
        op = partial.op();
      }
    }
  }

  /**
   * Parses a layout such as {@code 2x4:P,S0}. A mesh without {@code @} begins at rank 0.
   *
   * @throws InvalidArgumentException if the string is not a valid layout; the message names the
   *     position
   */
  public static Layout parse(String text) {
    return new LayoutParser(text).layout(0);
  }

  /**
   * Parses a layout as {@link #parse} does, except that a mesh without {@code @} begins after the
   * highest rank of {@code source}.
   *
   * @throws InvalidArgumentException if the string is not a valid layout; the message names the
   *     position
   */
  public static Layout parseTarget(String text, Layout source) {
    Objects.requireNonNull(source, "source");
    return new LayoutParser(text).layout(source.mesh().highestRank() + 1);
  }

  /**
   * Returns true if some placement is {@link Placement.Partial}, so that ranks hold terms of a
   * reduction.
   */
  public boolean hasPartial() {
    return partialOp().isPresent();
  }

  /** Returns the operation that reduces {@code Partial} terms; empty if there are none. */
  public Optional<ReduceOp> partialOp() {
    for (Placement placement : placements) {
      if (placement instanceof Placement.Partial partial) {
        return Optional.of(partial.op());
      }
    }
    return Optional.empty();
  }

  /**
   * Checks that the layout fits a tensor.
   *
   * @param tensor name of the tensor for the message; empty if it has none
   * @param shape extents of the tensor
   * @throws InvalidArgumentException if an extent is negative, a placement shards a dimension that
   *     the tensor lacks, or {@link Placement.StridedShard} cannot cut an extent; the message names
   *     the tensor and the placement
   * @throws UnsupportedException if a rank would hold more than 2^24 pieces of a dimension
   */
  public void check(String tensor, long... shape) {
    checkDimensions(tensor, shape);
    for (int d = 0; d < shape.length; d++) {
      checkPieces(tensor, d, shape[d]);
    }
  }

  /** Throws if an extent is negative, or a placement shards a dimension that the tensor lacks. */
  void checkDimensions(String tensor, long[] shape) {
    Objects.requireNonNull(tensor, "tensor");
    Objects.requireNonNull(shape, "shape");
    for (int d = 0; d < shape.length; d++) {
      if (shape[d] < 0) {
        throw new InvalidArgumentException(
            named(tensor) + ": extent " + shape[d] + " of dimension " + d + " is negative");
      }
    }
    for (int m = 0; m < placements.size(); m++) {
      int dim = shardedDimension(placements.get(m));
      if (dim >= shape.length) {
        throw new InvalidArgumentException(
            named(tensor) + " has " + shape.length + " dimensions, but placement "
                + placements.get(m) + " of mesh dimension " + m + " in " + this
                + " shards dimension " + dim);
      }
    }
  }

  /**
   * Throws if a strided shard would give a rank several pieces, and these are of unequal length.
   */
  private void checkPieces(String tensor, int dim, long extent) {
    long length = extent;
    boolean isEven = true;
    for (Cut.Level level : levels(dim)) {
      isEven &= level.isEven(length);
      boolean isMany = Math.min(level.split(), length) > MAX_PIECES;
      if (level.split() > 1 && (isMany || !isEven)) {
        String cut =
            named(tensor) + " has extent " + extent + " in dimension " + dim + ", which placement "
                + placements.get(level.meshDim()) + " of mesh dimension " + level.meshDim()
                + " in " + this + " cuts into ";
        throw isEven
            ? new UnsupportedException(
                cut + level.split() + " pieces; at most " + MAX_PIECES + " are supported")
            : new InvalidArgumentException(
                cut + "unequal pieces; use S" + dim + ", or as split the size of a later mesh"
                    + " dimension that has S" + dim);
      }
      length /= level.parts();
    }
  }

  /**
   * Returns this layout for a tensor of {@code ndim} dimensions. Shards of a dimension that the
   * tensor lacks become {@code Replicate}.
   */
  public Layout defaultedFor(int ndim) {
    if (ndim < 0) {
      throw new InvalidArgumentException("ndim is " + ndim + "; it must be 0 or more");
    }
    List<Placement> defaulted = new ArrayList<>(placements);
    defaulted.replaceAll(p -> shardedDimension(p) >= ndim ? Placement.replicate() : p);
    return defaulted.equals(placements) ? this : new Layout(mesh, defaulted);
  }

  /** Returns the shape of the local tensor of {@code rank}, for a tensor of shape {@code shape}. */
  public long[] localShape(long[] shape, int rank) {
    return localRegion(shape, rank).shape();
  }

  /**
   * Returns the part of a tensor of shape {@code shape} that {@code rank} holds. Stored without
   * gaps, it is the rank's local tensor. {@link Region#boxes} gives the positions of its elements
   * there.
   *
   * @throws InvalidArgumentException if the mesh does not contain {@code rank}, or the layout does
   *     not fit the shape
   */
  public Region localRegion(long[] shape, int rank) {
    return localRegion("", shape, shape, rank);
  }

  /**
   * Returns how the layout cuts dimension {@code dim} of a tensor. For packages of Windlass.
   *
   * @param extent number of real elements, which come before the padding
   * @param padded number of elements with padding, which the layout cuts
   * @hidden
   */
  @SuppressWarnings("exports")
  public Cut cut(int dim, long extent, long padded) {
    return new Cut(extent, padded, levels(dim));
  }

  /**
   * Returns the mesh dimensions that shard {@code dim}, in the order in which they cut. If the
   * product of the sizes of later plain shards equals the {@code split} of a strided shard, these
   * shards cut first, and the strided shard then cuts like a plain one. PyTorch orders {@code
   * _StridedShard} in the same way.
   */
  private List<Cut.Level> levels(int dim) {
    List<Cut.Level> levels = new ArrayList<>();
    for (int m = mesh.ndim() - 1; m >= 0; m--) {
      Placement placement = placements.get(m);
      if (shardedDimension(placement) == dim && mesh.size(m) > 1) {
        int split = placement instanceof Placement.StridedShard strided ? strided.split() : 1;
        long unit = placement instanceof Placement.Shard shard ? shard.unit() : 1;
        int after = 0;
        int product = 1;
        while (product < split && after < levels.size() && levels.get(after).isChunk()) {
          product *= levels.get(after++).parts();
        }
        levels.add(
            product == split ? after : 0,
            new Cut.Level(m, mesh.size(m), product == split ? 1 : split, unit));
      }
    }
    return levels;
  }

  /**
   * Returns the real elements that {@code rank} holds if the layout is applied to {@code
   * paddedShape}.
   */
  Region localRegion(String tensor, long[] shape, long[] paddedShape, int rank) {
    check(tensor, paddedShape);
    int[] coordinates = mesh.coordinates(rank);
    if (coordinates == null) {
      throw new InvalidArgumentException("rank " + rank + " is not in the mesh of " + this);
    }
    long[][] bounds = new long[shape.length][];
    for (int d = 0; d < shape.length; d++) {
      Cut cut = cut(d, shape[d], paddedShape[d]);
      bounds[d] = cut.bounds(cut.cell(coordinates));
    }
    return Region.trusted(bounds);
  }

  /**
   * Returns the layout in the form that {@link #parse} reads, without {@code @} for consecutive
   * ranks from 0.
   */
  @Override
  public String toString() {
    return mesh + ":" + placementsText();
  }

  /**
   * Returns the layout as a string that always has {@code @}, so that {@link #parse} and {@link
   * #parseTarget} read it alike.
   */
  public String qualified() {
    return mesh.qualified() + ":" + placementsText();
  }

  static void requireCountable(String tensor, long[] shape, DType dtype) {
    if (Arrays.stream(shape).anyMatch(extent -> extent == 0)) {
      return;
    }
    long numel = 1;
    for (long extent : shape) {
      if (numel > Long.MAX_VALUE / extent) {
        throw new InvalidArgumentException(
            named(tensor) + ": the elements of shape " + Arrays.toString(shape)
                + " overflow 64 bits");
      }
      numel *= extent;
    }
    if (numel / 8 > Long.MAX_VALUE / dtype.bits()) {
      throw new InvalidArgumentException(
          named(tensor) + ": the bytes of shape " + Arrays.toString(shape) + " in " + dtype
              + " overflow 64 bits");
    }
  }

  private String placementsText() {
    return placements.stream().map(Placement::toString).collect(Collectors.joining(","));
  }

  private static String named(String tensor) {
    return tensor.isEmpty() ? "the tensor" : "tensor '" + tensor + "'";
  }

  private static int shardedDimension(Placement placement) {
    if (placement instanceof Placement.Shard shard) {
      return shard.dim();
    }
    return placement instanceof Placement.StridedShard strided ? strided.dim() : -1;
  }
}
