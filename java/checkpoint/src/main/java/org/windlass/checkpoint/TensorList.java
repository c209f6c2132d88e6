// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;
import org.windlass.internal.json.JsonFields;
import org.windlass.internal.json.JsonText;

/** Reads the JSON list of tensors that {@code windlass plan --tensors} plans. */
public final class TensorList {
  /**
   * Largest {@code count}. Each tensor is planned separately, because another replica sends each
   * one.
   */
  private static final int MOST_ALIKE = 1_000_000;

  /**
   * Describes one entry of the list.
   *
   * @param shape the global shape
   * @param from the tensor's own source layout, if it has one
   * @param to the tensor's own target layout, if it has one
   * @param count the number of such tensors
   */
  public record Entry(
      String name,
      List<Long> shape,
      DType dtype,
      Optional<String> from,
      Optional<String> to,
      int count) {

    public Entry {
      Objects.requireNonNull(name, "name");
      shape = Copies.list(shape, "shape");
      Objects.requireNonNull(dtype, "dtype");
      Objects.requireNonNull(from, "from");
      Objects.requireNonNull(to, "to");
    }
  }

  private TensorList() {}

  /**
   * Reads a list.
   *
   * @throws InvalidArgumentException if the file is missing or malformed; the message names the
   *     position of the error
   * @throws org.windlass.error.ResourceException if it cannot be read
   */
  public static List<Entry> read(Path path) {
    Objects.requireNonNull(path, "path");
    List<Entry> entries = new ArrayList<>();
    return JsonText.parse(
        path.toString(),
        JsonText.bytesOf(path, FileFault::reading),
        json -> {
          json.elements("the whole", index -> entries.add(entry(json, "[" + index + "]")));
          return entries;
        });
  }

  private static Entry entry(JsonText json, String at) throws IOException {
    JsonFields fields = new JsonFields(json, at);
    var name = fields.add("name", json::string);
    var shape = fields.add("shape", json::naturals);
    var dtype = fields.add("dtype", key -> json.parsed(key, DType::parse));
    var from = fields.add("from", json::string);
    var to = fields.add("to", json::string);
    var count = fields.add("count", key -> count(json, key));
    fields.read(at);
    return new Entry(
        name.get(), shape.get(), dtype.get(), from.find(), to.find(), count.find().orElse(1));
  }

  private static int count(JsonText json, String at) throws IOException {
    long count = json.natural(at);
    if (count < 1 || count > MOST_ALIKE) {
      throw json.bad(at + ": " + count + " is not in 1 to " + MOST_ALIKE);
    }
    return (int) count;
  }
}
