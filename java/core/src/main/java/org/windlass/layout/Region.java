// SPDX-License-Identifier: Apache-2.0
package org.windlass.layout;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Shapes;

/**
 * A region of a tensor: for each dimension a list of half-open index intervals, in ascending order.
 * An element is in the region if each of its indices is in an interval. Intervals neither touch nor
 * overlap. A region without dimensions is a scalar.
 */
public final class Region {
  /**
   * The indices {@code start} (included) to {@code end} (excluded) of one dimension.
   *
   * @param start first index
   * @param end one past the last index
   */
  public record Interval(long start, long end) {
    public Interval {
      if (start < 0 || end < start) {
        throw new InvalidArgumentException(
            "an interval is a start from 0 and an end at or after it, not " + start + " and "
                + end);
      }
    }

    /** Returns the number of elements. */
    public long length() {
      return end - start;
    }

    @Override
    public String toString() {
      return "[" + start + "," + end + ")";
    }
  }

  /**
   * A box of a region.
   *
   * @param start indices of its first element in the whole tensor
   * @param length its extents
   * @param packedStart indices of its first element in the region if it is stored without gaps. A
   *     rank's local tensor stores the rank's region in that form
   */
  public record Box(long[] start, long[] length, long[] packedStart) {
    public Box {
      Objects.requireNonNull(start, "start");
      Objects.requireNonNull(length, "length");
      Objects.requireNonNull(packedStart, "packedStart");
    }
  }

  /** For each dimension, the bounds of its intervals: start, end (excluded), start, end, ... */
  private final long[][] bounds;

  /**
   * Creates a region.
   *
   * @param bounds for each dimension the bounds of its intervals, ascending: start, end (excluded),
   *     start, end, ... An interval may be empty only if it is the dimension's only one.
   * @throws InvalidArgumentException if the bounds of a dimension are not in order
   */
  public Region(long[]... bounds) {
    this(copied(bounds), true);
  }

  private Region(long[][] bounds, boolean check) {
    this.bounds = bounds;
    if (check) {
      for (int d = 0; d < bounds.length; d++) {
        requireOrdered(d, bounds[d]);
      }
    }
  }

  /**
   * Returns a region with these bounds, which the caller knows to be valid. The arrays are shared,
   * not copied.
   */
  static Region trusted(long[][] bounds) {
    return new Region(bounds, false);
  }

  /** Returns the number of dimensions of the tensor. */
  public int ndim() {
    return bounds.length;
  }

  /**
   * Returns the intervals of dimension {@code dim}, ascending.
   *
   * @throws InvalidArgumentException if the region has no such dimension
   */
  public List<Interval> intervals(int dim) {
    long[] of = bounds("intervals", dim);
    List<Interval> intervals = new ArrayList<>(of.length / 2);
    for (int i = 0; i < of.length; i += 2) {
      intervals.add(new Interval(of[i], of[i + 1]));
    }
    return intervals;
  }

  /**
   * Returns the number of indices along dimension {@code dim}, added up over its intervals.
   *
   * @throws InvalidArgumentException if the region has no such dimension
   */
  public long extent(int dim) {
    long[] of = bounds("extent", dim);
    long extent = 0;
    for (int i = 0; i < of.length; i += 2) {
      extent += of[i + 1] - of[i];
    }
    return extent;
  }

  private long[] bounds(String call, int dim) {
    if (dim < 0 || dim >= bounds.length) {
      throw new InvalidArgumentException(Shapes.badDimension(call, "dim", dim, bounds.length));
    }
    return bounds[dim];
  }

  /**
   * Returns the {@link #extent} of each dimension: the shape of the region if it is stored without
   * gaps.
   */
  public long[] shape() {
    long[] shape = new long[bounds.length];
    for (int d = 0; d < shape.length; d++) {
      shape[d] = extent(d);
    }
    return shape;
  }

  /** Returns the number of elements in the region. */
  public long numel() {
    long numel = 1;
    for (int d = 0; d < bounds.length; d++) {
      numel *= extent(d);
    }
    return numel;
  }

  /** Returns true if the region has no elements. */
  public boolean isEmpty() {
    return IntStream.range(0, bounds.length).anyMatch(d -> extent(d) == 0);
  }

  /** Returns the region's boxes in row-major order. An empty region has none. */
  public List<Box> boxes() {
    if (isEmpty()) {
      return List.of();
    }
    int ndim = bounds.length;
    long[][] packed = new long[ndim][];
    for (int d = 0; d < ndim; d++) {
      packed[d] = packedStarts(bounds[d]);
    }
    List<Box> boxes = new ArrayList<>();
    int[] at = new int[ndim];
    int d;
    do {
      long[] start = new long[ndim];
      long[] length = new long[ndim];
      long[] packedStart = new long[ndim];
      for (d = 0; d < ndim; d++) {
        start[d] = bounds[d][2 * at[d]];
        length[d] = bounds[d][2 * at[d] + 1] - start[d];
        packedStart[d] = packed[d][at[d]];
      }
      boxes.add(new Box(start, length, packedStart));
      for (d = ndim - 1; d >= 0 && ++at[d] == packed[d].length; d--) {
        at[d] = 0;
      }
    } while (d >= 0);
    return boxes;
  }

  @Override
  public boolean equals(Object object) {
    return object instanceof Region other && Arrays.deepEquals(bounds, other.bounds);
  }

  @Override
  public int hashCode() {
    return Arrays.deepHashCode(bounds);
  }

  /** Returns text such as {@code [0,2)+[4,6) x [0,8)}, or {@code scalar} without dimensions. */
  @Override
  public String toString() {
    return bounds.length == 0
        ? "scalar"
        : IntStream.range(0, bounds.length)
            .mapToObj(
                d -> intervals(d).stream().map(Interval::toString).collect(Collectors.joining("+")))
            .collect(Collectors.joining(" x "));
  }

  private static long[] packedStarts(long[] dimension) {
    long[] starts = new long[dimension.length / 2];
    long next = 0;
    for (int i = 0; i < starts.length; i++) {
      starts[i] = next;
      next += dimension[2 * i + 1] - dimension[2 * i];
    }
    return starts;
  }

  private static long[][] copied(long[][] bounds) {
    long[][] copy = new long[Objects.requireNonNull(bounds, "bounds").length][];
    for (int d = 0; d < copy.length; d++) {
      copy[d] = Objects.requireNonNull(bounds[d], "bounds[" + d + "]").clone();
    }
    return copy;
  }

  private static void requireOrdered(int d, long[] dimension) {
    boolean ordered = dimension.length >= 2 && dimension.length % 2 == 0 && dimension[0] >= 0;
    for (int i = 1; ordered && i < dimension.length; i++) {
      boolean loneEmpty = dimension.length == 2 && dimension[0] == dimension[1];
      ordered = dimension[i] > dimension[i - 1] || loneEmpty;
    }
    if (!ordered) {
      throw new InvalidArgumentException(
          "dimension " + d + " of a region is start, end, ... ascending from 0, not "
              + Arrays.toString(dimension));
    }
  }
}
