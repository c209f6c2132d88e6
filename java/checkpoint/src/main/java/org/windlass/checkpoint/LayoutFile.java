// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;
import org.windlass.internal.Native;
import org.windlass.internal.json.JsonFields;
import org.windlass.internal.json.JsonObject;
import org.windlass.internal.json.JsonText;
import org.windlass.layout.Layout;

/**
 * Represents {@code layout.json}, which describes the whole tensors of a folder of rank files.
 *
 * @param tensors one entry for each tensor that the file lists, in the file's order
 */
public record LayoutFile(Map<String, Entry> tensors) {
  public LayoutFile {
    tensors = Copies.map(tensors, "tensors");
  }

  /** Name of the file. */
  public static final String NAME = "layout.json";

  /**
   * Describes one tensor.
   *
   * @param shape the global shape
   * @param dtype the dtype, if the file gives it
   * @param layout the layout, if the file gives it
   * @param parts the cut of a tensor that ranks hold in parts; such a tensor has no layout
   * @param padded the extents that the layout cuts, if zeros are appended up to them
   */
  public record Entry(
      List<Long> shape,
      Optional<DType> dtype,
      Optional<Layout> layout,
      Optional<Parts> parts,
      Optional<List<Long>> padded) {
    public Entry {
      shape = Copies.list(shape, "shape");
      Objects.requireNonNull(dtype, "dtype");
      Objects.requireNonNull(layout, "layout");
      Objects.requireNonNull(parts, "parts");
      padded = Objects.requireNonNull(padded, "padded").map(extents -> Copies.list(extents, "padded"));
      for (int d = 0; d < shape.size(); d++) {
        if (shape.get(d) < 0) {
          throw new InvalidArgumentException(
              "shape[" + d + "] is " + shape.get(d) + "; it must be 0 or more");
        }
      }
      if (parts.isPresent()) {
        parts.get().check(shape);
        if (layout.isPresent()) {
          throw new InvalidArgumentException(
              "layout is " + layout.get() + " and there are parts, which have a layout of their own");
        }
      }
      List<Long> most = padded.orElse(shape);
      if (padded.isPresent() && parts.isPresent()) {
        throw new InvalidArgumentException(
            "padded is " + most + " and there are parts, which are not padded");
      }
      if (most.size() != shape.size()) {
        throw new InvalidArgumentException(
            "padded is " + most + ", which has another number of dimensions than shape " + shape);
      }
      boolean fits = true;
      for (int d = 0; d < shape.size() && fits; d++) {
        fits = most.get(d) >= shape.get(d);
      }
      if (!fits) {
        throw new InvalidArgumentException(
            "padded is " + most + ", which is smaller than shape " + shape);
      }
    }

    /** Creates the entry of a tensor that is not in parts. */
    public Entry(List<Long> shape, Optional<DType> dtype, Optional<Layout> layout) {
      this(shape, dtype, layout, Optional.empty(), Optional.empty());
    }
  }

  /**
   * Describes the cut of a tensor that is fused from parts with unequal extents or layouts. A
   * layout cuts each part separately. A rank's tensor is its piece of the first part, then its
   * piece of the second, and so on. No layout of the whole tensor describes such a cut.
   *
   * @param dim the dimension along which the parts lie one after another
   * @param extents each part's extent of that dimension
   * @param layouts each part's layout; all are on the same ranks
   */
  public record Parts(int dim, List<Long> extents, List<Layout> layouts) {
    public Parts {
      if (dim < 0 || dim >= Native.WL_MAX_DIMS) {
        throw new InvalidArgumentException(
            "dim is " + dim + ", not 0 to " + (Native.WL_MAX_DIMS - 1));
      }
      extents = Copies.list(extents, "extents");
      layouts = Copies.list(layouts, "layouts");
      if (layouts.size() != extents.size()) {
        throw new InvalidArgumentException(
            "there are " + extents.size() + " extents and " + layouts.size() + " layouts");
      }
      for (Layout each : layouts) {
        if (!Set.copyOf(each.mesh().ranks()).equals(Set.copyOf(layouts.get(0).mesh().ranks()))) {
          throw new InvalidArgumentException(
              layouts.get(0) + " and " + each + " are not on the same ranks");
        }
      }
    }

    private void check(List<Long> shape) {
      if (dim < 0 || dim >= shape.size()) {
        throw new InvalidArgumentException(
            "parts: dim is " + dim + ", and the shape " + shape + " has " + shape.size()
                + " dimensions");
      }
      long rest = shape.get(dim);
      boolean fit = !extents.isEmpty();
      for (long extent : extents) {
        fit &= extent >= 0 && extent <= rest;
        rest -= extent;
      }
      if (!fit || rest != 0) {
        throw new InvalidArgumentException(
            "parts: extents " + extents + " do not add up to " + shape.get(dim)
                + ", the extent of dimension " + dim);
      }
    }
  }

  static LayoutFile read(Path path) {
    return parse(path.toString(), JsonText.bytesOf(path, FileFault::reading));
  }

  /**
   * Parses and checks the JSON of such a file.
   *
   * @param where name of the file, with which every message begins
   * @throws InvalidArgumentException if the JSON is malformed
   */
  public static LayoutFile parse(String where, byte[] bytes) {
    Objects.requireNonNull(where, "where");
    Objects.requireNonNull(bytes, "bytes");
    return JsonText.parse(
        where,
        bytes,
        json -> {
          JsonFields fields = new JsonFields(json, "");
          var version = fields.add("version", at -> version(json, at));
          var tensors = fields.add("tensors", at -> entries(where, json, at));
          fields.read("the whole");
          version.get();
          return new LayoutFile(tensors.get());
        });
  }

  private static long version(JsonText json, String at) throws IOException {
    long version = json.natural(at);
    if (version != 1) {
      throw json.bad(at + " is " + version + "; only 1 is known");
    }
    return version;
  }

  private static Map<String, Entry> entries(String where, JsonText json, String at)
      throws IOException {
    Map<String, Entry> entries = new LinkedHashMap<>();
    json.members(
        at,
        name -> {
          Names.requireTensor(where, name);
          entries.put(name, entry(json, "tensor " + JsonText.quoted(name)));
        });
    return entries;
  }

  private static Entry entry(JsonText json, String at) throws IOException {
    JsonFields fields = new JsonFields(json, at);
    var shape = fields.add("shape", json::naturals);
    var dtype = fields.add("dtype", key -> json.parsed(key, DType::parse));
    var layout = fields.add("layout", key -> json.parsed(key, Layout::parse));
    var parts = fields.add("parts", key -> parts(json, key));
    var padded = fields.add("padded", json::naturals);
    fields.read(at);
    List<Long> extents = shape.get();
    return json.checked(
        at,
        () -> new Entry(extents, dtype.find(), layout.find(), parts.find(), padded.find()));
  }

  private static Parts parts(JsonText json, String at) throws IOException {
    JsonFields fields = new JsonFields(json, at);
    var dim = fields.add("dim", json::integer);
    var extents = fields.add("extents", json::naturals);
    JsonText.Value<Layout> one = key -> json.parsed(key, Layout::parse);
    var layouts =
        fields.add(
            "layout", key -> json.isList() ? json.list(key, one) : List.of(one.read(key)));
    fields.read(at);
    int count = extents.get().size();
    List<Layout> each = layouts.get();
    int along = dim.get();
    return json.checked(
        at,
        () ->
            new Parts(
                along,
                extents.get(),
                each.size() == 1 ? Collections.nCopies(count, each.get(0)) : each));
  }

  /**
   * Returns the file's bytes.
   *
   * @throws InvalidArgumentException if {@link #parse} would not accept them, because of a tensor's
   *     name or the number of tensors
   */
  public byte[] encode() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try {
      write(out, tensors.entrySet().stream());
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
    return out.toByteArray();
  }

  /**
   * Writes a file with these entries, one after another, and closes {@code out}. Throws as {@link
   * #encode} does.
   *
   * @hidden
   */
  public static void write(OutputStream out, Stream<Map.Entry<String, Entry>> tensors)
      throws IOException {
    Stream<Map.Entry<String, ?>> written =
        tensors.map(tensor -> Map.entry(tensor.getKey(), json(tensor.getKey(), tensor.getValue())));
    Map<String, ?> file =
        JsonObject.of("version", 1, "tensors", new JsonObject.Members(written));
    long bytes = JsonObject.write(out, true, file.entrySet().stream());
    JsonText.requireReadable(NAME, bytes);
  }

  private static Map<String, ?> json(String name, Entry entry) {
    Names.requireTensor(NAME, name);
    return JsonObject.of(
        "shape", entry.shape(),
        "dtype", entry.dtype().map(DType::safetensorsName),
        "layout", entry.layout(),
        "parts", entry.parts().map(LayoutFile::json),
        "padded", entry.padded());
  }

  private static Map<String, Object> json(Parts parts) {
    return JsonObject.of(
        "dim", parts.dim(),
        "extents", parts.extents(),
        "layout",
            Set.copyOf(parts.layouts()).size() == 1 ? parts.layouts().get(0) : parts.layouts());
  }
}
