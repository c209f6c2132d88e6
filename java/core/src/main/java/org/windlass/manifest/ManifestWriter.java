// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.Map;
import org.windlass.internal.json.JsonObject;

final class ManifestWriter {
  private ManifestWriter() {}

  static byte[] json(CommManifest manifest) {
    return JsonObject.lines(
        JsonObject.of(
            "version", CommManifest.VERSION,
            "comm_groups", manifest.groups().stream().map(ManifestWriter::json)));
  }

  private static Map<String, Object> json(CommGroup group) {
    return JsonObject.of(
        "name", group.name(),
        "devices", group.devices(),
        "slots", group.slots().stream().map(ManifestWriter::json));
  }

  private static Map<String, Object> json(Slot slot) {
    Map<String, Object> json = JsonObject.of("name", slot.name());
    if (slot.extent() instanceof Slot.Elements elements) {
      json.put("dtype", elements.type());
      json.put("size", elements.size());
      json.put("bits_per_element", elements.bitsPerElement());
    } else {
      json.put("nbytes", slot.bytes());
    }
    json.put("load_from_host", slot.loadFromHost());
    json.put("store_to_host", slot.storeToHost());
    return json;
  }
}
