// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Layout;
import org.windlass.internal.JsonText;

/** The file that {@code plan --tensors} takes: a JSON list of tensors. */
public final class TensorList {
  /** Each of them is planned, since replicas take turns. */
  private static final int MOST_ALIKE = 1_000_000;

  /**
   * One entry of the list.
   *
   * @param name the tensor's name
   * @param shape the global shape
   * @param dtype its dtype
   * @param from its own source layout, if it has one
   * @param to its own target layout, if it has one
   * @param count how many such tensors there are
   */
  public record Entry(
      String name,
      List<Long> shape,
      DType dtype,
      Optional<String> from,
      Optional<String> to,
      int count) {

    /**
     * The tensor to plan. A default layout's shard of a dimension that the tensor lacks acts as R;
     * a layout of its own must fit.
     *
     * @param defaultFrom the source layout where the entry has none
     * @param defaultTo the target layout where the entry has none
     * @param wire the dtype in which it crosses ranks
     */
    public PlannedTensor planned(
        Optional<String> defaultFrom, Optional<String> defaultTo, DType wire) {
      Layout source = Layout.parse(layout("from", from, defaultFrom));
      Layout target = Layout.parseTarget(layout("to", to, defaultTo), source);
      long[] dims = shape.stream().mapToLong(Long::longValue).toArray();
      return new PlannedTensor(
          name,
          dims,
          dtype,
          wire,
          from.isPresent() ? source : source.defaultedFor(dims.length),
          to.isPresent() ? target : target.defaultedFor(dims.length),
          count);
    }

    private String layout(String which, Optional<String> own, Optional<String> other) {
      return own.or(() -> other)
          .orElseThrow(
              () ->
                  new InvalidArgumentException(
                      "tensor '" + name + "': has no " + which + ", and --" + which + " is missing"));
    }
  }

  private final JsonText json;
  private final String at;

  private TensorList(JsonText json, String at) {
    this.json = json;
    this.at = at;
  }

  /** Reads a list. */
  public static List<Entry> read(Path path) {
    List<Entry> entries = new ArrayList<>();
    JsonText.list(
        path.toString(),
        JsonText.bytesOf(path),
        (json, index) -> entries.add(new TensorList(json, "[" + index + "]").entry()));
    return entries;
  }

  private Entry entry() throws IOException {
    var fields =
        new Object() {
          String name;
          List<Long> shape;
          DType dtype;
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
