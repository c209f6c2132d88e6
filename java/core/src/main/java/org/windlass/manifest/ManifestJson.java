// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonFields;
import org.windlass.internal.json.JsonObject;
import org.windlass.internal.json.JsonText;

final class ManifestJson {
  private static final String ROOT = "$";

  private final JsonText json;

  private ManifestJson(JsonText json) {
    this.json = json;
  }

  static byte[] write(CommManifest manifest) {
    return JsonObject.lines(
        JsonObject.of(
            "version", CommManifest.VERSION,
            "comm_groups", manifest.groups().stream().map(ManifestJson::json)));
  }

  private static Map<String, Object> json(CommGroup group) {
    return JsonObject.of(
        "name", group.name(),
        "devices", group.devices(),
        "slots", group.slots().stream().map(ManifestJson::json));
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

  static CommManifest read(String where, byte[] bytes) {
    try {
      JsonText.requireReadable(where, bytes.length);
      return JsonText.parse(where, bytes, json -> new ManifestJson(json).manifest());
    } catch (InvalidArgumentException e) {
      String what = e.getMessage().substring(where.length() + ": ".length());
      throw what.startsWith(ROOT)
          ? e
          : new InvalidArgumentException(where + ": " + ROOT + ": " + what, e.getCause());
    }
  }

  private CommManifest manifest() throws IOException {
    JsonFields fields = new JsonFields(json, ROOT);
    var version = fields.add("version", this::version);
    var groups = fields.add("comm_groups", at -> json.list(at, this::group));
    fields.read("the whole");
    version.get();
    List<CommGroup> all = groups.get();
    return checked(ROOT, () -> new CommManifest(all));
  }

  private long version(String at) throws IOException {
    long version = json.natural(at);
    if (version != CommManifest.VERSION) {
      throw json.bad(at + " is " + version + "; this reads " + CommManifest.VERSION);
    }
    return version;
  }

  private CommGroup group(String at) throws IOException {
    JsonFields fields = new JsonFields(json, at);
    var name = fields.add("name", json::string);
    var devices = fields.add("devices", here -> json.list(here, json::integer));
    var slots = fields.add("slots", here -> json.list(here, this::slot));
    fields.read(at);
    List<Integer> members = devices.get();
    List<Slot> all = slots.get();
    return checked(at, () -> new CommGroup(name.find(), members, all));
  }

  private Slot slot(String at) throws IOException {
    JsonFields fields = new JsonFields(json, at);
    var name = fields.add("name", json::string);
    var type = fields.add("dtype", here -> type(at, json.string(here)));
    var size = fields.add("size", json::natural);
    var bits = fields.add("bits_per_element", json::integer);
    var bytes = fields.add("nbytes", json::natural);
    var load = fields.add("load_from_host", json::bool);
    var store = fields.add("store_to_host", json::bool);
    fields.read(at);
    String known = name.get();
    Optional<String> ofElements =
        Stream.of("dtype", "size", "bits_per_element").filter(fields::has).findFirst();
    Slot.Extent extent;
    if (bytes.find().isEmpty()) {
      if (ofElements.isEmpty()) {
        throw json.bad(at + ".nbytes is missing, and so are dtype and size");
      }
      ElementType element = type.get();
      long count = size.get();
      int width = bits.find().orElse(element.bits());
      extent = checked(at, () -> new Slot.Elements(element, count, width));
    } else if (ofElements.isEmpty()) {
      extent = checked(at, () -> new Slot.Bytes(bytes.get()));
    } else {
      throw json.bad(
          at + ".nbytes stands beside " + ofElements.get()
              + "; a slot has dtype and size, or nbytes");
    }
    return checked(
        at,
        () -> new Slot(known, extent, load.find().orElse(false), store.find().orElse(false)));
  }

  private ElementType type(String at, String name) {
    return checked(at, () -> ElementType.parse(name));
  }

  /** Calls a constructor. Adds JSON position {@code at} to the messages of its exceptions. */
  private <T> T checked(String at, Supplier<T> value) {
    try {
      return value.get();
    } catch (InvalidArgumentException e) {
      throw json.bad(at + "." + e.getMessage());
    }
  }

  /** Returns text such as {@code $.comm_groups is 1 long on rank 0 and 2 long on rank 2}. */
  static Optional<String> difference(String aName, CommManifest a, String bName, CommManifest b) {
    Map<String, Object> other = byPosition(b);
    return byPosition(a).entrySet().stream()
        .filter(e -> other.containsKey(e.getKey()) && !e.getValue().equals(other.get(e.getKey())))
        .findFirst()
        .map(
            e ->
                e.getKey() + " is " + e.getValue() + " on " + aName + " and "
                    + other.get(e.getKey()) + " on " + bName);
  }

  /** Returns the value at each JSON position. The length of a list follows its elements. */
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
