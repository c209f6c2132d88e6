// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;

/** Checks that target views of one transfer share no bytes with other views. */
public final class TargetViews {
  private record View(String name, Tensor tensor, boolean isTarget) {
    public String text() {
      return (isTarget ? "target" : "source") + " of tensor '" + name + "' (" + tensor + ")";
    }
  }

  private final List<View> views = new ArrayList<>();

  public void addSource(String name, @Nullable Tensor source) {
    add(name, source, false);
  }

  public void addTarget(String name, @Nullable Tensor target) {
    add(name, target, true);
  }

  private void add(String name, @Nullable Tensor tensor, boolean isTarget) {
    if (tensor != null && tensor.numel() != 0) {
      views.add(new View(name, tensor, isTarget));
    }
  }

  public void check() {
    views.sort(Comparator.comparingLong(view -> view.tensor().address()));
    List<View> open = new ArrayList<>();
    for (View view : views) {
      open.removeIf(other -> end(other) <= view.tensor().address());
      for (View other : open) {
        if ((view.isTarget() || other.isTarget())
            && Views.overlap(view.tensor(), other.tensor())) {
          throw new InvalidArgumentException(
              "register: " + view.text() + " overlaps " + other.text());
        }
      }
      open.add(view);
    }
  }

  private static long end(View view) {
    return view.tensor().address() + Views.span(view.tensor());
  }
}
