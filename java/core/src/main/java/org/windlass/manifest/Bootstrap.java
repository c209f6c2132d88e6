// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The resolved form of a manifest for a given number of devices. It has the members of each group,
 * and the offset of each slot in the group's window.
 *
 * @param devices number of devices; their indices are 0 to {@code devices - 1}
 * @param groups the groups, in the order of the manifest
 */
public record Bootstrap(int devices, List<Group> groups) {
  /** Alignment of the offset of each slot, in bytes. */
  public static final int ALIGNMENT = 64;

  /** Largest number of devices. */
  public static final int MAX_DEVICES = 1 << 20;

  /**
   * Creates a resolved manifest.
   *
   * @throws InvalidArgumentException if {@code devices} is out of range
   */
  public Bootstrap {
    groups = Copies.list(groups, "groups");
    requireDevices(devices);
  }

  /**
   * A resolved group.
   *
   * @param name name of the group; empty if it has none
   * @param members devices of the group: device {@code members.get(r)} is rank {@code r}
   * @param slots the slots, in order
   * @param windowBytes size of each rank's window in bytes, a multiple of {@value #ALIGNMENT}
   */
  public record Group(
      Optional<String> name, List<Integer> members, List<Place> slots, long windowBytes) {
    public Group {
      Objects.requireNonNull(name, "name");
      members = Copies.list(members, "members");
      slots = Copies.list(slots, "slots");
      for (int r = 0; r < members.size(); r++) {
        requireNotNegative("members[" + r + "] of a group", members.get(r));
      }
      requireNotNegative("windowBytes of a group", windowBytes);
    }

    /** Returns the rank of device {@code device}. Empty if the device is not a member. */
    public OptionalInt rankOf(int device) {
      int rank = members.indexOf(device);
      return rank < 0 ? OptionalInt.empty() : OptionalInt.of(rank);
    }
  }

  /**
   * A slot with its offset in the window.
   *
   * @param slot the slot
   * @param offset distance from the start of each rank's window, in bytes
   */
  public record Place(Slot slot, long offset) {
    public Place {
      Objects.requireNonNull(slot, "slot");
      requireNotNegative("offset of slot " + ManifestNames.quoted(slot.name()), offset);
    }
  }

  String label(int group) {
    return "group " + group
        + groups.get(group).name().map(n -> " (" + ManifestNames.quoted(n) + ")").orElse("");
  }

  private static void requireDevices(int devices) {
    if (devices < 1 || devices > MAX_DEVICES) {
      throw new InvalidArgumentException(
          "devices is " + devices + "; it must be 1 or more and at most " + MAX_DEVICES);
    }
  }

  private static void requireNotNegative(String what, long value) {
    if (value < 0) {
      throw new InvalidArgumentException(what + " is " + value + "; it must be 0 or more");
    }
  }

  static Bootstrap of(CommManifest manifest, int devices) {
    requireDevices(devices);
    List<Group> groups = new ArrayList<>();
    for (CommGroup group : manifest.groups()) {
      groups.add(group(group, "$.comm_groups[" + groups.size() + "]", devices));
    }
    return new Bootstrap(devices, groups);
  }

  private static Group group(CommGroup group, String at, int devices) {
    for (int i = 0; i < group.devices().size(); i++) {
      if (group.devices().get(i) >= devices) {
        throw new InvalidArgumentException(
            at + ".devices[" + i + "] is " + group.devices().get(i) + "; there are devices 0 to "
                + (devices - 1));
      }
    }
    List<Integer> members =
        group.devices().isEmpty()
            ? IntStream.range(0, devices).boxed().toList()
            : group.devices();
    List<Place> slots = new ArrayList<>();
    long end = 0;
    for (Slot slot : group.slots()) {
      slots.add(new Place(slot, end));
      // Sizes are at most 2^60, so the sum is below 2^63.
      end += (slot.bytes() + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
      if (end > Long.MAX_VALUE / 8) {
        throw new InvalidArgumentException(
            at + ".slots[" + (slots.size() - 1) + "] ends beyond " + Long.MAX_VALUE / 8
                + " bytes, the most that a window may have");
      }
    }
    return new Group(group.name(), members, slots, end);
  }
}
