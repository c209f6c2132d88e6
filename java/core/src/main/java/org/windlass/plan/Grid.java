// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.List;
import org.windlass.internal.Cut;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * A layout of a tensor of a given shape. The layout cuts each tensor dimension into cells. Each
 * position in the mesh has one cell in each dimension, and the rank holds the product of these
 * cells. The ranks that hold the same cells are the members of these cells. They hold the same
 * region, or terms of it. A member's number is its index in row-major order of the mesh dimensions
 * that do not shard.
 */
final class Grid {
  final DeviceMesh mesh;
  final Cut[] cuts;

  /** Number of ranks that hold the same cells. */
  final int members;

  /** Number of ranks that hold the terms of one value; 1 without {@code Partial}. */
  final int groupSize;

  private final int[] meshStrides;
  private final int[] freeDims;
  private final boolean[] partial;

  Grid(Layout layout, long[] shape, long[] paddedShape) {
    mesh = layout.mesh();
    cuts = new Cut[shape.length];
    for (int d = 0; d < shape.length; d++) {
      cuts[d] = layout.cut(d, shape[d], paddedShape[d]);
    }
    meshStrides = new int[mesh.ndim()];
    int stride = 1;
    for (int m = mesh.ndim() - 1; m >= 0; m--) {
      meshStrides[m] = stride;
      stride *= mesh.size(m);
    }
    List<Integer> free = new ArrayList<>();
    for (int m = 0; m < mesh.ndim(); m++) {
      Placement placement = layout.placements().get(m);
      if (placement instanceof Placement.Replicate || placement instanceof Placement.Partial) {
        free.add(m);
      }
    }
    freeDims = free.stream().mapToInt(Integer::intValue).toArray();
    partial = new boolean[freeDims.length];
    int memberCount = 1;
    int terms = 1;
    for (int f = 0; f < freeDims.length; f++) {
      int size = mesh.size(freeDims[f]);
      partial[f] = layout.placements().get(freeDims[f]) instanceof Placement.Partial;
      memberCount *= size;
      terms *= partial[f] ? size : 1;
    }
    members = memberCount;
    groupSize = terms;
  }

  int[] cellsOf(int place) {
    int[] cells = new int[cuts.length];
    for (int d = 0; d < cuts.length; d++) {
      Cut cut = cuts[d];
      int cell = 0;
      for (int l = 0; l < cut.levels(); l++) {
        int m = cut.meshDim(l);
        cell = cell * mesh.size(m) + place / meshStrides[m] % mesh.size(m);
      }
      cells[d] = cell;
    }
    return cells;
  }

  int memberOf(int place) {
    int member = 0;
    for (int m : freeDims) {
      member = member * mesh.size(m) + place / meshStrides[m] % mesh.size(m);
    }
    return member;
  }

  int rank(int[] cells, int member) {
    return mesh.rankAtPlace(place(cells, member));
  }

  int place(int[] cells, int member) {
    int place = 0;
    for (int d = 0; d < cuts.length; d++) {
      for (int l = 0; l < cuts[d].levels(); l++) {
        place += cuts[d].coordinate(cells[d], l) * meshStrides[cuts[d].meshDim(l)];
      }
    }
    return place + offset(member);
  }

  /**
   * Returns the distance between the positions of member 0 and of {@code member}, in row-major
   * order of the mesh. It is the same for all cells.
   */
  int offset(int member) {
    int offset = 0;
    int rest = member;
    for (int f = freeDims.length - 1; f >= 0; f--) {
      offset += rest % mesh.size(freeDims[f]) * meshStrides[freeDims[f]];
      rest /= mesh.size(freeDims[f]);
    }
    return offset;
  }

  int index(int[] cells) {
    int index = 0;
    for (int d = 0; d < cuts.length; d++) {
      index = index * cuts[d].cells() + cells[d];
    }
    return index;
  }

  /**
   * Returns the numbers of the members that hold terms of the same value as {@code member}, in
   * row-major order. Without {@code Partial} it returns only {@code member}.
   */
  int[] group(int member) {
    int base = member;
    int[] group = {0};
    int stride = 1;
    for (int f = freeDims.length - 1; f >= 0; f--) {
      int size = mesh.size(freeDims[f]);
      if (partial[f]) {
        base -= member / stride % size * stride;
        group = outer(size, stride, group);
      }
      stride *= size;
    }
    for (int i = 0; i < group.length; i++) {
      group[i] += base;
    }
    return group;
  }

  private static int[] outer(int size, int stride, int[] inner) {
    int[] product = new int[size * inner.length];
    for (int i = 0; i < product.length; i++) {
      product[i] = i / inner.length * stride + inner[i % inner.length];
    }
    return product;
  }
}
