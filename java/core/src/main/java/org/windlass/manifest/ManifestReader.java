// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;

final class ManifestReader {
  private static final String ROOT = "$";

  private final JsonText json;

  private ManifestReader(JsonText json) {
    this.json = json;
  }

  static CommManifest manifest(String where, byte[] bytes) {
    var fields =
        new Object() {
          boolean hasVersion;
          @Nullable List<CommGroup> groups;
        };
    JsonText.Refusal refusal = (message, cause) -> refused(where, message, cause);
    JsonText.requireReadable(where, bytes.length, refusal);
    JsonText.object(
        where,
        bytes,
        refusal,
        (json, key) -> {
          ManifestReader reader = new ManifestReader(json);
          String at = ROOT + "." + key;
          switch (key) {
            case "version" -> {
              long version = json.natural(at);
              if (version != CommManifest.VERSION) {
                throw json.bad(at + " is " + version + "; this reads " + CommManifest.VERSION);
              }
              fields.hasVersion = true;
            }
            case "comm_groups" -> fields.groups = reader.groups(at);
            default -> throw reader.unknown(ROOT, key, "version, comm_groups");
          }
        });
    if (!fields.hasVersion) {
      throw refused(where, where + ": " + ROOT + ".version is missing", null);
    }
    if (fields.groups == null) {
      throw refused(where, where + ": " + ROOT + ".comm_groups is missing", null);
    }
    try {
      return new CommManifest(fields.groups);
    } catch (InvalidArgumentException e) {
      throw refused(where, where + ": " + ROOT + "." + e.getMessage(), null);
    }
  }

  /** Returns the exception for an invalid manifest, with a JSON position in its message. */
  private static InvalidArgumentException refused(
      String where, String message, @Nullable Throwable cause) {
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
          @Nullable List<Integer> devices;
          @Nullable List<Slot> slots;
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
    List<Integer> devices = require(at, "devices", fields.devices);
    List<Slot> slots = require(at, "slots", fields.slots);
    return checked(at, () -> new CommGroup(fields.name, devices, slots));
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
          @Nullable String name;
          @Nullable ElementType type;
          @Nullable Long size;
          @Nullable Long bits;
          @Nullable Long bytes;
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
    String name = require(at, "name", fields.name);
    Slot.Extent extent = extent(at, fields.type, fields.size, fields.bits, fields.bytes);
    return checked(at, () -> new Slot(name, extent, fields.load, fields.store));
  }

  private Slot.Extent extent(
      String at,
      @Nullable ElementType type,
      @Nullable Long size,
      @Nullable Long bits,
      @Nullable Long bytes) {
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
    ElementType known = require(at, "dtype", type);
    long count = require(at, "size", size);
    int width = bits == null ? known.bits() : (int) Math.min(bits, Integer.MAX_VALUE);
    return checked(at, () -> new Slot.Elements(known, count, width));
  }

  private <T> T require(String at, String key, @Nullable T value) {
    if (value == null) {
      throw json.bad(at + "." + key + " is missing");
    }
    return value;
  }

  private RuntimeException unknown(String at, String key, String known) {
    return json.bad(
        at + ": the key " + JsonText.quoted(key) + " is unknown; known are " + known);
  }

  /** Calls a constructor. Adds JSON position {@code at} to the messages of its exceptions. */
  private <T> T checked(String at, Supplier<T> value) {
    try {
      return value.get();
    } catch (InvalidArgumentException e) {
      throw json.bad(at + "." + e.getMessage());
    }
  }
}
