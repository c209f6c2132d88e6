// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
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
import org.windlass.internal.json.JsonObject;
import org.windlass.internal.json.JsonText;

/**
 * Represents the header of a safetensors file: eight bytes of length, then one JSON object. In a
 * header that was read, the size of each tensor matches its shape, and the tensors cover the file's
 * data without overlaps or gaps.
 */
public final class SafetensorsHeader {
  /** Length of the longest header that is accepted, in bytes. */
  public static final long MAX_BYTES = 100_000_000;

  static final int LENGTH_BYTES = 8;

  private static final int READ_BYTES = 256 << 10;

  private final Map<String, SafetensorsEntry> tensors;
  private final Map<String, String> metadata;
  private final long dataStart;
  private final long dataBytes;

  private SafetensorsHeader(
      Map<String, SafetensorsEntry> tensors,
      Map<String, String> metadata,
      long dataStart,
      long dataBytes) {
    this.tensors = Collections.unmodifiableMap(tensors);
    this.metadata = Collections.unmodifiableMap(metadata);
    this.dataStart = dataStart;
    this.dataBytes = dataBytes;
  }

  /** Returns every tensor, in the header's order. */
  public Collection<SafetensorsEntry> tensors() {
    return tensors.values();
  }

  Set<String> names() {
    return tensors.keySet();
  }

  /** Returns the tensor of that name, if there is one. */
  public Optional<SafetensorsEntry> find(String name) {
    return Optional.ofNullable(tensors.get(Objects.requireNonNull(name, "name")));
  }

  /** Returns the entries of {@code __metadata__}, in the header's order. */
  public Map<String, String> metadata() {
    return metadata;
  }

  /** Returns the offset of the first byte after the header. */
  public long dataStart() {
    return dataStart;
  }

  boolean isAligned(SafetensorsEntry entry) {
    return (dataStart + entry.begin()) % Math.max(entry.dtype().bits() / 8, 1) == 0;
  }

  /** Returns the size of the whole file in bytes. */
  public long fileBytes() {
    return dataStart + dataBytes;
  }

  static SafetensorsHeader read(Path path, FileChannel channel) throws IOException {
    long fileBytes = channel.size();
    if (fileBytes < LENGTH_BYTES) {
      throw new InvalidArgumentException(
          path + ": " + fileBytes + " bytes are too few for a safetensors file, whose header length"
              + " alone takes 8; copy or download it again");
    }
    ByteBuffer length = ByteBuffer.allocate(LENGTH_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    readFully(path, channel, length, 0);
    long headerBytes = length.getLong(0);
    if (headerBytes < 0 || headerBytes > MAX_BYTES) {
      throw new InvalidArgumentException(
          path + ": not a safetensors file: its first 8 bytes give its header "
              + Long.toUnsignedString(headerBytes) + " bytes; at most " + MAX_BYTES + " are read");
    }
    if (headerBytes > fileBytes - LENGTH_BYTES) {
      throw new InvalidArgumentException(
          path + ": the header says it has " + headerBytes + " bytes, and the file has "
              + (fileBytes - LENGTH_BYTES) + " after the length; copy or download it again");
    }
    ByteBuffer json = ByteBuffer.allocate((int) headerBytes);
    readFully(path, channel, json, LENGTH_BYTES);
    return parse(path.toString(), json.array(), fileBytes - LENGTH_BYTES - headerBytes);
  }

  /**
   * Parses and checks a header.
   *
   * @param where the file, for messages
   * @param json the bytes after the length
   * @param dataBytes the number of bytes after the header in the file
   * @throws InvalidArgumentException if the header is malformed; the message names the file, the
   *     tensor and the problem
   */
  public static SafetensorsHeader parse(String where, byte[] json, long dataBytes) {
    Objects.requireNonNull(where, "where");
    Objects.requireNonNull(json, "json");
    if (json.length == 0 || json[0] != '{') {
      throw new InvalidArgumentException(where + ": the header does not begin with '{'");
    }
    Map<String, SafetensorsEntry> tensors = new LinkedHashMap<>();
    Map<String, String> metadata = new LinkedHashMap<>();
    // Many tensors have the same shape, and share one list.
    Map<List<Long>, List<Long>> shapes = new HashMap<>();
    JsonText.parse(
        where,
        json,
        text -> {
          text.members(
              "the whole",
              name -> {
                if (!name.equals(Names.METADATA)) {
                  tensors.put(name, entry(where, text, name, shapes));
                } else if (!text.isNull()) {
                  text.members(
                      name,
                      key -> metadata.put(key, text.string(name + " " + JsonText.quoted(key))));
                }
              });
          return where;
        });
    checkCover(where, tensors.values(), dataBytes);
    return new SafetensorsHeader(tensors, metadata, (long) LENGTH_BYTES + json.length, dataBytes);
  }

  private static SafetensorsEntry entry(
      String where, JsonText text, String name, Map<List<Long>, List<Long>> shapes)
      throws IOException {
    Names.requireTensor(where, name);
    String what = "tensor " + JsonText.quoted(name);
    var fields =
        new Object() {
          @Nullable DType dtype;
          @Nullable List<Long> shape;
          @Nullable List<Long> offsets;
        };
    text.members(
        what,
        key -> {
          switch (key) {
            case "dtype" -> fields.dtype = dtype(text, what);
            case "shape" -> fields.shape = text.naturals(what + ": shape");
            case "data_offsets" -> fields.offsets = text.naturals(what + ": data_offsets");
            default -> throw text.bad(what + ": unknown key " + JsonText.quoted(key));
          }
        });
    DType dtype = fields.dtype;
    List<Long> shape = fields.shape;
    List<Long> offsets = fields.offsets;
    if (dtype == null || shape == null || offsets == null) {
      throw text.bad(
          what + ": " + (dtype == null ? "dtype" : shape == null ? "shape" : "data_offsets")
              + " is missing");
    }
    if (offsets.size() != 2) {
      throw text.bad(what + ": data_offsets " + offsets + " are not two numbers, begin and end");
    }
    long begin = offsets.get(0);
    long end = offsets.get(1);
    if (begin > end) {
      throw text.bad(what + ": data_offsets " + offsets + " end before they begin");
    }
    long bytes = SafetensorsEntry.packedBytes(where + ": " + what, dtype, shape);
    if (end - begin != bytes) {
      throw text.bad(
          what + ": shape " + shape + " as " + dtype.safetensorsName() + " takes "
              + bytes + " bytes, and data_offsets " + offsets + " hold " + (end - begin));
    }
    List<Long> shared = shapes.computeIfAbsent(shape, List::copyOf);
    return new SafetensorsEntry(name, dtype, shared, begin, end);
  }

  private static DType dtype(JsonText text, String what) throws IOException {
    String spelling = text.string(what + ": dtype");
    return Stream.of(DType.values())
        .filter(dtype -> dtype.safetensorsName().equals(spelling))
        .findFirst()
        .orElseThrow(() -> text.bad(what + ": unknown dtype " + JsonText.quoted(spelling)));
  }

  /** Throws unless the tensors, sorted by offset, cover all bytes without overlaps or gaps. */
  private static void checkCover(
      String where, Collection<SafetensorsEntry> tensors, long dataBytes) {
    List<SafetensorsEntry> sorted = new ArrayList<>(tensors);
    sorted.sort(
        Comparator.comparingLong(SafetensorsEntry::begin).thenComparingLong(SafetensorsEntry::end));
    long covered = 0;
    String before = "";
    for (SafetensorsEntry entry : sorted) {
      String what = where + ": tensor " + JsonText.quoted(entry.name());
      if (entry.end() > dataBytes) {
        throw new InvalidArgumentException(
            what + ": data_offsets [" + entry.begin() + ", " + entry.end() + "] reach past the file's "
                + dataBytes + " bytes of data; copy or download the file again");
      }
      if (entry.begin() < covered) {
        throw new InvalidArgumentException(
            what + ": begins at byte " + entry.begin() + " and overlaps tensor "
                + JsonText.quoted(before) + ", which ends at " + covered);
      }
      if (entry.begin() > covered) {
        throw new InvalidArgumentException(
            what + ": begins at byte " + entry.begin() + " and leaves a gap after byte " + covered);
      }
      covered = entry.end();
      before = entry.name();
    }
    if (covered != dataBytes) {
      throw new InvalidArgumentException(
          where + ": the tensors end at byte " + covered + " of " + dataBytes
              + " bytes of data: the file is too long or a tensor is missing; copy or download it"
              + " again");
    }
  }

  /** Describes a tensor to write. The offsets follow from the order of the items. */
  public record Item(String name, DType dtype, List<Long> shape) {
    public Item {
      Objects.requireNonNull(name, "name");
      Objects.requireNonNull(dtype, "dtype");
      shape = Copies.list(shape, "shape");
    }
  }

  /** Returns the header of a file that holds {@code givenItems} in this order, without gaps. */
  static SafetensorsHeader of(
      String file, List<Item> givenItems, Map<String, String> givenMetadata) {
    List<Item> items = Copies.list(givenItems, "items");
    Map<String, String> metadata = Copies.map(givenMetadata, "metadata");
    metadata.forEach(
        (key, value) -> {
          Names.requireText(file, Names.METADATA + " key", key);
          Names.requireText(file, Names.METADATA + " value", value);
        });
    Map<String, SafetensorsEntry> tensors = new LinkedHashMap<>();
    long at = 0;
    for (Item item : items) {
      Names.requireTensor(file, item.name());
      String where = file + ": tensor " + JsonText.quoted(item.name());
      long end;
      try {
        end = Math.addExact(at, SafetensorsEntry.packedBytes(where, item.dtype(), item.shape()));
      } catch (ArithmeticException overflow) {
        throw new InvalidArgumentException(where + ": the file's size overflows");
      }
      if (tensors.put(
              item.name(), new SafetensorsEntry(item.name(), item.dtype(), item.shape(), at, end))
          != null) {
        throw new InvalidArgumentException(where + ": stands twice");
      }
      at = end;
    }
    long headerBytes = new SafetensorsHeader(tensors, metadata, 0, at).encode(bytes -> {});
    if (headerBytes - LENGTH_BYTES > MAX_BYTES) {
      throw new InvalidArgumentException(
          "the header takes " + (headerBytes - LENGTH_BYTES) + " bytes; readers take at most "
              + MAX_BYTES);
    }
    return new SafetensorsHeader(tensors, metadata, headerBytes, at);
  }

  /** Receives the next bytes of a header. */
  @FunctionalInterface
  interface Sink {
    void take(ByteBuffer bytes) throws IOException;
  }

  /**
   * Passes the header to {@code sink} piece by piece: the length, the JSON, and spaces up to a
   * multiple of eight.
   *
   * @return the number of bytes
   */
  long encode(Sink sink) {
    ByteBuffer length = ByteBuffer.allocate(LENGTH_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    try {
      sink.take(length.putLong(0, dataStart - LENGTH_BYTES));
      OutputStream out =
          new OutputStream() {
            @Override
            public void write(int one) throws IOException {
              write(new byte[] {(byte) one}, 0, 1);
            }

            @Override
            public void write(byte[] bytes, int from, int number) throws IOException {
              sink.take(ByteBuffer.wrap(bytes, from, number));
            }
          };
      long bytes = LENGTH_BYTES + JsonObject.write(out, false, members());
      byte[] spaces = new byte[(int) (-bytes & 7)];
      Arrays.fill(spaces, (byte) ' ');
      sink.take(ByteBuffer.wrap(spaces));
      return bytes + spaces.length;
    } catch (IOException fault) {
      throw new UncheckedIOException(fault);
    }
  }

  private Stream<Map.Entry<String, ?>> members() {
    Stream<Map.Entry<String, ?>> first =
        metadata.isEmpty() ? Stream.empty() : Stream.of(Map.entry(Names.METADATA, metadata));
    return Stream.concat(
        first,
        tensors.values().stream()
            .map(
                entry ->
                    Map.entry(
                        entry.name(),
                        JsonObject.of(
                            "dtype", entry.dtype().safetensorsName(),
                            "shape", entry.shape(),
                            "data_offsets", List.of(entry.begin(), entry.end())))));
  }

  private static void readFully(Path path, FileChannel channel, ByteBuffer into, long from)
      throws IOException {
    int end = into.limit();
    while (into.position() < end) {
      // The channel keeps a direct buffer of the size of its largest read.
      into.limit(Math.min(end, into.position() + READ_BYTES));
      if (channel.read(into, from + into.position()) < 0) {
        throw new InvalidArgumentException(
            path + ": ends at byte " + (from + into.position()) + ", inside the header");
      }
    }
  }
}
