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
  HOSTS {
    /** Throws if this machine, which has all ranks, has too little memory for all windows. */
    @Override
    void check(Target target, Bootstrap bootstrap) {
      if (target == Target.SIM || target == Target.A2A3SIM || target == Target.A5SIM) {
        requireRoom(bootstrap);
      }
    }

    @Override
    Window window(Communicator group, long bytes, Duration deadline) {
      return group.window(bytes, deadline);
    }
  },

  /** Memory of each rank's device, by {@link Communicator#deviceWindow}. */
  DEVICES {
    @Override
    void check(Target target, Bootstrap bootstrap) {
      if (target != Target.CUDA) {
        throw new UnsupportedException(
            "target " + target
                + " has no devices on which callers have tensors; slots in the memory of hosts are"
                + " opened by open");
      }
    }

    @Override
    Window window(Communicator group, long bytes, Duration deadline) {
      return group.deviceWindow(bytes, deadline);
    }
  };

  private static final long PAGE = 4096;

  abstract void check(Target target, Bootstrap bootstrap);

  abstract Window window(Communicator group, long bytes, Duration deadline);

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
                  + ", and beside the slots before it "
                  + Math.max(0, (free - taken) / members - place.offset()) + " are left of the "
                  + free + " that are free on this machine; make it smaller, or free some");
        }
      }
      taken += (group.windowBytes() + PAGE - 1) / PAGE * PAGE * members;
    }
  }
}
