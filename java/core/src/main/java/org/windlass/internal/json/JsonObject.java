// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.BaseStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Writes a JSON object in memory, in UTF-8. {@link JsonText} reads one.
 *
 * <p>The object is a map from names to values. A value is null, a number, a boolean, a map, {@link
 * Members}, or the elements of a collection or a stream. Any other value is written as a string of
 * its text. An empty optional adds no member.
 */
public final class JsonObject {
  private static final JsonFactory FACTORY = new JsonFactory();

  private JsonObject() {}

  /** Returns an object with the given members: name, value, name, value, ... */
  public static Map<String, @Nullable Object> of(@Nullable Object... members) {
    Map<String, @Nullable Object> object = new LinkedHashMap<>();
    for (int i = 0; i < members.length; i += 2) {
      object.put((String) members[i], members[i + 1]);
    }
    return object;
  }

  /** Returns a number that is written with {@code places} decimal places and no exponent. */
  public static BigDecimal decimal(double value, int places) {
    return BigDecimal.valueOf(value).setScale(places, RoundingMode.HALF_UP);
  }

  /** Returns the object on one line. */
  public static String line(Map<?, ?> object) {
    return new String(bytes(object), StandardCharsets.UTF_8);
  }

  /** Returns the object on one line, as UTF-8 bytes. */
  public static byte[] bytes(Map<?, ?> object) {
    return bytes(false, object);
  }

  /** Returns the object as indented lines for people, as UTF-8 bytes. */
  public static byte[] lines(Map<?, ?> object) {
    return bytes(true, object);
  }

  private static byte[] bytes(boolean isForPeople, Map<?, ?> object) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try {
      write(out, isForPeople, object.entrySet().stream());
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
    return out.toByteArray();
  }

  /** Represents an object whose members are made one after another, as they are written. */
  public record Members(Stream<? extends Map.Entry<?, ?>> entries) {}

  /**
   * Writes an object with these members as UTF-8, and closes {@code out}.
   *
   * @param isForPeople whether to write indented lines instead of one line
   * @return the number of bytes
   */
  public static long write(
      OutputStream out, boolean isForPeople, Stream<? extends Map.Entry<?, ?>> members)
      throws IOException {
    Counted counted = new Counted(out);
    try (JsonGenerator json = FACTORY.createGenerator(counted)) {
      if (isForPeople) {
        json.useDefaultPrettyPrinter();
      }
      writeMembers(json, members.iterator());
    }
    return counted.bytes;
  }

  private static final class Counted extends FilterOutputStream {
    private long bytes;

    Counted(OutputStream out) {
      super(out);
    }

    @Override
    public void write(byte[] from, int first, int count) throws IOException {
      out.write(from, first, count);
      bytes += count;
    }
  }

  private static void writeMembers(
      JsonGenerator json, Iterator<? extends Map.Entry<?, ?>> members) throws IOException {
    json.writeStartObject();
    while (members.hasNext()) {
      Map.Entry<?, ?> member = members.next();
      if (!Optional.empty().equals(member.getValue())) {
        json.writeFieldName(member.getKey().toString());
        write(json, member.getValue());
      }
    }
    json.writeEndObject();
  }

  private static void write(JsonGenerator json, @Nullable Object value) throws IOException {
    if (value instanceof Map<?, ?> object) {
      writeMembers(json, object.entrySet().iterator());
    } else if (value instanceof Members made) {
      writeMembers(json, made.entries().iterator());
    } else if (value instanceof Iterable<?> elements) {
      writeElements(json, elements.iterator());
    } else if (value instanceof BaseStream<?, ?> stream) {
      writeElements(json, stream.iterator());
    } else if (value instanceof Optional<?> present) {
      write(json, present.orElse(null));
    } else if (value == null || value instanceof Number || value instanceof Boolean) {
      json.writeObject(value);
    } else {
      json.writeString(value.toString());
    }
  }

  private static void writeElements(JsonGenerator json, Iterator<?> elements) throws IOException {
    json.writeStartArray();
    while (elements.hasNext()) {
      write(json, elements.next());
    }
    json.writeEndArray();
  }
}
