// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;
import org.windlass.internal.json.JsonText;

/** Reads the JSON list of tensors that {@code windlass plan --tensors} plans. */
public final class TensorList {
  /** Largest {@code count}. Each tensor is planned separately, because replicas take turns. */
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

  private final JsonText json;
  private final String at;

  private TensorList(JsonText json, String at) {
    this.json = json;
    this.at = at;
  }

  /**
   * Reads a list.
   *
   * @throws InvalidArgumentException if the file is missing or malformed; the message names the
   *     place in it
   * @throws org.windlass.error.ResourceException if it cannot be read
   */
  public static List<Entry> read(Path path) {
    Objects.requireNonNull(path, "path");
    List<Entry> entries = new ArrayList<>();
    JsonText.list(
        path.toString(),
        JsonText.bytesOf(path, InvalidArgumentException::new, FileFault::reading),
        InvalidArgumentException::new,
        (json, index) -> entries.add(new TensorList(json, "[" + index + "]").entry()));
    return entries;
  }

  private Entry entry() throws IOException {
    var fields =
        new Object() {
          @Nullable String name;
          @Nullable List<Long> shape;
          @Nullable DType dtype;
          Optional<String> from = Optional.empty();
          Optional<String> to = Optional.empty();
          int count = 1;
        };
    json.members(
        at,
        key -> {
          String what = at + "." + key;
          switch (key) {
            case "name" -> fields.name = json.string(what);
            case "shape" -> fields.shape = json.naturals(what);
            case "dtype" -> fields.dtype = dtype(what);
            case "from" -> fields.from = Optional.of(json.string(what));
            case "to" -> fields.to = Optional.of(json.string(what));
            case "count" -> fields.count = count(what);
            default -> throw json.bad(what + ": unknown key");
          }
        });
    if (fields.name == null || fields.shape == null || fields.dtype == null) {
      String missing = fields.name == null ? "name" : fields.shape == null ? "shape" : "dtype";
      throw json.bad(at + "." + missing + ": is missing");
    }
    return new Entry(
        fields.name, fields.shape, fields.dtype, fields.from, fields.to, fields.count);
  }

  private DType dtype(String what) throws IOException {
    String text = json.string(what);
    try {
      return DType.parse(text);
    } catch (InvalidArgumentException unknown) {
      throw json.bad(what + ": " + unknown.getMessage());
    }
  }

  private int count(String what) throws IOException {
    long count = json.natural(what);
    if (count < 1 || count > MOST_ALIKE) {
      throw json.bad(what + ": " + count + " is not in 1 to " + MOST_ALIKE);
    }
    return (int) count;
  }
}
