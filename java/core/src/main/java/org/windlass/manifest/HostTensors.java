// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;

/**
 * Host tensors of one rank. Each belongs to a slot: it is loaded into the slot, or receives the
 * slot's content: {@code HostTensors.of("weights", w).and("fleet", "out", o)}.
 *
 * <p>A tensor belongs to the slot with its name that is loaded or stored. If several of the rank's
 * groups have such a slot, name the group as well. If this rank is not in the group, the tensor is
 * ignored, so all ranks may pass the same names.
 */
public final class HostTensors {
  private static final HostTensors NONE = new HostTensors(List.of());

  /**
   * One host tensor.
   *
   * @param group name of the group; null if the caller gave an index or no group
   * @param index index of the group; -1 if the caller gave a name or no group
   */
  record Given(@Nullable String group, int index, String slot, Tensor tensor) {
    @Override
    public String toString() {
      String name = "host tensor " + ManifestNames.quoted(slot);
      if (group != null) {
        return name + " of group " + ManifestNames.quoted(group);
      }
      return index < 0 ? name : name + " of group " + index;
    }
  }

  private final List<Given> given;

  private HostTensors(List<Given> given) {
    this.given = given;
  }

  /** Returns an instance without tensors. */
  public static HostTensors none() {
    return NONE;
  }

  /** Returns an instance with one tensor, for the slot of that name. */
  public static HostTensors of(String slot, Tensor tensor) {
    return NONE.and(slot, tensor);
  }

  /**
   * Returns these tensors and another one, for the slot named {@code slot}.
   *
   * @param slot name of the slot
   * @param tensor tensor with the slot's dtype and number of elements, in any shape and with any
   *     strides. For a slot of bytes the dtype may be any. For a slot of 4-bit elements, pass their
   *     bytes as u8.
   */
  public HostTensors and(String slot, Tensor tensor) {
    return and(null, -1, slot, tensor);
  }

  /** Returns these tensors and another one, for a slot of the group named {@code group}. */
  public HostTensors and(String group, String slot, Tensor tensor) {
    return and(Objects.requireNonNull(group, "group"), -1, slot, tensor);
  }

  /**
   * Returns these tensors and another one, for the slot named {@code slot} of a group.
   *
   * @param group index of the group in the manifest
   */
  public HostTensors and(int group, String slot, Tensor tensor) {
    if (group < 0) {
      throw new InvalidArgumentException("group is " + group + "; it must be 0 or more");
    }
    return and(null, group, slot, tensor);
  }

  private HostTensors and(@Nullable String group, int index, String slot, Tensor tensor) {
    Objects.requireNonNull(slot, "slot");
    Objects.requireNonNull(tensor, "tensor");
    List<Given> more = new ArrayList<>(given);
    more.add(new Given(group, index, slot, tensor));
    return new HostTensors(List.copyOf(more));
  }

  List<Given> given() {
    return given;
  }

  @Override
  public String toString() {
    return given.toString();
  }
}
