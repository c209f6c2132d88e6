// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;
import org.windlass.internal.json.JsonFields;
import org.windlass.internal.json.JsonObject;
import org.windlass.internal.json.JsonText;

/**
 * Represents an index such as {@code model.safetensors.index.json}: the file of the folder that
 * holds each tensor.
 *
 * @param files the file's name for each tensor, in the index's order; {@code /} separates folders
 */
public record SafetensorsIndex(Map<String, String> files) {
  public SafetensorsIndex {
    files = Copies.map(files, "files");
  }

  /** Name of an index that Windlass writes. */
  public static final String NAME = "model.safetensors.index.json";

  private static final String ENDING = ".safetensors.index.json";

  /** Matches the name of a file that is one of several, such as {@code model-00001-of-00003}. */
  static final Pattern OF_SEVERAL =
      Pattern.compile("(?:^|[-_.])([0-9]+)[-_.]of[-_.]([0-9]+)(?![0-9])", Pattern.CASE_INSENSITIVE);

  /**
   * Returns the path of a folder's index: the file named {@link #NAME}, or the only other index.
   * Empty if the folder has none.
   *
   * @throws InvalidArgumentException if there are several indices and none has that name
   */
  static Optional<Path> find(Path folder) throws IOException {
    if (Files.exists(folder.resolve(NAME))) {
      return Optional.of(folder.resolve(NAME));
    }
    List<Path> found;
    try (Stream<Path> files = Files.list(folder)) {
      found = files.filter(file -> file.getFileName().toString().endsWith(ENDING)).sorted().toList();
    }
    if (found.size() > 1) {
      throw new InvalidArgumentException(
          folder + ": holds " + found.get(0).getFileName() + " and " + found.get(1).getFileName()
              + ", and no " + NAME + "; keep only the one to read");
    }
    return found.stream().findFirst();
  }

  /**
   * Returns whether the name of a file shows that it belongs to the same model as the index,
   * although the index does not list the file. For example, it may be the whole model next to
   * {@code model.safetensors.index.json}, or the full model next to the index of a variant, {@code
   * model.fp16.safetensors.index.json}.
   *
   * @param index path of the index
   * @param file name of the file
   */
  static boolean isOfModel(Path index, String file) {
    String name = index.getFileName().toString();
    String model = name.substring(0, name.length() - ENDING.length());
    int variant = model.lastIndexOf('.');
    return file.equals(model + Names.SAFETENSORS)
        || variant >= 0
            && OF_SEVERAL
                .matcher(file)
                .replaceFirst("")
                .equals(model.substring(0, variant) + Names.SAFETENSORS);
  }

  /**
   * Reads an index. Each file that it names must be in its folder or a subfolder, and the path must
   * not leave that folder through a link. The file itself may be a link, because download caches
   * keep the files elsewhere.
   */
  static SafetensorsIndex read(Path path) throws IOException {
    Path folder = path.resolveSibling("");
    Map<String, String> files =
        JsonText.parse(
            path.toString(),
            JsonText.bytesOf(path, FileFault::reading),
            json -> {
              JsonFields fields = new JsonFields(json, "");
              var map = fields.add("weight_map", at -> files(path, json, at));
              fields.add(
                  "metadata",
                  at -> {
                    json.skip();
                    return at;
                  });
              fields.read("the whole");
              return map.get();
            });
    for (String file : files.values().stream().distinct().toList()) {
      Path named = folder.resolve(file);
      if (!Files.exists(named)
          || !named.resolveSibling("").toRealPath().startsWith(folder.toRealPath())) {
        throw new InvalidArgumentException(
            path + ": names " + file + ", which is not in the folder; complete the folder");
      }
    }
    return new SafetensorsIndex(files);
  }

  private static Map<String, String> files(Path path, JsonText json, String at)
      throws IOException {
    Map<String, String> files = new LinkedHashMap<>();
    json.members(
        at,
        name -> {
          String what = at + " " + JsonText.quoted(name);
          String file = json.string(what);
          Names.requireTensor(path.toString(), name);
          Names.nested(path + ": " + what, path.resolveSibling(""), file);
          files.put(name, file);
        });
    return files;
  }

  /**
   * Returns the index as JSON, for tensors with {@code totalBytes} bytes in total.
   *
   * @throws InvalidArgumentException if {@link #read} would not accept the index, because of a
   *     tensor's name, a file's name, or its length
   */
  public byte[] encode(long totalBytes) {
    if (totalBytes < 0) {
      throw new InvalidArgumentException("totalBytes is " + totalBytes + "; it must be 0 or more");
    }
    files.forEach(
        (tensor, file) -> {
          Names.requireTensor(NAME, tensor);
          Names.nested(NAME + ": weight_map " + JsonText.quoted(tensor), Path.of(""), file);
        });
    byte[] bytes =
        JsonObject.lines(
            JsonObject.of(
                "metadata", Map.of("total_size", totalBytes),
                "weight_map", files));
    JsonText.requireReadable(NAME, bytes.length);
    return bytes;
  }
}
