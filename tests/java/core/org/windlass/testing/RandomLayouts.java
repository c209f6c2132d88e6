// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Hosts;

/** Random layouts and shapes; the same seed gives the same ones. */
public final class RandomLayouts {
  private static final List<ReduceOp> OPS =
      Stream.of(ReduceOp.values()).filter(DType.F32::canReduce).toList();

  private final Random random;
  private final int maxRanks;

  public RandomLayouts(long seed, int maxRanks) {
    this.random = new Random(seed);
    this.maxRanks = maxRanks;
  }

  /**
   * Up to {@code maxDims} dimensions, uneven, sometimes empty, of at most {@code maxNumel}
   * elements.
   */
  public long[] shape(int maxDims, long maxNumel) {
    long[] shape = new long[random.nextInt(maxDims + 1)];
    long room = maxNumel;
    for (int d = 0; d < shape.length; d++) {
      int limit = shape.length == 1 ? 64 : shape.length > 5 ? 3 : 17;
      shape[d] = random.nextInt(24) == 0 ? 0 : 1 + random.nextInt((int) Math.min(limit, room));
      room = Math.max(1, room / Math.max(1, shape[d]));
    }
    return shape;
  }

  /** {@code shape}, often as it is, else with up to five elements more along some dimensions. */
  public long[] padded(long[] shape) {
    long[] padded = shape.clone();
    for (int i = random.nextInt(3); i > 0 && shape.length > 0; i--) {
      int d = random.nextInt(shape.length);
      padded[d] = shape[d] + random.nextInt(6);
    }
    return padded;
  }

  /** Often one, else several of some ranks each, or of any that {@code layouts} have. */
  public Hosts hosts(Layout... layouts) {
    int kind = random.nextInt(4);
    if (kind < 2) {
      return kind == 0 ? Hosts.one() : Hosts.ofEach(1 + random.nextInt(12));
    }
    int ranks = 1;
    for (Layout layout : layouts) {
      ranks = Math.max(ranks, layout.mesh().highestRank() + 1);
    }
    int count = 1 + random.nextInt(kind == 2 ? 4 : 12);
    return Hosts.of(random.ints(ranks, 0, count).toArray());
  }

  /** A tensor of a layout that fits it, often padded; Partial only for sources. */
  public TensorSpec spec(String name, DType dtype, boolean isSource, long... shape) {
    long[] padded = padded(shape);
    return TensorSpec.of(name, dtype, layout(isSource, padded), shape).padded(padded);
  }

  /** A layout that fits tensors of as many dimensions; Partial only for sources. */
  public Layout layout(boolean isSource, long[]... shapes) {
    Layout layout = layout(shapes[0].length, isSource);
    while (!fits(layout, shapes)) {
      List<Placement> placements = new ArrayList<>(layout.placements());
      int m = 0;
      while (!(placements.get(m) instanceof Placement.StridedShard)) {
        m++;
      }
      placements.set(m, Placement.shard(((Placement.StridedShard) placements.get(m)).dim()));
      layout = new Layout(layout.mesh(), placements);
    }
    return layout;
  }

  private static boolean fits(Layout layout, long[]... shapes) {
    try {
      for (long[] shape : shapes) {
        layout.check("", shape);
      }
      return true;
    } catch (InvalidArgumentException unevenlyStrided) {
      return false;
    }
  }

  /** A layout of consecutive or listed ranks; Partial only for sources. */
  public Layout layout(int ndim, boolean isSource) {
    if (ndim > 0 && random.nextInt(6) == 0) {
      return twiceSharded(random.nextInt(ndim));
    }
    List<Integer> sizes = new ArrayList<>();
    int room = 1 + random.nextInt(maxRanks);
    int meshDims = 1 + random.nextInt(random.nextInt(8) == 0 ? 9 : 4);
    for (int m = 0; m < meshDims; m++) {
      int size = 1 + random.nextInt(Math.min(room, maxRanks <= 16 ? 5 : 16));
      sizes.add(size);
      room /= size;
    }
    ReduceOp op = OPS.get(random.nextInt(OPS.size()));
    boolean partial = isSource && random.nextInt(3) == 0;
    Placement[] placements = new Placement[meshDims];
    for (int m = 0; m < meshDims; m++) {
      placements[m] = placement(ndim, partial ? op : null);
    }
    for (int m = 0; m < meshDims; m++) {
      if (placements[m] instanceof Placement.StridedShard strided && random.nextBoolean()) {
        placements[m] = Placement.stridedShard(strided.dim(), product(sizes, placements, m));
      }
    }
    return mesh(sizes).layout(placements);
  }

  /** A dimension of which data parallel ranks cut what tensor parallel ones hold. */
  private Layout twiceSharded(int dim) {
    int tensor = 1 + random.nextInt(Math.min(5, maxRanks));
    int data = 1 + random.nextInt(Math.min(5, maxRanks / tensor));
    return mesh(List.of(data, tensor))
        .layout(Placement.stridedShard(dim, tensor), Placement.shard(dim));
  }

  /** The product of the sizes of some later mesh dimensions that shard the same one. */
  private int product(List<Integer> sizes, Placement[] placements, int m) {
    int dim = ((Placement.StridedShard) placements[m]).dim();
    int product = 1;
    for (int later = m + 1; later < placements.length; later++) {
      if (placements[later].equals(Placement.shard(dim)) && random.nextInt(4) > 0) {
        product *= sizes.get(later);
      }
    }
    return product;
  }

  private Placement placement(int ndim, ReduceOp op) {
    int kind = random.nextInt(10);
    if (op != null && kind < 4) {
      return Placement.partial(op);
    }
    if (ndim == 0 || kind < 3) {
      return Placement.replicate();
    }
    int dim = random.nextInt(random.nextBoolean() ? ndim : Math.min(ndim, 3));
    return switch (kind) {
      case 3, 4 -> Placement.stridedShard(dim, 1 + random.nextInt(5));
      case 5 -> Placement.shard(dim, 1 + random.nextInt(4));
      default -> Placement.shard(dim);
    };
  }

  private DeviceMesh mesh(List<Integer> sizes) {
    DeviceMesh mesh = DeviceMesh.of(sizes.stream().mapToInt(Integer::intValue).toArray());
    if (random.nextInt(3) == 0) {
      List<Integer> pool = new ArrayList<>();
      for (int rank = 0; rank < mesh.size() + random.nextInt(maxRanks); rank++) {
        pool.add(rank);
      }
      Collections.shuffle(pool, random);
      return mesh.ranks(pool.stream().limit(mesh.size()).mapToInt(Integer::intValue).toArray());
    }
    return mesh.at(random.nextInt(maxRanks + 4));
  }
}
