// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.windlass.DType;
import org.windlass.layout.Layout;
import org.windlass.plan.Plan;

/**
 * One tensor's way from layout to layout: into a tensor of its own, or into a part of one that is
 * joined of several.
 *
 * @param source the tensor as it is read
 * @param axes its dimensions in the order in which they are written
 * @param target the tensor that it becomes, or becomes a part of
 * @param dim the dimension along which parts lie one after another
 * @param offset where along it this part begins
 * @param wire the dtype between them, if it was asked for and the tensor is floating
 */
public record TensorMove(
    SourceTensor source,
    Axes axes,
    TargetTensor target,
    int dim,
    long offset,
    Optional<DType> wire) {

  /** The extents of what is written. */
  public long[] shape() {
    return axes.shape(source.shape());
  }

  /** Whether files have parts of the tensor, and not only of what a rule stacks. */
  public boolean isCut() {
    for (int rank : target.to().mesh().ranks()) {
      long[] held = target.held(rank).shape();
      for (int d = 0; d < held.length; d++) {
        if (axes.stored().get(d) != Axes.NEW && held[d] != target.shape()[d]) {
          return true;
        }
      }
    }
    return false;
  }

  /** Whether it becomes a part of a tensor, and not one of those that a rule stacks. */
  public boolean isPart() {
    return !Arrays.equals(shape(), target.shape()) && axes.stored().get(dim) != Axes.NEW;
  }

  /** The source layout of what is written. */
  public Layout from() {
    return axes.layout(source.from());
  }

  /** The dtype in which it crosses ranks. */
  public DType effectiveWire() {
    return wire.orElseGet(() -> Plan.defaultWire(source.dtype(), target.dtype()));
  }

  /** The parts as which it moves from its layout to the target's. */
  public List<Leg> legs() {
    return legs(from(), target.to());
  }

  /** The parts as which it moves between layouts of the same ends. */
  public List<Leg> legs(Layout from, Layout to) {
    if (target.fuse().isPresent() && to.equals(target.to())) {
      Fuse fuse = target.fuse().get();
      Leg all = Leg.all(from, fuse.layout(), shape());
      all.targetStart()[dim] = fuse.place(offset);
      return List.of(all);
    }
    return Arrays.equals(shape(), target.shape())
        ? List.of(Leg.all(from, to, shape()))
        : Leg.part(from, to, shape(), dim, offset, target.shape()[dim]);
  }

  /** How messages call it. */
  public String label() {
    String from = "tensor \"" + source.name() + "\"";
    return source.name().equals(target.name()) ? from : from + " as \"" + target.name() + "\"";
  }
}
