// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Layout;
import org.windlass.ResourceException;

/** The file that {@code plan --tensors} takes: a JSON list of tensors. */
public final class TensorList {
  private static final JsonFactory FACTORY =
      JsonFactory.builder().enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION).build();

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

  private final Path path;
  private final JsonParser parser;

  private TensorList(Path path, JsonParser parser) {
    this.path = path;
    this.parser = parser;
  }

  /** Reads a list. */
  public static List<Entry> read(Path path) {
    try (JsonParser parser = FACTORY.createParser(Files.readAllBytes(path))) {
      return new TensorList(path, parser).entries();
    } catch (JsonProcessingException malformed) {
      throw new InvalidArgumentException(path + ": " + malformed.getOriginalMessage(), malformed);
    } catch (NoSuchFileException missing) {
      throw new InvalidArgumentException(path + ": no such file", missing);
    } catch (IOException fault) {
      throw new ResourceException(path + ": cannot be read: " + fault.getMessage(), fault);
    }
  }

  private List<Entry> entries() throws IOException {
    if (parser.nextToken() != JsonToken.START_ARRAY) {
      throw bad("not a JSON list of tensors");
    }
    List<Entry> entries = new ArrayList<>();
    while (parser.nextToken() != JsonToken.END_ARRAY) {
      entries.add(entry("[" + entries.size() + "]"));
    }
    if (parser.nextToken() != null) {
      throw bad("something follows the list");
    }
    return entries;
  }

  private Entry entry(String at) throws IOException {
    if (parser.currentToken() != JsonToken.START_OBJECT) {
      throw bad(at + ": not an object");
    }
    String name = null;
    List<Long> shape = null;
    String dtype = null;
    String from = null;
    String to = null;
    int count = 1;
    while (parser.nextToken() != JsonToken.END_OBJECT) {
      String key = parser.currentName();
      String where = at + "." + key;
      parser.nextToken();
      switch (key) {
        case "name" -> name = string(where);
        case "shape" -> shape = shape(where);
        case "dtype" -> dtype = string(where);
        case "from" -> from = string(where);
        case "to" -> to = string(where);
        case "count" -> count = (int) integer(where, 1, Integer.MAX_VALUE);
        default -> throw bad(where + ": unknown key");
      }
    }
    if (name == null || shape == null || dtype == null) {
      throw bad(
          at + ": " + (name == null ? "name" : shape == null ? "shape" : "dtype") + " is missing");
    }
    return new Entry(
        name, shape, DType.parse(dtype), Optional.ofNullable(from), Optional.ofNullable(to), count);
  }

  private String string(String where) throws IOException {
    if (parser.currentToken() != JsonToken.VALUE_STRING) {
      throw bad(where + ": not a string");
    }
    return parser.getText();
  }

  private List<Long> shape(String where) throws IOException {
    if (parser.currentToken() != JsonToken.START_ARRAY) {
      throw bad(where + ": not a list");
    }
    List<Long> shape = new ArrayList<>();
    while (parser.nextToken() != JsonToken.END_ARRAY) {
      shape.add(integer(where + "[" + shape.size() + "]", 0, Long.MAX_VALUE));
    }
    return shape;
  }

  private long integer(String where, long least, long most) throws IOException {
    if (parser.currentToken() != JsonToken.VALUE_NUMBER_INT) {
      throw bad(where + ": not an integer");
    }
    long value;
    try {
      value = parser.getLongValue();
    } catch (JsonProcessingException large) {
      throw bad(where + ": " + parser.getText() + " does not fit 63 bits");
    }
    if (value < least || value > most) {
      throw bad(where + ": " + value + " is not in " + least + " to " + most);
    }
    return value;
  }

  private InvalidArgumentException bad(String what) {
    return new InvalidArgumentException(path + ": " + what);
  }
}
