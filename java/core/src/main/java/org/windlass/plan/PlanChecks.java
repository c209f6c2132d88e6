// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Cut;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;

final class PlanChecks {
  private PlanChecks() {}

  static void require(TensorSpec from, TensorSpec to, DType wire, PlanOptions options) {
    if (!from.shape().equals(to.shape())) {
      throw new InvalidArgumentException(
          "tensor '" + to.name() + "' has shape " + to.shape() + ", its source has "
              + from.shape());
    }
    from.layout().check(from.name(), from.paddedExtents());
    to.layout().check(to.name(), to.paddedExtents());
    requireCountable(from, wire);
    if (to.layout().hasPartial()) {
      throw new InvalidArgumentException(
          "target layout " + to.layout() + " holds Partial; a target holds values: use R or S");
    }
    requireCast(from.dtype(), wire);
    requireCast(wire, to.dtype());
    if (!from.layout().partialOp().stream().allMatch(from.dtype()::canReduce)) {
      throw new UnsupportedException(
          "partial tensors of " + from.dtype() + " can't be reduced by "
              + from.layout().partialOp().orElseThrow());
    }
    requireHosts(from.layout(), options.hosts());
    requireHosts(to.layout(), options.hosts());
    if (options.mode() != TransferMode.DIRECT
        && Math.min(from.dtype().bits(), wire.bits()) < 8) {
      throw new UnsupportedException(
          "elements of " + from.dtype() + " are less than a byte, which mode " + options.mode()
              + " does not move");
    }
    if (from.dtype().bits() < 8) {
      requireWholeBytes(from);
      requireWholeBytes(to);
    }
  }

  private static void requireHosts(Layout layout, Hosts hosts) {
    int highest = layout.mesh().highestRank();
    if (highest >= hosts.known()) {
      throw new InvalidArgumentException(
          "layout " + layout + " has rank " + highest + ", whose host is not known: " + hosts
              + " give the hosts of ranks 0 to " + (hosts.known() - 1));
    }
  }

  private static void requireCountable(TensorSpec spec, DType wire) {
    new TensorSpec(spec.name(), spec.shape(), wire, spec.layout(), spec.shape());
  }

  private static void requireCast(DType from, DType to) {
    if (!from.canCast(to)) {
      throw new UnsupportedException(
          from + " does not cast to " + to
              + "; f64 f32 f16 bf16 f8e4m3 f8e5m2 cast to one another");
    }
  }

  /** Throws if a row or a cut of elements smaller than a byte ends inside a byte. */
  private static void requireWholeBytes(TensorSpec spec) {
    int last = spec.shape().size() - 1;
    int bits = spec.dtype().bits();
    if (last < 0) {
      throw new UnsupportedException(
          "a scalar of " + spec.dtype() + " does not fill a whole number of bytes");
    }
    Cut cut = spec.layout().cut(last, spec.shape().get(last), spec.paddedShape().get(last));
    for (int cell = 0; cell < cut.cells(); cell++) {
      for (long bound : cut.bounds(cell)) {
        if (bound % 8 * bits % 8 != 0) {
          throw new UnsupportedException(
              "layout " + spec.layout().placements() + " over " + spec.layout().mesh().size()
                  + " ranks cuts " + spec.dtype() + " at element " + bound + " of dimension " + last
                  + ", inside a byte");
        }
      }
    }
  }
}
