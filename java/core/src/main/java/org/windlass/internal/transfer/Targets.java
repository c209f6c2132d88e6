// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.memory.Memory;
import org.windlass.layout.TensorSpec;

/**
 * The views into which a rank receives. In place, versions arrive in the caller's memory. Otherwise
 * there are two halves: the caller's memory, and memory of the same shape that this class
 * allocates. For each allocation of the caller, the second half has the bytes from the start of its
 * first view to the end of its last one. So views that share bytes do so in both halves.
 */
public final class Targets {
  /** Bytes of one allocation that a half has; from {@code low} to {@code high} in the first. */
  private static final class Stretch {
    public long low = Long.MAX_VALUE;
    public long high = Long.MIN_VALUE;
    private @Nullable Memory second;

    public void include(Tensor view) {
      low = Math.min(low, view.address());
      high = Math.max(high, view.address() + Views.span(view));
    }

    public boolean holds(Tensor view) {
      return low <= view.address() && view.address() + Views.span(view) <= high;
    }

    /**
     * Returns the address that matches the start of the second half. It is aligned to 64 bytes, so
     * that views have the same alignment in both halves.
     */
    public long base() {
      return low & -64;
    }
  }

  private final Map<String, List<Tensor>> views = new HashMap<>();
  private final Map<Memory, Stretch> stretches = new HashMap<>();
  private final boolean doubled;

  public Targets(List<TensorSpec> specs, List<Tensor> targets, boolean inPlace) {
    doubled = !inPlace && !targets.isEmpty();
    for (int i = 0; i < specs.size(); i++) {
      Tensor view = targets.get(i);
      views.computeIfAbsent(specs.get(i).name(), n -> new ArrayList<>()).add(view);
      stretches.computeIfAbsent(Views.memory(view), m -> new Stretch()).include(view);
    }
    if (doubled) {
      stretches.forEach((memory, stretch) -> stretch.second = like(memory, stretch));
    }
  }

  private static Memory like(Memory memory, Stretch stretch) {
    long bytes = stretch.high - stretch.base();
    return memory.onDevice
        ? Memory.allocateBeside(memory, bytes)
        : Memory.allocate(bytes);
  }

  /** Returns true if there are views, and no second half. */
  public boolean isInPlace() {
    return !doubled && !views.isEmpty();
  }

  /**
   * Returns a view in a half.
   *
   * @param name name of the tensor
   * @param view number of the view among those of the name
   * @return the view; null if this rank has no such view
   */
  public @Nullable Tensor view(String name, int view, int half) {
    List<Tensor> known = views.get(name);
    return known == null || view >= known.size() ? null : in(half, known.get(view));
  }

  /** Throws InvalidArgumentException unless there is exactly one view of that name. */
  public void requireOne(String name) {
    List<Tensor> known = views.get(name);
    if (known == null) {
      throw new InvalidArgumentException(
          "tensor: this rank takes nothing of a tensor '" + name + "'");
    }
    if (known.size() > 1) {
      throw new InvalidArgumentException(
          "tensor: '" + name + "' is taken into " + known.size()
              + " views; ask by the view that was bound");
    }
  }

  /** Returns the view of a name that has only one, in a half. */
  public Tensor view(String name, int half) {
    return in(half, Objects.requireNonNull(views.get(name)).get(0));
  }

  /**
   * Returns the view in a half that corresponds to {@code view} of the first half.
   *
   * @throws InvalidArgumentException if {@code view} lies outside the memory of the bound views
   */
  public Tensor view(Tensor view, int half) {
    Stretch stretch = stretches.get(Views.memory(view));
    if (stretch == null || !stretch.holds(view)) {
      throw new InvalidArgumentException(
          "tensor: " + view + " is no view of what was bound, nor of what lies between");
    }
    return in(half, view);
  }

  private Tensor in(int half, Tensor view) {
    if (half == 0 || !doubled) {
      return view;
    }
    Stretch stretch = Objects.requireNonNull(stretches.get(Views.memory(view)));
    Memory second = Objects.requireNonNull(stretch.second);
    long address = second.address + (view.address() - stretch.base());
    return Views.at(second, address, view);
  }
}
