// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/** A random tensor of a few elements, and what each rank holds of it by the definition of placements, index by index. */
public final class ReferenceTensor {
  public final String name;
  public final int[] shape;
  public final DType dtype;
  public final Layout from;
  /** The bits of each element, for each term of a reduction in row-major order of the mesh. */
  private final Map<List<Integer>, long[]> terms = new LinkedHashMap<>();

  public ReferenceTensor(String name, int[] shape, DType dtype, Layout from, Random random) {
    this.name = name;
    this.shape = shape;
    this.dtype = dtype;
    this.from = from;
    for (int place = 0; place < from.mesh().size(); place++) {
      terms.computeIfAbsent(partialCoordinates(from, place), key -> randomBits(random));
    }
  }

  private long[] randomBits(Random random) {
    long[] bits = new long[elements()];
    long mask = dtype.bits() == 64 ? -1 : (1L << dtype.bits()) - 1;
    for (int i = 0; i < bits.length; i++) {
      boolean number = dtype.isFloating() && dtype.canCast(DType.F32) && random.nextInt(4) > 0;
      bits[i] =
          number
              ? ReferenceNumbers.encode(dtype, random.nextGaussian() * 4)
              : random.nextLong() & mask;
    }
    return bits;
  }

  public int elements() {
    return Arrays.stream(shape).reduce(1, (a, b) -> a * b);
  }

  private static int[] coordinates(Layout layout, int place) {
    int[] coordinates = new int[layout.mesh().ndim()];
    for (int m = coordinates.length - 1; m >= 0; m--) {
      coordinates[m] = place % layout.mesh().size(m);
      place /= layout.mesh().size(m);
    }
    return coordinates;
  }

  private static List<Integer> partialCoordinates(Layout layout, int place) {
    int[] coordinates = coordinates(layout, place);
    List<Integer> partial = new ArrayList<>();
    for (int m = 0; m < coordinates.length; m++) {
      if (layout.placements().get(m) instanceof Placement.Partial) {
        partial.add(coordinates[m]);
      }
    }
    return partial;
  }

  /**
   * Raises each extent until layouts cut it, since some strided shards need equal pieces. It becomes
   * 0 if that takes long.
   */
  public static void raise(int[] shape, Layout... layouts) {
    for (int d = 0; d < shape.length; d++) {
      int[] one = new int[shape.length];
      int most = shape[d] + 48;
      do {
        one[d] = shape[d] > most ? 0 : shape[d]++;
      } while (!fits(one, layouts));
      shape[d] = one[d];
    }
  }

  /** Whether layouts cut a shape, which strided shards of some forms cut only into equal pieces. */
  public static boolean fits(int[] shape, Layout... layouts) {
    try {
      for (Layout layout : layouts) {
        layout.defaultedFor(shape.length).check("", Arrays.stream(shape).asLongStream().toArray());
      }
      return true;
    } catch (InvalidArgumentException unequalPieces) {
      return false;
    }
  }

  /** The global indices along each dimension that a place of the mesh holds, in local order. */
  public static List<List<Integer>> indices(Layout layout, int place, int[] shape) {
    int[] coordinates = coordinates(layout, place);
    List<List<Integer>> dims = new ArrayList<>();
    for (int d = 0; d < shape.length; d++) {
      List<Long> held = CutReference.held(layout, coordinates, d, shape[d]);
      dims.add(held.stream().map(Long::intValue).toList());
    }
    return dims;
  }

  /** The linear index of each element of the product of index lists, row-major. */
  public static int[] linear(List<List<Integer>> dims, int[] shape) {
    int[] linear = {0};
    for (int d = 0; d < shape.length; d++) {
      int[] next = new int[linear.length * dims.get(d).size()];
      int at = 0;
      for (int before : linear) {
        for (int index : dims.get(d)) {
          next[at++] = before * shape[d] + index;
        }
      }
      linear = next;
    }
    return linear;
  }

  public static int[] localShape(List<List<Integer>> dims) {
    return dims.stream().mapToInt(List::size).toArray();
  }

  /** What a place of the source mesh holds. */
  public TestFile.Tensor source(int place) {
    List<List<Integer>> dims = indices(from, place, shape);
    long[] bits = terms.get(partialCoordinates(from, place));
    return new TestFile.Tensor(
      name, dtype, localShape(dims), pick(bits, linear(dims, shape)));
  }

  /** The whole tensor; the source is no reduction. */
  public TestFile.Tensor whole() {
    return new TestFile.Tensor(name, dtype, shape, terms.values().iterator().next());
  }

  private static long[] pick(long[] bits, int[] indices) {
    return Arrays.stream(indices).mapToLong(i -> bits[i]).toArray();
  }

  /** What the result holds of the tensor at these indices. */
  public TestFile.Tensor expected(List<List<Integer>> dims, DType wire, DType target) {
    int[] linear = linear(dims, shape);
    long[] result = new long[linear.length];
    ReduceOp op = from.partialOp().orElse(ReduceOp.SUM);
    for (int i = 0; i < linear.length; i++) {
      int element = linear[i];
      long[] each = terms.values().stream().mapToLong(bits -> bits[element]).toArray();
      long reduced = ReferenceNumbers.reduce(dtype, op, each);
      result[i] =
          ReferenceNumbers.cast(wire, target, ReferenceNumbers.cast(dtype, wire, reduced));
    }
    return new TestFile.Tensor(name, target, localShape(dims), result);
  }

  /** Whether a NaN of the result may have any payload: sums and products of NaNs are not canonical. */
  public boolean anyNan(DType wire, DType target) {
    return terms.size() > 1
        && wire == dtype
        && target == dtype
        && dtype.isFloating()
        && from.partialOp().filter(op -> op != ReduceOp.MAX && op != ReduceOp.MIN).isPresent();
  }
}
