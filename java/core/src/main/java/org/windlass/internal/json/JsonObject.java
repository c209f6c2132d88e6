// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** A JSON object that is written in memory, in UTF-8; {@link JsonText} reads one. */
public final class JsonObject {
  private static final JsonFactory FACTORY = new JsonFactory();

  private JsonObject() {}

  /** What stands in an object. */
  @FunctionalInterface
  public interface Members {
    void write(JsonGenerator json) throws IOException;
  }

  /** On one line. */
  public static String line(Members members) {
    return new String(bytes(members), StandardCharsets.UTF_8);
  }

  /** The same as bytes. */
  public static byte[] bytes(Members members) {
    return bytes(false, members);
  }

  /** On lines for people. */
  public static byte[] lines(Members members) {
    return bytes(true, members);
  }

  private static byte[] bytes(boolean isForPeople, Members members) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (JsonGenerator json = FACTORY.createGenerator(out)) {
      if (isForPeople) {
        json.useDefaultPrettyPrinter();
      }
      json.writeStartObject();
      members.write(json);
      json.writeEndObject();
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
    return out.toByteArray();
  }
}
