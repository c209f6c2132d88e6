// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

final class ManifestDifference {
  private ManifestDifference() {}

  /** Returns text such as {@code $.comm_groups[0].slots is 1 long on rank 0 and 2 long on rank 2}. */
  static Optional<String> first(String aName, CommManifest a, String bName, CommManifest b) {
    Map<String, Object> other = byPosition(b);
    return byPosition(a).entrySet().stream()
        .filter(e -> other.containsKey(e.getKey()) && !e.getValue().equals(other.get(e.getKey())))
        .findFirst()
        .map(
            e ->
                e.getKey() + " is " + e.getValue() + " on " + aName + " and "
                    + other.get(e.getKey()) + " on " + bName);
  }

  /** Returns what stands at each JSON position. The length of a list follows its elements. */
  private static Map<String, Object> byPosition(CommManifest manifest) {
    Map<String, Object> values = new LinkedHashMap<>();
    List<CommGroup> groups = manifest.groups();
    for (int g = 0; g < groups.size(); g++) {
      CommGroup group = groups.get(g);
      String at = "$.comm_groups[" + g + "]";
      values.put(at + ".name", group.name().map(ManifestNames::quoted).orElse("missing"));
      values.put(at + ".devices", group.devices());
      for (int s = 0; s < group.slots().size(); s++) {
        values.put(at + ".slots[" + s + "]", text(group.slots().get(s)));
      }
      values.put(at + ".slots", group.slots().size() + " long");
    }
    values.put("$.comm_groups", groups.size() + " long");
    return values;
  }

  private static String text(Slot slot) {
    return ManifestNames.quoted(slot.name()) + " ("
        + (slot.extent() instanceof Slot.Bytes ? slot.bytes() + " bytes" : slot.extent())
        + (slot.loadFromHost() ? ", load_from_host" : "")
        + (slot.storeToHost() ? ", store_to_host" : "") + ")";
  }
}
