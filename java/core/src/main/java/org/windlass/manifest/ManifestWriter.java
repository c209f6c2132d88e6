// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import org.windlass.internal.json.JsonObject;

/** Writes a {@link CommManifest} as JSON. */
final class ManifestWriter {
  private ManifestWriter() {}

  static byte[] json(CommManifest manifest) {
    return JsonObject.lines(
        json -> {
          json.writeNumberField("version", CommManifest.VERSION);
          json.writeArrayFieldStart("comm_groups");
          for (CommGroup group : manifest.groups()) {
            write(group, json);
          }
          json.writeEndArray();
        });
  }

  private static void write(CommGroup group, JsonGenerator json) throws IOException {
    json.writeStartObject();
    if (group.name().isPresent()) {
      json.writeStringField("name", group.name().get());
    }
    json.writeArrayFieldStart("devices");
    for (int device : group.devices()) {
      json.writeNumber(device);
    }
    json.writeEndArray();
    json.writeArrayFieldStart("slots");
    for (Slot slot : group.slots()) {
      write(slot, json);
    }
    json.writeEndArray();
    json.writeEndObject();
  }

  private static void write(Slot slot, JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeStringField("name", slot.name());
    if (slot.extent() instanceof Slot.Elements elements) {
      json.writeStringField("dtype", elements.type().toString());
      json.writeNumberField("size", elements.size());
      json.writeNumberField("bits_per_element", elements.bitsPerElement());
    } else {
      json.writeNumberField("nbytes", slot.bytes());
    }
    json.writeBooleanField("load_from_host", slot.loadFromHost());
    json.writeBooleanField("store_to_host", slot.storeToHost());
    json.writeEndObject();
  }
}
