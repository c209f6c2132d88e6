// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;

/** Checks the names that checkpoints contain. Each message begins with {@code where}. */
final class Names {
  /** Key of the metadata in a header. No tensor may have this name. */
  static final String METADATA = "__metadata__";

  static final String SAFETENSORS = ".safetensors";

  private Names() {}

  static void requireTensor(String where, String name) {
    requireText(where, "tensor", name);
    if (name.isEmpty()) {
      throw new InvalidArgumentException(where + ": a tensor has an empty name");
    }
    if (name.equals(METADATA)) {
      throw new InvalidArgumentException(where + ": no tensor can have the name " + METADATA);
    }
  }

  /** Throws InvalidArgument for a text that UTF-8 can't hold, such as an unpaired surrogate. */
  static void requireText(String where, String what, String text) {
    if (!JsonText.wellFormed(text)) {
      throw new InvalidArgumentException(
          where + ": " + what + " " + JsonText.quoted(text) + " contains an unpaired surrogate");
    }
  }

  /** Returns the path of a file. Throws InvalidArgument if it is not in {@code folder} itself. */
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

  static Path safetensors(String where, Path folder, String name) {
    return requireEnding(where, name, file(where, folder, name));
  }

  /** Returns the path of a safetensors file that an index names. A subfolder is allowed. */
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
