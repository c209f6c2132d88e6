// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.time.Duration;
import java.util.Locale;
import org.windlass.Communicator;
import org.windlass.Window;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.kernel.Target;

/** The memory that contains the slots of a manifest. */
enum SlotMemory {
  /** Memory of the host, by {@link Communicator#window}. */
  HOSTS,
  /** Memory of each rank's device, by {@link Communicator#deviceWindow}. */
  DEVICES;

  private static final long PAGE = 4096;

  /**
   * Throws if the target has no such memory, or this machine has too little memory for the windows
   * of all ranks.
   */
  void check(Target target, Bootstrap bootstrap) {
    if (this == DEVICES && target != Target.CUDA) {
      throw new UnsupportedException(
          "target " + target
              + " has no devices on which callers have tensors; slots in the memory of hosts are"
              + " opened by open");
    }
    if (this == HOSTS
        && (target == Target.SIM || target == Target.A2A3SIM || target == Target.A5SIM)) {
      requireRoom(bootstrap);
    }
  }

  Window window(Communicator group, long bytes, Duration deadline) {
    return this == HOSTS
        ? group.window(bytes, deadline)
        : group.deviceWindow(bytes, deadline);
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }

  private static void requireRoom(Bootstrap bootstrap) {
    long available = Native.wl_memory_available();
    long free = available < 0 ? Long.MAX_VALUE : available;
    long taken = 0;
    for (int index = 0; index < bootstrap.groups().size(); index++) {
      Bootstrap.Group group = bootstrap.groups().get(index);
      int members = group.members().size();
      for (Bootstrap.Place place : group.slots()) {
        // Sizes are at most 2^60.
        long end = (place.offset() + place.slot().bytes() + PAGE - 1) / PAGE * PAGE;
        if (end > (free - taken) / members) {
          throw new ResourceException(
              "slot " + ManifestNames.quoted(place.slot().name()) + " of " + bootstrap.label(index)
                  + " is too large: it takes " + place.slot().bytes() + " bytes on each of "
                  + members + (members == 1 ? " rank" : " ranks")
                  + ", and after the slots before it "
                  + Math.max(0, (free - taken) / members - place.offset()) + " are left of the "
                  + free + " that are free on this machine; make the slot smaller, or free memory");
        }
      }
      taken += (group.windowBytes() + PAGE - 1) / PAGE * PAGE * members;
    }
  }
}
