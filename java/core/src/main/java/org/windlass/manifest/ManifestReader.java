// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;

/** Parses a {@link CommManifest}. Errors name the position in the JSON. */
final class ManifestReader {
  /** JSONPath of the whole text. */
  private static final String ROOT = "$";

  private final String where;
  private JsonText json;

  ManifestReader(String where) {
    this.where = where;
  }

  CommManifest manifest(byte[] bytes) {
    var fields =
        new Object() {
          boolean hasVersion;
          List<CommGroup> groups;
        };
    JsonText.requireReadable(where, bytes.length, this::refused);
    JsonText.object(
        where,
        bytes,
        this::refused,
        (text, key) -> {
          json = text;
          String at = ROOT + "." + key;
          switch (key) {
            case "version" -> {
              long version = json.natural(at);
              if (version != CommManifest.VERSION) {
                throw json.bad(at + " is " + version + "; this reads " + CommManifest.VERSION);
              }
              fields.hasVersion = true;
            }
            case "comm_groups" -> fields.groups = groups(at);
            default -> throw unknown(ROOT, key, "version, comm_groups");
          }
        });
    if (!fields.hasVersion) {
      throw refused(where + ": " + ROOT + ".version is missing", null);
    }
    if (fields.groups == null) {
      throw refused(where + ": " + ROOT + ".comm_groups is missing", null);
    }
    try {
      return new CommManifest(fields.groups);
    } catch (InvalidArgumentException e) {
      throw refused(where + ": " + ROOT + "." + e.getMessage(), null);
    }
  }

  /**
   * Returns the exception for an invalid manifest. The message has a JSON position; without one in
   * {@code message}, it is {@link #ROOT}.
   */
  private InvalidArgumentException refused(String message, Throwable cause) {
    String what = message.substring(where.length() + ": ".length());
    return new InvalidArgumentException(
        what.startsWith(ROOT) ? message : where + ": " + ROOT + ": " + what, cause);
  }

  private List<CommGroup> groups(String at) throws IOException {
    List<CommGroup> groups = new ArrayList<>();
    json.elements(at, i -> groups.add(group(at + "[" + i + "]")));
    return groups;
  }

  private CommGroup group(String at) throws IOException {
    var fields =
        new Object() {
          Optional<String> name = Optional.empty();
          List<Integer> devices;
          List<Slot> slots;
        };
    json.members(
        at,
        key -> {
          String here = at + "." + key;
          switch (key) {
            case "name" -> fields.name = Optional.of(json.string(here));
            case "devices" -> fields.devices = devices(here);
            case "slots" -> fields.slots = slots(here);
            default -> throw unknown(at, key, "name, devices, slots");
          }
        });
    require(at, "devices", fields.devices);
    require(at, "slots", fields.slots);
    return checked(at, () -> new CommGroup(fields.name, fields.devices, fields.slots));
  }

  private List<Integer> devices(String at) throws IOException {
    List<Integer> devices = new ArrayList<>();
    json.elements(
        at,
        i -> {
          String here = at + "[" + i + "]";
          long device = json.natural(here);
          if (device > Integer.MAX_VALUE) {
            throw json.bad(here + " is " + device + ", which no device is");
          }
          devices.add((int) device);
        });
    return devices;
  }

  private List<Slot> slots(String at) throws IOException {
    List<Slot> slots = new ArrayList<>();
    json.elements(at, i -> slots.add(slot(at + "[" + i + "]")));
    return slots;
  }

  private Slot slot(String at) throws IOException {
    var fields =
        new Object() {
          String name;
          ElementType type;
          Long size;
          Long bits;
          Long bytes;
          boolean load;
          boolean store;
        };
    json.members(
        at,
        key -> {
          String here = at + "." + key;
          switch (key) {
            case "name" -> fields.name = json.string(here);
            case "dtype" -> {
              String name = json.string(here);
              fields.type = checked(at, () -> ElementType.parse(name));
            }
            case "size" -> fields.size = json.natural(here);
            case "bits_per_element" -> fields.bits = json.natural(here);
            case "nbytes" -> fields.bytes = json.natural(here);
            case "load_from_host" -> fields.load = json.bool(here);
            case "store_to_host" -> fields.store = json.bool(here);
            default ->
                throw unknown(
                    at,
                    key,
                    "name, dtype, size, bits_per_element, nbytes, load_from_host, store_to_host");
          }
        });
    require(at, "name", fields.name);
    Slot.Extent extent = extent(at, fields.type, fields.size, fields.bits, fields.bytes);
    return checked(at, () -> new Slot(fields.name, extent, fields.load, fields.store));
  }

  private Slot.Extent extent(String at, ElementType type, Long size, Long bits, Long bytes) {
    if (bytes != null) {
      if (type != null || size != null || bits != null) {
        throw json.bad(
            at + ".nbytes stands beside " + (type != null ? "dtype" : size != null ? "size" : "bits_per_element")
                + "; a slot has dtype and size, or nbytes");
      }
      return checked(at, () -> new Slot.Bytes(bytes));
    }
    if (type == null && size == null && bits == null) {
      throw json.bad(at + ".nbytes is missing, and so are dtype and size");
    }
    require(at, "dtype", type);
    require(at, "size", size);
    int width = bits == null ? type.bits() : (int) Math.min(bits, Integer.MAX_VALUE);
    return checked(at, () -> new Slot.Elements(type, size, width));
  }

  private void require(String at, String key, Object value) {
    if (value == null) {
      throw json.bad(at + "." + key + " is missing");
    }
  }

  private RuntimeException unknown(String at, String key, String known) {
    return json.bad(
        at + ": the key " + JsonText.quoted(key) + " is unknown; known are " + known);
  }

  /** Calls a constructor. Adds the JSON position {@code at} to the message of its exception. */
  private <T> T checked(String at, Supplier<T> value) {
    try {
      return value.get();
    } catch (InvalidArgumentException e) {
      throw json.bad(at + "." + e.getMessage());
    }
  }
}
