// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;

/** Names that a checkpoint can hold: its readers refuse others, and so its writers do. */
final class Names {
  /** Stands where a tensor's name would, and holds what is said of the file. */
  static final String METADATA = "__metadata__";

  static final String SAFETENSORS = ".safetensors";

  private Names() {}

  /** Checks a tensor's name; {@code where} begins the complaint. */
  static void requireTensor(String where, String name) {
    requireText(where, "tensor", name);
    if (name.isEmpty()) {
      throw new InvalidArgumentException(where + ": a tensor has an empty name");
    }
    if (name.equals(METADATA)) {
      throw new InvalidArgumentException(where + ": no tensor can have the name " + METADATA);
    }
  }

  /** Checks what is written into a JSON text; {@code where} begins the complaint. */
  static void requireText(String where, String what, String text) {
    if (!JsonText.wellFormed(text)) {
      throw new InvalidArgumentException(
          where + ": " + what + " " + JsonText.quoted(text) + " holds half a surrogate pair");
    }
  }

  /** The file of that name in {@code folder} itself; {@code where} begins the complaint. */
  static Path file(String where, Path folder, String name) {
    return file(where, folder, name, name);
  }

  private static Path file(String where, Path folder, String name, String... parts) {
    boolean plain =
        Stream.of(parts)
            .allMatch(
                part ->
                    !part.isEmpty()
                        && !part.equals(".")
                        && !part.equals("..")
                        && part.chars().noneMatch(c -> c == '/' || c == '\\' || c == 0));
    if (plain) {
      try {
        return folder.resolve(name);
      } catch (InvalidPathException unmappable) {
        plain = false;
      }
    }
    throw new InvalidArgumentException(
        where + ": " + JsonText.quoted(name) + " is not the name of a file in the folder");
  }

  /** {@link #file} for one that holds tensors. */
  static Path safetensors(String where, Path folder, String name) {
    return requireEnding(where, name, file(where, folder, name));
  }

  /** {@link #safetensors} for what an index names, which may lie in folders there. */
  static Path nested(String where, Path folder, String name) {
    return requireEnding(where, name, file(where, folder, name, name.split("/", -1)));
  }

  private static Path requireEnding(String where, String name, Path file) {
    if (!name.endsWith(SAFETENSORS)) {
      throw new InvalidArgumentException(
          where + ": " + JsonText.quoted(name) + " does not end in " + SAFETENSORS);
    }
    return file;
  }
}
