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
 * applies in the order of mesh dimensions, so two shards of one tensor dimension cut it twice.
 *
 * @param mesh the ranks
 * @param placements one for each mesh dimension
 */
public record Layout(DeviceMesh mesh, List<Placement> placements) {
  /**
   * Checks the components.
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
   * Parses a layout. A mesh without {@code @} begins after the highest rank of {@code source}.
   *
   * @throws InvalidArgumentException if the string is not a valid layout; the message names the
   *     position
   */
  public static Layout parseTarget(String text, Layout source) {
    Objects.requireNonNull(source, "source");
    return new LayoutParser(text).layout(source.mesh().highestRank() + 1);
  }

  /** Returns true if some mesh dimension holds terms of a reduction. */
  public boolean hasPartial() {
    return partialOp().isPresent();
  }

  /** Returns the operation that reduces the ranks' terms; empty if the ranks hold values. */
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
   * @throws InvalidArgumentException if an extent is negative, or a placement shards a dimension
   *     that the tensor lacks; the message names the tensor and the placement
   */
  public void check(String tensor, long... shape) {
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
   * Returns this layout with {@code Replicate} in place of every shard of a dimension from {@code
   * ndim} on.
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
   * Returns the part of a tensor of shape {@code shape} that {@code rank} holds. Packed without
   * gaps, it is the rank's local tensor. {@link Region#boxes} gives the positions in it.
   *
   * @throws InvalidArgumentException if the mesh does not contain {@code rank}, or the layout does
   *     not fit the shape
   */
  public Region localRegion(long[] shape, int rank) {
    check("", shape);
    return localRegion(shape, shape, rank);
  }

  /**
   * Returns how dimension {@code dim} is cut. Its first {@code extent} of {@code padded} elements
   * are real. For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public Cut cut(int dim, long extent, long padded) {
    int ndim = mesh.ndim();
    int[] meshDims = new int[ndim];
    int[] parts = new int[ndim];
    int[] splits = new int[ndim];
    long[] units = new long[ndim];
    int levels = 0;
    for (int m = 0; m < ndim; m++) {
      Placement placement = placements.get(m);
      if (placement instanceof Placement.Shard shard && shard.dim() == dim) {
        splits[levels] = 1;
        units[levels] = shard.unit();
      } else if (placement instanceof Placement.StridedShard strided && strided.dim() == dim) {
        splits[levels] = strided.split();
        units[levels] = 1;
      } else {
        continue;
      }
      meshDims[levels] = m;
      parts[levels++] = mesh.size(m);
    }
    return new Cut(
        extent,
        padded,
        Arrays.copyOf(meshDims, levels),
        Arrays.copyOf(parts, levels),
        Arrays.copyOf(splits, levels),
        Arrays.copyOf(units, levels),
        UnsupportedException::new);
  }

  /** Returns the real elements that {@code rank} holds if the layout cuts {@code paddedShape}. */
  Region localRegion(long[] shape, long[] paddedShape, int rank) {
    int[] coordinates = Objects.requireNonNull(mesh.coordinates(rank));
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
   * Returns the layout as a string that {@link #parse} reads. {@code @} is left out if ranks are
   * consecutive from 0.
   */
  @Override
  public String toString() {
    return mesh + ":" + placementsText();
  }

  /**
   * Returns the layout as a string that always has {@code @}. It means the same for a source as for
   * a target.
   */
  public String qualified() {
    return mesh.qualified() + ":" + placementsText();
  }

  /**
   * Checks that the numbers of elements and of bytes of a tensor fit 64 bits.
   *
   * @throws InvalidArgumentException if either exceeds 64 bits
   */
  static void requireCountable(String tensor, long[] shape, DType dtype) {
    boolean empty = false;
    for (long extent : shape) {
      empty |= extent == 0;
    }
    long numel = 1;
    for (long extent : shape) {
      long factor = empty ? 1 : extent;
      if (numel > Long.MAX_VALUE / factor) {
        throw new InvalidArgumentException(
            named(tensor) + ": the elements of shape " + Arrays.toString(shape)
                + " overflow 64 bits");
      }
      numel *= factor;
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
