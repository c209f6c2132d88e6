// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A tensor of a batch: what it is, how it moves, and this rank's views of both ends. */
record BoundTensor(TensorSpec from, Tensor source, TensorSpec to, Tensor target, Plan plan) {
  /** Checks {@code view} against what {@code rank} holds of {@code spec}. */
  static void checkView(String argument, TensorSpec spec, Tensor view, int rank) {
    boolean member = spec.layout().mesh().contains(rank);
    if (!member) {
      if (view != null) {
        throw refused(
            argument,
            spec,
            "is "
                + view
                + "; rank "
                + rank
                + " is outside the mesh of "
                + spec.layout().qualified()
                + " and holds nothing: give null");
      }
      return;
    }
    long[] local = spec.localShape(rank);
    if (view == null) {
      if (Shapes.numel(local) != 0) {
        throw refused(
            argument,
            spec,
            "is null; rank " + rank + " holds " + Arrays.toString(local) + " of it");
      }
      return;
    }
    if (view.dtype != spec.dtype()) {
      throw refused(argument, spec, "has dtype " + view.dtype + "; it must be " + spec.dtype());
    }
    if (!Arrays.equals(view.shape, local)) {
      throw refused(
          argument,
          spec,
          "has shape "
              + Arrays.toString(view.shape)
              + "; under "
              + spec.layout().qualified()
              + " rank "
              + rank
              + " holds "
              + Arrays.toString(local));
    }
    if (argument.equals("target") && view.isReadOnly()) {
      throw refused(argument, spec, "is read-only");
    }
    if (!view.memory.usable()) {
      throw view.closed("add", argument + " of tensor '" + spec.name() + "'");
    }
  }

  private static InvalidArgumentException refused(String argument, TensorSpec spec, String why) {
    return new InvalidArgumentException(
        "add: " + argument + " of tensor '" + spec.name() + "' " + why);
  }

  /** Bytes of the target on all ranks together, without padding. */
  long targetBytes() {
    long elements = 0;
    for (int rank : to.layout().mesh().ranks()) {
      elements += to.localRegion(rank).numel();
    }
    return to.dtype().bytesOf(elements);
  }

  /** The views of the target's padding: together each of its elements once. */
  List<Tensor> padding(int rank) {
    List<Tensor> padding = new ArrayList<>();
    if (target == null) {
      return padding;
    }
    Tensor rest = target;
    long[] real = to.localRegion(rank).shape();
    for (int d = 0; d < real.length; d++) {
      padding.add(rest.narrow(d, real[d], rest.shape[d] - real[d]));
      rest = rest.narrow(d, 0, real[d]);
    }
    padding.removeIf(view -> view.numel == 0);
    return padding;
  }
}
