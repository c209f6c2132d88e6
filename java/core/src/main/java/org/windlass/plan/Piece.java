// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.List;
import org.windlass.DType;
import org.windlass.internal.Shapes;

/**
 * A part of a route that is a box in the source's and in the target's local tensor. It may pass
 * through a staging buffer. {@code tensor} is an index in the transfer.
 */
record Piece(int tensor, Route route, Chunk.Box box) {
  DType wire() {
    return route.wire();
  }

  long bytes() {
    return wire().bytesOf(Shapes.numel(box.length()));
  }

  long[] corner() {
    return new long[box.length().length];
  }

  static List<Chunk.Box> cut(Chunk.Box box, long most) {
    long inner = Shapes.numel(box.length());
    if (inner <= most) {
      return List.of(box);
    }
    int dim = 0;
    while (box.length()[dim] == 1) {
      dim++;
    }
    inner /= box.length()[dim];
    long step = Math.max(1, most / inner);
    List<Chunk.Box> parts = new ArrayList<>();
    for (long at = 0; at < box.length()[dim]; at += step) {
      long[] length = box.length().clone();
      long[] sourceStart = box.sourceStart().clone();
      long[] targetStart = box.targetStart().clone();
      length[dim] = Math.min(step, length[dim] - at);
      sourceStart[dim] += at;
      targetStart[dim] += at;
      parts.addAll(cut(new Chunk.Box(length, sourceStart, targetStart), most));
    }
    return parts;
  }
}
