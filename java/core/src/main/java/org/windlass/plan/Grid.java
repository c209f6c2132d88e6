// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.windlass.internal.Cut;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * A layout of a tensor of a given shape. The layout cuts each tensor dimension into cells. Each
 * position in the mesh has one cell in each dimension. The rank at that position holds the product
 * of these cells, which is a region of the tensor. The ranks that hold the same cells are called
 * their members. Members hold the same region, or with {@code Partial} terms of its values. A
 * member's number is its index in row-major order of the mesh dimensions that do not shard. The
 * position of member 0 is called the base of the cells.
 */
final class Grid {
  /**
   * A cell of one tensor dimension.
   *
   * @param cell the number of the cell
   * @param bounds its global half-open intervals in local order: start, end, start, end, ...
   * @param length the sum of the intervals' lengths
   * @param base the number that this dimension adds to the base of a product of cells
   */
  record Slab(int cell, long[] bounds, long length, int base) {}

  final DeviceMesh mesh;
  final Cut[] cuts;

  /** Number of ranks that hold the same cells. */
  final int members;

  /** Number of ranks that hold the terms of one value; 1 without {@code Partial}. */
  final int groupSize;

  private final List<Map<Integer, Slab>> slabs = new ArrayList<>();
  private final int[] strides;

  /** For each mesh dimension: its size if it does not shard, otherwise 1. */
  private final int[] freeSizes;

  /** For each mesh dimension: its size if it is {@code Partial}, otherwise 1. */
  private final int[] termSizes;

  Grid(Layout layout, long[] shape, long[] paddedShape) {
    mesh = layout.mesh();
    cuts = new Cut[shape.length];
    for (int d = 0; d < shape.length; d++) {
      cuts[d] = layout.cut(d, shape[d], paddedShape[d]);
      slabs.add(new HashMap<>());
    }
    strides = new int[mesh.ndim()];
    freeSizes = new int[mesh.ndim()];
    termSizes = new int[mesh.ndim()];
    int stride = 1;
    int memberCount = 1;
    int terms = 1;
    for (int m = mesh.ndim() - 1; m >= 0; m--) {
      Placement placement = layout.placements().get(m);
      strides[m] = stride;
      termSizes[m] = placement instanceof Placement.Partial ? mesh.size(m) : 1;
      freeSizes[m] = placement instanceof Placement.Replicate ? mesh.size(m) : termSizes[m];
      stride *= mesh.size(m);
      memberCount *= freeSizes[m];
      terms *= termSizes[m];
    }
    members = memberCount;
    groupSize = terms;
  }

  /**
   * Returns the number of the cell that the rank at {@code place} holds in dimension {@code dim}.
   */
  int cell(int dim, int place) {
    Cut cut = cuts[dim];
    int cell = 0;
    for (int l = 0; l < cut.levels(); l++) {
      int m = cut.meshDim(l);
      cell = cell * mesh.size(m) + place / strides[m] % mesh.size(m);
    }
    return cell;
  }

  Slab slab(int dim, int cell) {
    Slab known = slabs.get(dim).get(cell);
    if (known != null) {
      return known;
    }
    Cut cut = cuts[dim];
    long[] bounds = cut.bounds(cell);
    long length = 0;
    for (int i = 0; i < bounds.length; i += 2) {
      length += bounds[i + 1] - bounds[i];
    }
    int base = 0;
    for (int l = 0; l < cut.levels(); l++) {
      base += cut.coordinate(cell, l) * strides[cut.meshDim(l)];
    }
    Slab slab = new Slab(cell, bounds, length, base);
    slabs.get(dim).put(cell, slab);
    return slab;
  }

  int memberOf(int place) {
    int member = 0;
    for (int m = 0; m < strides.length; m++) {
      if (freeSizes[m] > 1) {
        member = member * freeSizes[m] + place / strides[m] % freeSizes[m];
      }
    }
    return member;
  }

  /** Returns the base of the cells that the rank at {@code place} holds. */
  int base(int place) {
    return place - offset(memberOf(place));
  }

  int rank(int base, int member) {
    return mesh.rankAtPlace(base + offset(member));
  }

  /**
   * Returns the distance from a base to its member {@code member}. It is the same for all cells.
   */
  int offset(int member) {
    int offset = 0;
    int rest = member;
    for (int m = strides.length - 1; m >= 0 && rest > 0; m--) {
      if (freeSizes[m] > 1) {
        offset += rest % freeSizes[m] * strides[m];
        rest /= freeSizes[m];
      }
    }
    return offset;
  }

  /** Returns the distances from a base to all its members. */
  int[] offsets() {
    return places(freeSizes);
  }

  /** Returns the bases of all cells. */
  int[] bases() {
    int[] sizes = new int[strides.length];
    for (int m = 0; m < sizes.length; m++) {
      sizes[m] = mesh.size(m) / freeSizes[m];
    }
    return places(sizes);
  }

  /**
   * Returns the position of the rank with the first term of the values of which {@code place} holds
   * a term.
   */
  int firstTerm(int place) {
    int first = place;
    for (int m = 0; m < strides.length; m++) {
      first -= place / strides[m] % termSizes[m] * strides[m];
    }
    return first;
  }

  /** Returns the positions of all terms of a value, in row-major order. */
  int[] terms(int firstTerm) {
    int[] terms = places(termSizes);
    for (int i = 0; i < terms.length; i++) {
      terms[i] += firstTerm;
    }
    return terms;
  }

  /** Returns the positions whose coordinates are less than {@code sizes}, in row-major order. */
  private int[] places(int[] sizes) {
    int[] places = {0};
    for (int m = 0; m < sizes.length; m++) {
      int[] more = new int[places.length * sizes[m]];
      for (int i = 0; i < more.length; i++) {
        more[i] = places[i / sizes[m]] + i % sizes[m] * strides[m];
      }
      places = more;
    }
    return places;
  }
}
