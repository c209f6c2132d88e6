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
 * The views into which a rank receives, in one half or two. The first half is the caller's memory.
 * The second half is memory of the same shape. For each allocation it has the bytes from the start
 * of the first view to the end of the last one. So views that share bytes do so in both halves.
 */
public final class Targets {
  /** Bytes that both halves have. In the first half they lie from {@code low} to {@code high}. */
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
     * Returns the start of the second half. It has the first half's offset within a line of 64
     * bytes.
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

  /**
   * Allocates the second half of a stretch, on the same device as the first half if it is on one.
   */
  private static Memory like(Memory memory, Stretch stretch) {
    long bytes = stretch.high - stretch.base();
    return memory.onDevice
        ? Memory.allocateBeside(memory, bytes)
        : Memory.allocate(bytes);
  }

  /** Returns true if there are views, and only one half of them. */
  public boolean isInPlace() {
    return !doubled && !views.isEmpty();
  }

  /** Returns view number {@code view} of a name in a half; null if this rank takes no part. */
  public @Nullable Tensor view(String name, int view, int half) {
    List<Tensor> known = views.get(name);
    return known == null || view >= known.size() ? null : in(half, known.get(view));
  }

  /** Throws unless there is one view of that name. */
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

  /** Returns the one view of a name in a half. */
  public Tensor view(String name, int half) {
    return in(half, Objects.requireNonNull(views.get(name)).get(0));
  }

  /** Returns the view of a half that stands for {@code view} of the first half. */
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
