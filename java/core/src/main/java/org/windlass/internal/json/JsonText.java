// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.json;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Writer;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;

/**
 * Reads one JSON text strictly: valid UTF-8, no duplicate key in an object, only white space after
 * the value, and integers without a fraction. Anything else causes an {@link
 * InvalidArgumentException}, whose message starts with the position in the text.
 */
public final class JsonText implements AutoCloseable {
  private static final int LARGEST = 100_000_000;
  // Description of the source that Jackson puts inside some messages.
  private static final Pattern SOURCE = Pattern.compile("\\[Source: [^;]*; |\\](?=\\)$)");
  private static final JsonFactory FACTORY =
      JsonFactory.builder()
          .streamReadConstraints(constraints())
          .disable(StreamReadFeature.AUTO_CLOSE_SOURCE)
          // Jackson's table of names refuses names whose hashes collide. Each name is read only
          // once, so the table is not needed.
          .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
          .build();

  private static StreamReadConstraints constraints() {
    StreamReadConstraints.Builder builder =
        StreamReadConstraints.builder().maxNestingDepth(100).maxStringLength(LARGEST);
    try {
      return builder.maxNameLength(LARGEST).build();
    } catch (NoSuchMethodError before216) {
      // A host application may bring Jackson 2.15, which has no limit for names.
      return builder.build();
    }
  }

  /** Reads the value of a key or an element, with the parser on the value's first token. */
  @FunctionalInterface
  public interface Part<K> {
    void read(K keyOrIndex) throws IOException;
  }

  /** Reads a value, with the parser on its first token; {@code what} names it in messages. */
  @FunctionalInterface
  public interface Value<T> {
    T read(String what) throws IOException;
  }

  /** Converts a whole text to a value. The parser is on its first token. */
  @FunctionalInterface
  public interface Whole<T> {
    T read(JsonText json) throws IOException;
  }

  private final String where;
  private final JsonParser parser;

  private JsonText(String where, JsonParser parser) {
    this.where = where;
    this.parser = parser;
  }

  /**
   * Returns the bytes of a file that contains a JSON text.
   *
   * @param fault makes the exception if the file can't be read
   */
  public static byte[] bytesOf(
      Path path, BiFunction<Path, IOException, ? extends RuntimeException> fault) {
    try {
      return bytesOf(path);
    } catch (IOException thrown) {
      throw fault.apply(path, thrown);
    }
  }

  /** Returns the bytes of a file that contains a JSON text. */
  public static byte[] bytesOf(Path path) throws IOException {
    try (InputStream in = Files.newInputStream(path)) {
      // A special file may report size 0 and give bytes without end.
      byte[] bytes = in.readNBytes(LARGEST + 1);
      requireReadable(path.toString(), bytes.length);
      return bytes;
    }
  }

  /**
   * Throws if a JSON text of {@code bytes} bytes, called {@code where}, is longer than this class
   * reads.
   */
  public static void requireReadable(String where, long bytes) {
    if (bytes > LARGEST) {
      throw new InvalidArgumentException(
          where + ": has more than " + LARGEST + " bytes, which are read at most");
    }
  }

  /**
   * Reads {@code bytes} as one value.
   *
   * @param where name of the text, for messages
   * @param whole called with the parser on the value; makes the result
   */
  public static <T> T parse(String where, byte[] bytes, Whole<T> whole) {
    try {
      decoded(bytes).transferTo(Writer.nullWriter());
    } catch (IOException malformed) {
      throw new InvalidArgumentException(where + ": the JSON is not valid UTF-8");
    }
    try (JsonText json = new JsonText(where, FACTORY.createParser(decoded(bytes)))) {
      if (json.parser.nextToken() == null) {
        throw json.bad("the JSON is empty");
      }
      T value = whole.read(json);
      if (json.parser.nextToken() != null) {
        throw json.bad("something follows the JSON");
      }
      return value;
    } catch (JsonProcessingException malformed) {
      String at =
          malformed.getLocation() == null
              ? ""
              : " at character " + malformed.getLocation().getCharOffset();
      String what = SOURCE.matcher(malformed.getOriginalMessage()).replaceAll("");
      throw new InvalidArgumentException(where + ": not valid JSON: " + what + at);
    } catch (IOException impossible) {
      throw new InvalidArgumentException(where + ": unreadable JSON", impossible);
    }
  }

  /** Returns a reader that decodes {@code bytes} while it reads. */
  private static InputStreamReader decoded(byte[] bytes) {
    return new InputStreamReader(new ByteArrayInputStream(bytes), UTF_8.newDecoder());
  }

  /**
   * Reads an object, and calls {@code member} for each of its keys. The parser is on the opening
   * brace.
   *
   * @param what name of the value, for messages
   */
  public void members(String what, Part<String> member) throws IOException {
    if (parser.currentToken() != JsonToken.START_OBJECT) {
      throw bad(what + " is " + found() + ", not an object");
    }
    Set<String> seen = new HashSet<>();
    while (parser.nextToken() != JsonToken.END_OBJECT) {
      String key = parser.currentName();
      if (!wellFormed(key)) {
        throw bad("a key contains an unpaired surrogate: " + quoted(key));
      }
      if (!seen.add(key)) {
        throw bad("the key " + quoted(key) + " stands twice in " + what);
      }
      parser.nextToken();
      member.read(key);
    }
  }

  public String string(String what) throws IOException {
    if (parser.currentToken() != JsonToken.VALUE_STRING) {
      throw bad(what + " is " + found() + ", not a string");
    }
    String text = parser.getText();
    if (!wellFormed(text)) {
      throw bad(what + " contains an unpaired surrogate");
    }
    return text;
  }

  /**
   * Returns the value that {@code parser} makes of the string at the parser. If {@code parser}
   * throws {@link InvalidArgumentException}, the position is added to the message.
   */
  public <T> T parsed(String what, Function<String, T> parser) throws IOException {
    String text = string(what);
    return checked(what, () -> parser.apply(text));
  }

  /**
   * Returns what {@code value} returns. If {@code value} throws {@link InvalidArgumentException},
   * the position is added to the message.
   */
  public <T> T checked(String what, Supplier<T> value) {
    try {
      return value.get();
    } catch (InvalidArgumentException malformed) {
      throw bad(what + ": " + malformed.getMessage());
    }
  }

  /** Returns the integer at the parser: no sign, no fraction, no exponent, below 2^63. */
  public long natural(String what) throws IOException {
    if (parser.currentToken() != JsonToken.VALUE_NUMBER_INT) {
      throw bad(what + " is " + found() + ", not an integer");
    }
    String digits = parser.getText();
    if (digits.startsWith("-")) {
      throw bad(what + " is " + digits + ", which is negative");
    }
    if (new BigInteger(digits).bitLength() > 63) {
      throw bad(what + " is " + digits + ", which does not fit 63 bits");
    }
    return parser.getLongValue();
  }

  /** Returns the integer at the parser: no sign, no fraction, no exponent, below 2^31. */
  public int integer(String what) throws IOException {
    long value = natural(what);
    if (value > Integer.MAX_VALUE) {
      throw bad(what + " is " + value + ", more than " + Integer.MAX_VALUE);
    }
    return (int) value;
  }

  /** Returns the number at the parser. It is not negative, and not too large for a double. */
  public double number(String what) throws IOException {
    JsonToken token = parser.currentToken();
    if (token != JsonToken.VALUE_NUMBER_INT && token != JsonToken.VALUE_NUMBER_FLOAT) {
      throw bad(what + " is " + found() + ", not a number");
    }
    double value = Double.parseDouble(parser.getText());
    if (value < 0 || Double.isInfinite(value)) {
      throw bad(
          what + " is " + parser.getText() + ", which is " + (value < 0 ? "negative" : "too large"));
    }
    return value;
  }

  public boolean bool(String what) throws IOException {
    JsonToken token = parser.currentToken();
    if (token != JsonToken.VALUE_TRUE && token != JsonToken.VALUE_FALSE) {
      throw bad(what + " is " + found() + ", neither true nor false");
    }
    return token == JsonToken.VALUE_TRUE;
  }

  /**
   * Reads a list, and calls {@code element} for each element. The parser is on the opening bracket.
   *
   * @param what name of the value, for messages
   */
  public void elements(String what, Part<Integer> element) throws IOException {
    if (parser.currentToken() != JsonToken.START_ARRAY) {
      throw bad(what + " is " + found() + ", not a list");
    }
    for (int index = 0; parser.nextToken() != JsonToken.END_ARRAY; index++) {
      element.read(index);
    }
  }

  /** Reads a list of values, in order. The parser is on the opening bracket. */
  public <T> List<T> list(String what, Value<T> value) throws IOException {
    List<T> values = new ArrayList<>();
    elements(what, index -> values.add(value.read(what + "[" + index + "]")));
    return values;
  }

  public List<Long> naturals(String what) throws IOException {
    return list(what, this::natural);
  }

  public boolean isList() {
    return parser.currentToken() == JsonToken.START_ARRAY;
  }

  public boolean isObject() {
    return parser.currentToken() == JsonToken.START_OBJECT;
  }

  public boolean isTrue() {
    return parser.currentToken() == JsonToken.VALUE_TRUE;
  }

  public boolean isNull() {
    return parser.currentToken() == JsonToken.VALUE_NULL;
  }

  /** Skips the value at the parser, but checks that it is JSON. */
  public void skip() throws IOException {
    parser.skipChildren();
  }

  /** Returns an exception whose message has the parser's position and the problem {@code what}. */
  public InvalidArgumentException bad(String what) {
    return new InvalidArgumentException(where + ": " + what);
  }

  private String found() throws IOException {
    JsonToken token = parser.currentToken();
    return switch (token) {
      case START_OBJECT -> "an object";
      case START_ARRAY -> "a list";
      case VALUE_STRING -> "the string " + quoted(parser.getText());
      case VALUE_NULL -> "null";
      default -> parser.getText();
    };
  }

  /** Returns a name in quotes for a message. A long name is shortened. */
  public static String quoted(String text) {
    return '"' + (text.length() > 200 ? text.substring(0, 200) + "..." : text) + '"';
  }

  /** Returns true if a text has no unpaired surrogate, so that UTF-8 can encode it. */
  public static boolean wellFormed(String text) {
    return text.codePoints().noneMatch(code -> Character.getType(code) == Character.SURROGATE);
  }

  @Override
  public void close() throws IOException {
    parser.close();
  }
}
