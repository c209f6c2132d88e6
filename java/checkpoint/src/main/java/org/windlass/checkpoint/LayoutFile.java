// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;
import org.windlass.internal.Native;
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
   * @param parts how the tensor is cut if its ranks hold it in parts; it then has no layout
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
      boolean fits = most.size() == shape.size() && (padded.isEmpty() || parts.isEmpty());
      for (int d = 0; d < shape.size() && fits; d++) {
        fits = most.get(d) >= shape.get(d);
      }
      if (!fits) {
        throw new InvalidArgumentException(
            "padded is " + most + ", which does not hold the shape " + shape
                + ", or stands beside parts, which are not padded");
      }
    }

    /** Creates the entry of a tensor that is not in parts. */
    public Entry(List<Long> shape, Optional<DType> dtype, Optional<Layout> layout) {
      this(shape, dtype, layout, Optional.empty(), Optional.empty());
    }
  }

  /**
   * Describes the cut of a tensor that is fused of parts with unequal extents or layouts. A layout
   * cuts each part separately. A rank's tensor is its piece of the first part, then its piece of the
   * second, and so on. No layout of the whole tensor describes such a cut.
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
    return parse(
        path.toString(), JsonText.bytesOf(path, InvalidArgumentException::new, FileFault::reading));
  }

  /**
   * Parses and checks the JSON of such a file.
   *
   * @param where name of the file, which begins every message
   * @throws InvalidArgumentException if the JSON is malformed
   */
  public static LayoutFile parse(String where, byte[] bytes) {
    Objects.requireNonNull(where, "where");
    Objects.requireNonNull(bytes, "bytes");
    Map<String, Entry> tensors = new LinkedHashMap<>();
    boolean[] found = new boolean[2];
    JsonText.object(
        where,
        bytes,
        InvalidArgumentException::new,
        (json, key) -> {
          switch (key) {
            case "version" -> {
              found[0] = true;
              long version = json.natural("version");
              if (version != 1) {
                throw json.bad("version is " + version + "; only 1 is known");
              }
            }
            case "tensors" -> {
              found[1] = true;
              json.members("tensors", name -> tensors.put(name, entry(where, json, name)));
            }
            default -> throw json.bad("unknown key " + JsonText.quoted(key));
          }
        });
    if (!found[0] || !found[1]) {
      throw new InvalidArgumentException(
          where + ": " + (found[0] ? "tensors" : "version") + " is missing");
    }
    return new LayoutFile(tensors);
  }

  private static Entry entry(String where, JsonText json, String name) throws IOException {
    Names.requireTensor(where, name);
    String what = "tensor " + JsonText.quoted(name);
    var fields =
        new Object() {
          @Nullable List<Long> shape;
          @Nullable DType dtype;
          @Nullable Layout layout;
          @Nullable Parts parts;
          @Nullable List<Long> padded;
        };
    json.members(
        what,
        key -> {
          switch (key) {
            case "shape" -> fields.shape = json.naturals(what + ": shape");
            case "dtype" -> {
              String text = json.string(what + ": dtype");
              try {
                fields.dtype = DType.parse(text);
              } catch (InvalidArgumentException unknown) {
                throw json.bad(what + ": dtype: " + unknown.getMessage());
              }
            }
            case "layout" -> fields.layout = layout(json, what + ": layout");
            case "parts" -> fields.parts = parts(json, what + ": parts");
            case "padded" -> fields.padded = json.naturals(what + ": padded");
            default -> throw json.bad(what + ": unknown key " + JsonText.quoted(key));
          }
        });
    if (fields.shape == null) {
      throw json.bad(what + ": shape is missing");
    }
    try {
      return new Entry(
          fields.shape,
          Optional.ofNullable(fields.dtype),
          Optional.ofNullable(fields.layout),
          Optional.ofNullable(fields.parts),
          Optional.ofNullable(fields.padded));
    } catch (InvalidArgumentException unfit) {
      throw json.bad(what + ": " + unfit.getMessage());
    }
  }

  private static Layout layout(JsonText json, String what) throws IOException {
    String text = json.string(what);
    try {
      return Layout.parse(text);
    } catch (InvalidArgumentException malformed) {
      throw json.bad(what + ": " + malformed.getMessage());
    }
  }

  private static Parts parts(JsonText json, String what) throws IOException {
    var fields =
        new Object() {
          long dim = -1;
          @Nullable List<Long> extents;
          final List<Layout> layouts = new ArrayList<>();
        };
    json.members(
        what,
        key -> {
          switch (key) {
            case "dim" -> fields.dim = json.natural(what + ": dim");
            case "extents" -> fields.extents = json.naturals(what + ": extents");
            case "layout" -> {
              JsonText.Part<Integer> each = index -> fields.layouts.add(layout(json, what + ": layout"));
              if (json.isList()) {
                json.elements(what + ": layout", each);
              } else {
                each.read(0);
              }
            }
            default -> throw json.bad(what + ": unknown key " + JsonText.quoted(key));
          }
        });
    if (fields.dim < 0 || fields.extents == null || fields.layouts.isEmpty()) {
      String missing = fields.dim < 0 ? "dim" : fields.extents == null ? "extents" : "layout";
      throw json.bad(what + ": " + missing + " is missing");
    }
    List<Layout> layouts =
        fields.layouts.size() == 1
            ? Collections.nCopies(fields.extents.size(), fields.layouts.get(0))
            : fields.layouts;
    try {
      return new Parts((int) Math.min(fields.dim, Integer.MAX_VALUE), fields.extents, layouts);
    } catch (InvalidArgumentException unfit) {
      throw json.bad(what + ": " + unfit.getMessage());
    }
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
    JsonText.requireReadable(NAME, bytes, InvalidArgumentException::new);
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
