// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.List;
import java.util.Optional;

final class ManifestDifference {
  private final String first;
  private final String second;

  private ManifestDifference(String first, String second) {
    this.first = first;
    this.second = second;
  }

  /** Returns text such as {@code $.comm_groups[0].slots is [] on rank 0 and [...] on rank 2}. */
  static Optional<String> first(String aName, CommManifest a, String bName, CommManifest b) {
    return new ManifestDifference(aName, bName)
        .groups("$.comm_groups", a.groups(), b.groups());
  }

  private Optional<String> groups(String at, List<CommGroup> a, List<CommGroup> b) {
    for (int i = 0; i < Math.min(a.size(), b.size()); i++) {
      String here = at + "[" + i + "]";
      CommGroup one = a.get(i);
      CommGroup other = b.get(i);
      if (!one.name().equals(other.name())) {
        return Optional.of(said(here + ".name", name(one), name(other)));
      }
      if (!one.devices().equals(other.devices())) {
        return Optional.of(said(here + ".devices", one.devices(), other.devices()));
      }
      Optional<String> slots = slots(here + ".slots", one.slots(), other.slots());
      if (slots.isPresent()) {
        return slots;
      }
    }
    return lengths(at, a, b);
  }

  private Optional<String> slots(String at, List<Slot> a, List<Slot> b) {
    for (int i = 0; i < Math.min(a.size(), b.size()); i++) {
      if (!a.get(i).equals(b.get(i))) {
        return Optional.of(said(at + "[" + i + "]", text(a.get(i)), text(b.get(i))));
      }
    }
    return lengths(at, a, b);
  }

  private Optional<String> lengths(String at, List<?> a, List<?> b) {
    return a.size() == b.size()
        ? Optional.empty()
        : Optional.of(said(at, a.size() + " long", b.size() + " long"));
  }

  private String said(String at, Object a, Object b) {
    return at + " is " + a + " on " + first + " and " + b + " on " + second;
  }

  private static String name(CommGroup group) {
    return group.name().map(ManifestNames::quoted).orElse("missing");
  }

  private static String text(Slot slot) {
    return ManifestNames.quoted(slot.name()) + " ("
        + (slot.extent() instanceof Slot.Bytes ? slot.bytes() + " bytes" : slot.extent())
        + (slot.loadFromHost() ? ", load_from_host" : "")
        + (slot.storeToHost() ? ", store_to_host" : "") + ")";
  }
}
