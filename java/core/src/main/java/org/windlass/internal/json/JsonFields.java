// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.json;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Reads a JSON object by a table of its fields. Add the fields, call {@link #read}, then get the
 * values. A key that is not in the table is an error.
 */
public final class JsonFields {
  private final JsonText json;
  private final String at;
  private final Map<String, Field<?>> fields = new LinkedHashMap<>();

  /**
   * Creates an empty table.
   *
   * @param at position of the object in the text, for messages; empty for the outermost object
   */
  public JsonFields(JsonText json, String at) {
    this.json = json;
    this.at = at;
  }

  /** A field of the object. It has a value if the object was read and had the field's key. */
  public final class Field<T> {
    private final String name;
    private final JsonText.Value<T> reader;
    private @Nullable T value;

    private Field(String name, JsonText.Value<T> reader) {
      this.name = name;
      this.reader = reader;
    }

    private void read() throws IOException {
      value = reader.read(name);
    }

    /** Returns the value; empty if the object lacks the key. */
    public Optional<T> find() {
      return Optional.ofNullable(value);
    }

    /** Returns the value. Throws if the object lacks the key. */
    public T get() {
      return get("");
    }

    /** Returns the value. Throws if the object lacks the key; {@code hint} ends the message. */
    public T get(String hint) {
      return find().orElseThrow(() -> json.bad(name + " is missing" + hint));
    }
  }

  /**
   * Adds a field to the table. {@code reader} reads the value, and gets its position for messages.
   */
  public <T> Field<T> add(String key, JsonText.Value<T> reader) {
    Field<T> field = new Field<>(at.isEmpty() ? key : at + "." + key, reader);
    fields.put(key, field);
    return field;
  }

  /** Returns true if the object has this key, which is in the table. */
  public boolean has(String key) {
    return Objects.requireNonNull(fields.get(key)).find().isPresent();
  }

  /** Returns the keys that the object has, in the order of the table. */
  public List<String> keys() {
    return fields.keySet().stream().filter(this::has).toList();
  }

  /** Reads the object at the parser. Messages call it {@code what}. */
  public void read(String what) throws IOException {
    json.members(
        what,
        key -> {
          Field<?> field = fields.get(key);
          if (field == null) {
            throw json.bad(
                (at.isEmpty() ? "" : at + ": ") + "the key " + JsonText.quoted(key)
                    + " is unknown; known are " + String.join(", ", fields.keySet()));
          }
          field.read();
        });
  }
}
