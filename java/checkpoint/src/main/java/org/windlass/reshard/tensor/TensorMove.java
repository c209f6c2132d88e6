// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.windlass.DType;
import org.windlass.error.UnsupportedException;
import org.windlass.layout.Layout;
import org.windlass.plan.Plan;

/**
 * Describes the move of one source tensor to its own target, or to a part of a joined target.
 *
 * @param source the tensor as it is read
 * @param axes the tensor's dimensions in written order
 * @param target the tensor that contains the values after the move
 * @param dim the index of the written dimension along which parts lie one after another
 * @param segments the indices of {@code dim} that move. A target is zero elsewhere
 * @param wire the dtype for the transfer, if one was requested and the tensor is floating
 */
public record TensorMove(
    SourceTensor source,
    Axes axes,
    TargetTensor target,
    int dim,
    List<Segment> segments,
    Optional<DType> wire) {
  /**
   * Represents consecutive indices along a dimension.
   *
   * @param source the first index in the source, whose dimensions are in written order
   * @param target the first index in the target
   * @param length the number of indices
   */
  public record Segment(long source, long target, long length) {}

  public TensorMove {
    segments = List.copyOf(segments);
  }

  /** Returns the indices of the written dimension {@code along} that move. */
  public List<Segment> segments(int along) {
    return along == dim ? segments : List.of(new Segment(0, 0, shape()[along]));
  }

  /** Returns the target's first index along {@link #dim} that this move fills. */
  public long start() {
    return segments.get(0).target();
  }

  /** Returns the source's extents, in the order of the target's dimensions. */
  public long[] shape() {
    return axes.shape(source.shape());
  }

  /**
   * Returns whether some target rank has only a part of the tensor. If a rule stacks tensors, a cut
   * between whole tensors does not count.
   */
  public boolean isCut() {
    return IntStream.range(0, target.shape().length)
        .anyMatch(d -> axes.stored().get(d) != Axes.NEW && target.isCut(d));
  }

  /** Returns whether the layouts cut the whole source and the whole target into the same pieces. */
  public boolean isCutAlike() {
    Layout from = source.from();
    return source.division().isPlain()
        && target.division().isPlain()
        && from.placements().equals(target.to().placements())
        && from.mesh().size() == target.to().mesh().size();
  }

  /** Returns whether a rule joins the tensor with others along an existing dimension. */
  public boolean isPart() {
    return !Arrays.equals(shape(), target.shape()) && axes.stored().get(dim) != Axes.NEW;
  }

  /** Returns the source layout, with the dimensions in written order. */
  public Layout from() {
    return axes.layout(source.from());
  }

  /** Returns the wire dtype, or the source's dtype if none was requested. */
  public DType effectiveWire() {
    return wire.orElseGet(() -> Plan.defaultWire(source.dtype(), target.dtype()));
  }

  /**
   * Checks that the dtypes allow this move.
   *
   * @throws UnsupportedException if a cut is inside a byte
   */
  public void require() {
    try {
      new ByteIndices(source.dtype()).require(this);
    } catch (UnsupportedException refused) {
      throw new UnsupportedException(label() + ": " + refused.getMessage(), refused);
    }
  }

  /** Returns the name of the tensor or tensors, for messages. */
  public String label() {
    String from = "tensor \"" + source.name() + "\"";
    return source.name().equals(target.name()) ? from : from + " as \"" + target.name() + "\"";
  }
}
