// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.Shapes;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;

/**
 * One tensor of a transfer, before and after the move, with this rank's views. A view is null if
 * this rank holds no element.
 */
public record BoundTensor(
    TensorSpec from, @Nullable Tensor source, TensorSpec to, @Nullable Tensor target, Plan plan) {
  /**
   * Throws InvalidArgumentException unless {@code view} has the dtype and the shape of the part of
   * {@code spec} that {@code rank} holds.
   *
   * @param call method, for messages
   * @param role {@code source} or {@code target}, for messages
   */
  public static void checkView(
      String call, String role, TensorSpec spec, @Nullable Tensor view, int rank) {
    boolean member = spec.layout().mesh().contains(rank);
    if (!member) {
      if (view != null) {
        throw refused(
            call,
            role,
            spec,
            "is " + view + "; rank " + rank + " is outside the mesh of " + spec.layout()
                + " and holds nothing: give null");
      }
      return;
    }
    long[] local = spec.localShape(rank);
    if (view == null) {
      if (Shapes.numel(local) != 0) {
        throw new NullPointerException(
            text(role, spec) + " is null; rank " + rank + " holds " + Arrays.toString(local)
                + " of it");
      }
      return;
    }
    if (view.dtype() != spec.dtype()) {
      throw refused(call, role, spec, "has dtype " + view.dtype() + "; it must be " + spec.dtype());
    }
    if (!Arrays.equals(view.shape(), local)) {
      throw refused(
          call,
          role,
          spec,
          "has shape " + Arrays.toString(view.shape()) + "; under " + spec.layout() + " rank "
              + rank + " holds " + Arrays.toString(local));
    }
    if (role.equals("target") && view.isReadOnly()) {
      throw refused(call, role, spec, "is read-only");
    }
    Views.requireDevices(call, text(role, spec), view);
    if (!view.memory().usable()) {
      throw Views.closed(call, text(role, spec), view);
    }
  }

  private static InvalidArgumentException refused(
      String call, String role, TensorSpec spec, String why) {
    return new InvalidArgumentException(call + ": " + text(role, spec) + " " + why);
  }

  private static String text(String role, TensorSpec spec) {
    return role + " of tensor '" + spec.name() + "'";
  }

  public long fingerprint() {
    return new Fingerprint().add(from.name()).add(to.name()).add(plan.fingerprint()).value();
  }

  /** Returns the properties that {@link #fingerprint} covers as text, for messages. */
  public String text() {
    return "'" + from.name() + "', " + text(from) + ", to "
        + (to.name().equals(from.name()) ? "" : "'" + to.name() + "', ") + text(to) + ", "
        + new Moving(plan.wire(), plan.options());
  }

  private static String text(TensorSpec spec) {
    boolean isPadded = !spec.paddedShape().equals(spec.shape());
    return spec.dtype() + spec.shape().toString()
        + (isPadded ? " padded to " + spec.paddedShape() : "") + " under " + spec.layout();
  }

  /** Returns the number of bytes of the targets of all ranks, without padding. */
  public long targetBytes() {
    return to.layout().mesh().ranks().stream().mapToLong(this::targetBytes).sum();
  }

  /** Returns views of the padding in the target of {@code rank}. They don't overlap. */
  public List<Tensor> padding(int rank) {
    List<Tensor> padding = new ArrayList<>();
    if (target == null) {
      return padding;
    }
    Tensor rest = target;
    long[] real = to.localRegion(rank).shape();
    for (int d = 0; d < real.length; d++) {
      padding.add(rest.narrow(d, real[d], rest.shape()[d] - real[d]));
      rest = rest.narrow(d, 0, real[d]);
    }
    padding.removeIf(view -> view.numel() == 0);
    return padding;
  }

  /** Returns the number of bytes of the target of {@code rank}, without padding. */
  public long targetBytes(int rank) {
    return to.layout().mesh().contains(rank)
        ? to.dtype().bytesOf(to.localRegion(rank).numel())
        : 0;
  }
}
