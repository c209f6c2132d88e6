// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.List;
import org.windlass.DType;
import org.windlass.error.UnsupportedException;

/**
 * Converts shapes and indices of tensors whose elements take less than a byte. After the
 * conversion, the last dimension counts bytes. Other tensors stay unchanged.
 */
public record ByteIndices(DType dtype) {
  private boolean converts() {
    return dtype.bits() < Byte.SIZE;
  }

  /** Returns the dtype of the elements after the conversion. */
  public DType memory() {
    return converts() ? DType.U8 : dtype;
  }

  /** Returns the converted extents. */
  public long[] shape(long[] shape) {
    long[] bytes = shape.clone();
    if (converts() && bytes.length > 0) {
      bytes[bytes.length - 1] = bytes(bytes[bytes.length - 1]);
    }
    return bytes;
  }

  /**
   * Returns the converted runs.
   *
   * @throws UnsupportedException if a run does not begin and end on a byte
   */
  public Runs runs(Runs held) {
    int last = held.shape().length - 1;
    if (!converts() || last < 0) {
      return held;
    }
    List<List<Runs.Run>> dims = new ArrayList<>(held.dims());
    dims.set(
        last,
        dims.get(last).stream()
            .map(run -> new Runs.Run(bytes(run.start()), bytes(run.end()), bytes(run.local())))
            .toList());
    return new Runs(dims, shape(held.shape()));
  }

  /** Returns the converted segments of a move. */
  public List<TensorMove.Segment> segments(TensorMove move) {
    boolean isLast = move.dim() == move.target().shape().length - 1;
    return !converts() || !isLast
        ? move.segments()
        : move.segments().stream()
            .map(
                each ->
                    new TensorMove.Segment(
                        bytes(each.source()), bytes(each.target()), bytes(each.length())))
            .toList();
  }

  /**
   * Throws unless a move can be converted.
   *
   * @throws UnsupportedException if the move transposes, or if a cut does not fall on a byte
   */
  public void require(TensorMove move) {
    if (!converts()) {
      return;
    }
    if (!move.axes().keepOrder()) {
      throw new UnsupportedException(
          dtype + " is less than a byte and is not transposed; leave \"transpose\" out of its rule");
    }
    if (move.source().shape().length == 0) {
      throw new UnsupportedException(
          "a scalar of " + dtype + " does not fill a whole number of bytes; leave it out with"
              + " \"drop\"");
    }
    segments(move);
    move.source().from().mesh().ranks().forEach(rank -> runs(move.source().held(rank)));
    move.target().to().mesh().ranks().forEach(rank -> runs(move.target().held(rank)));
  }

  private long bytes(long elements) {
    if (elements % Byte.SIZE * dtype.bits() % Byte.SIZE != 0) {
      int unit = dtype.bits() % 4 == 0 ? 2 : 4;
      throw new UnsupportedException(
          dtype + " moves only where every cut falls on a byte; cut it at multiples of " + unit
              + " elements, as S0*" + unit + " does, or keep it whole with R");
    }
    return elements / Byte.SIZE * dtype.bits() + elements % Byte.SIZE * dtype.bits() / Byte.SIZE;
  }
}
