// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** Writes a JSON object in memory, in UTF-8. {@link JsonText} reads one. */
public final class JsonObject {
  private static final JsonFactory FACTORY = new JsonFactory();

  private JsonObject() {}

  /** Writes the members of an object. */
  @FunctionalInterface
  public interface Members {
    void write(JsonGenerator json) throws IOException;
  }

  /** Returns the object on one line. */
  public static String line(Members members) {
    return new String(bytes(members), StandardCharsets.UTF_8);
  }

  /** Returns the object on one line, as UTF-8 bytes. */
  public static byte[] bytes(Members members) {
    return bytes(false, members);
  }

  /** Returns the object as indented lines for people, as UTF-8 bytes. */
  public static byte[] lines(Members members) {
    return bytes(true, members);
  }

  private static byte[] bytes(boolean isForPeople, Members members) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try {
      write(out, isForPeople, members);
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
    return out.toByteArray();
  }

  /** Writes the object on one line, as UTF-8, to a stream, and closes the stream. */
  public static void write(OutputStream out, Members members) throws IOException {
    write(out, false, members);
  }

  private static void write(OutputStream out, boolean isForPeople, Members members)
      throws IOException {
    try (JsonGenerator json = FACTORY.createGenerator(out)) {
      if (isForPeople) {
        json.useDefaultPrettyPrinter();
      }
      json.writeStartObject();
      members.write(json);
      json.writeEndObject();
    }
  }
}
