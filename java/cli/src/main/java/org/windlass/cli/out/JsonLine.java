// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.out;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;

/** Writes a JSON object on one line, as {@code --json} prints it. */
public final class JsonLine {
  private static final JsonFactory FACTORY = new JsonFactory();

  private JsonLine() {}

  /** Writes the members of an object. */
  @FunctionalInterface
  public interface Members {
    void write(JsonGenerator json) throws IOException;
  }

  /** Returns the text of an object. */
  public static String of(Members members) {
    StringWriter text = new StringWriter();
    try (JsonGenerator json = FACTORY.createGenerator(text)) {
      json.writeStartObject();
      members.write(json);
      json.writeEndObject();
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
    return text.toString();
  }
}
