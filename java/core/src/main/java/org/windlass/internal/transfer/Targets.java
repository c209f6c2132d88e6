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
 * The views into which a rank receives. If it receives in place, every version arrives in the
 * caller's views. Otherwise there are two memory halves, and versions alternate between them: half
 * 0 is the caller's memory, and this class allocates half 1. For each allocation of the caller,
 * half 1 has the bytes from the start of its first view to the end of its last one. So views that
 * share bytes in half 0 do so in half 1.
 */
public final class Targets {
  /**
   * Addresses {@code low} (included) to {@code high} (excluded) of half 0, and the copy of this
   * memory in half 1.
   */
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
     * Returns the address in half 0 that corresponds to the start of half 1. It is a multiple of
     * 64, so that views have the same alignment in both halves.
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
      stretches.computeIfAbsent(view.memory(), m -> new Stretch()).include(view);
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

  /** Returns true if there are views, and they have no second half. */
  public boolean isInPlace() {
    return !doubled && !views.isEmpty();
  }

  /**
   * Returns a view in a memory half.
   *
   * @param name name of the tensor
   * @param view index of the view among those of this name
   * @param half 0 or 1
   * @return the view; null if this rank has no such view
   */
  public @Nullable Tensor view(String name, int view, int half) {
    List<Tensor> known = views.get(name);
    return known == null || view >= known.size() ? null : in(half, known.get(view));
  }

  /** Throws InvalidArgumentException unless {@code name} has exactly one view. */
  public void requireOne(String name) {
    List<Tensor> known = views.get(name);
    if (known == null) {
      throw new InvalidArgumentException(
          "tensor: this rank receives no part of a tensor '" + name + "'");
    }
    if (known.size() > 1) {
      throw new InvalidArgumentException(
          "tensor: '" + name + "' is taken into " + known.size()
              + " views; ask by the view that was bound");
    }
  }

  /** Returns the only view of {@code name}, in memory half 0 or 1. */
  public Tensor view(String name, int half) {
    return in(half, Objects.requireNonNull(views.get(name)).get(0));
  }

  /**
   * Returns the view in memory half 0 or 1 that corresponds to {@code view}, a view of half 0.
   *
   * @throws InvalidArgumentException if {@code view} lies outside the memory of the bound views
   */
  public Tensor view(Tensor view, int half) {
    Stretch stretch = stretches.get(view.memory());
    if (stretch == null || !stretch.holds(view)) {
      throw new InvalidArgumentException(
          "tensor: " + view + " is not in the memory of the bound views, nor between them");
    }
    return in(half, view);
  }

  private Tensor in(int half, Tensor view) {
    if (half == 0 || !doubled) {
      return view;
    }
    Stretch stretch = Objects.requireNonNull(stretches.get(view.memory()));
    Memory second = Objects.requireNonNull(stretch.second);
    long address = second.address + (view.address() - stretch.base());
    return view.at(second, address);
  }
}
