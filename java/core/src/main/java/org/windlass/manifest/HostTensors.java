// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;

/**
 * Host tensors of one rank, by the slots that they are loaded into or stored from: {@code
 * HostTensors.of("weights", w).and("fleet", "out", o)}.
 *
 * <p>A tensor goes to the slot of its name that is loaded or stored. Where several of the rank's
 * groups have such a slot it says which group's. One that is for groups of other ranks alone is left
 * alone, so that all ranks may bring the same names.
 */
public final class HostTensors {
  private static final HostTensors NONE = new HostTensors(List.of());

  /**
   * One of them.
   *
   * @param group a name; null where it goes by {@code index}, or any will do
   * @param index of the group; -1 where it goes by its name, or any will do
   */
  record Given(String group, int index, String slot, Tensor tensor) {
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

  /** None. */
  public static HostTensors none() {
    return NONE;
  }

  /** One, for the slot of that name. */
  public static HostTensors of(String slot, Tensor tensor) {
    return NONE.and(slot, tensor);
  }

  /**
   * These and another, for the slot of that name.
   *
   * @param tensor of the slot's dtype and number of elements, in any shape, with any strides; for a
   *     slot of bytes of any dtype, and for one of elements of 4 bits its bytes as u8
   */
  public HostTensors and(String slot, Tensor tensor) {
    return and(null, -1, slot, tensor);
  }

  /** These and another, for a slot of the group of that name. */
  public HostTensors and(String group, String slot, Tensor tensor) {
    return and(Objects.requireNonNull(group, "group"), -1, slot, tensor);
  }

  /**
   * These and another, for a slot of a group.
   *
   * @param group its index in the manifest
   */
  public HostTensors and(int group, String slot, Tensor tensor) {
    if (group < 0) {
      throw new InvalidArgumentException("group is " + group + "; it must be 0 or more");
    }
    return and(null, group, slot, tensor);
  }

  private HostTensors and(String group, int index, String slot, Tensor tensor) {
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
