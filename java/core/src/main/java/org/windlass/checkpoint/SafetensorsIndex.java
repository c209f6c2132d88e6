// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.windlass.InvalidArgumentException;
import org.windlass.internal.JsonText;

/**
 * {@code model.safetensors.index.json}: which file of the folder holds which tensor.
 *
 * @param files the file's name for each tensor, in the index's order
 */
public record SafetensorsIndex(Map<String, String> files) {
  /** The index's own name. */
  public static final String NAME = "model.safetensors.index.json";

  /**
   * Reads the index of a folder. Every file it names stands in that folder, if need be as a link: a
   * download cache keeps the files themselves elsewhere.
   */
  static SafetensorsIndex read(Path folder) throws IOException {
    Path path = folder.resolve(NAME);
    Map<String, String> files = new LinkedHashMap<>();
    boolean[] found = {false};
    JsonText.object(
        path.toString(),
        JsonText.bytesOf(path),
        (json, key) -> {
          switch (key) {
            case "weight_map" -> {
              found[0] = true;
              json.members(
                  key,
                  name -> {
                    String what = "weight_map " + JsonText.quoted(name);
                    String file = json.string(what);
                    checkName(json, what, file);
                    files.put(name, file);
                  });
            }
            case "metadata" -> json.skip();
            default -> throw json.bad("unknown key " + JsonText.quoted(key));
          }
        });
    if (!found[0]) {
      throw new InvalidArgumentException(path + ": weight_map is missing");
    }
    for (String file : files.values().stream().distinct().toList()) {
      if (!Files.exists(folder.resolve(file))) {
        throw new InvalidArgumentException(path + ": names " + file + ", which is not in the folder");
      }
    }
    return new SafetensorsIndex(files);
  }

  private static void checkName(JsonText json, String what, String file) {
    if (file.isEmpty()
        || file.equals(".")
        || file.equals("..")
        || file.indexOf('/') >= 0
        || file.indexOf('\\') >= 0
        || file.indexOf('\0') >= 0) {
      throw json.bad(what + ": " + JsonText.quoted(file) + " is not the name of a file in the folder");
    }
    if (!file.endsWith(".safetensors")) {
      throw json.bad(what + ": " + JsonText.quoted(file) + " does not end in .safetensors");
    }
  }

  /** The index as JSON, for tensors of {@code totalBytes} bytes in all. */
  public byte[] encode(long totalBytes) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (JsonGenerator json = new JsonFactory().createGenerator(out).useDefaultPrettyPrinter()) {
      json.writeStartObject();
      json.writeObjectFieldStart("metadata");
      json.writeNumberField("total_size", totalBytes);
      json.writeEndObject();
      json.writeObjectFieldStart("weight_map");
      for (Map.Entry<String, String> entry : files.entrySet()) {
        json.writeStringField(entry.getKey(), entry.getValue());
      }
      json.writeEndObject();
      json.writeEndObject();
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
    return out.toByteArray();
  }
}
