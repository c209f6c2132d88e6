// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Layout;
import org.windlass.Plan;
import org.windlass.PlanOptions;
import org.windlass.UnsupportedException;

/**
 * A tensor to plan.
 *
 * @param name its name
 * @param shape the global shape
 * @param dtype at both ends
 * @param wire between them
 * @param from the source layout
 * @param to the target layout
 * @param count how many such tensors there are
 */
public record PlannedTensor(
    String name, long[] shape, DType dtype, DType wire, Layout from, Layout to, int count) {

  /** The plan of the tensor that stands {@code turn}th in its batch. */
  Plan plan(PlanOptions options, int turn) {
    from.check(name, shape);
    to.check(name, shape);
    try {
      return Plan.of(from, to, shape, dtype, wire, dtype, options.withTurn(turn));
    } catch (InvalidArgumentException refused) {
      throw new InvalidArgumentException("tensor '" + name + "': " + refused.getMessage(), refused);
    } catch (UnsupportedException refused) {
      throw new UnsupportedException("tensor '" + name + "': " + refused.getMessage(), refused);
    }
  }
}
