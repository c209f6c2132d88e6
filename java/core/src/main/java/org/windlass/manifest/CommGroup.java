// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * Devices that communicate, and the slots in each device's window.
 *
 * @param name name of the group; empty if it has none. Unique in its manifest
 * @param devices indices of the devices, in the order of the ranks; empty for all devices
 * @param slots slots of the window, in order
 */
public record CommGroup(Optional<String> name, List<Integer> devices, List<Slot> slots) {
  /**
   * Creates a group.
   *
   * @throws InvalidArgumentException if the name is not valid, a device index is out of range, or a
   *     device or a slot name occurs twice
   */
  public CommGroup {
    Objects.requireNonNull(name, "name").ifPresent(given -> ManifestNames.require("name", given));
    devices = Copies.list(devices, "devices");
    slots = Copies.list(slots, "slots");
    for (int i = 0; i < devices.size(); i++) {
      if (devices.get(i) < 0) {
        throw new InvalidArgumentException(
            "devices[" + i + "] is " + devices.get(i) + ", which is negative");
      }
      if (devices.get(i) >= Bootstrap.MAX_DEVICES) {
        throw new InvalidArgumentException(
            "devices[" + i + "] is " + devices.get(i) + "; indices are below "
                + Bootstrap.MAX_DEVICES);
      }
    }
    ManifestNames.requireDistinct(devices, i -> "devices[" + i + "]");
    ManifestNames.requireDistinct(
        slots.stream().map(Slot::name).toList(), i -> "slots[" + i + "].name");
  }

  /** Creates a group without a name. */
  public CommGroup(List<Integer> devices, List<Slot> slots) {
    this(Optional.empty(), devices, slots);
  }
}
