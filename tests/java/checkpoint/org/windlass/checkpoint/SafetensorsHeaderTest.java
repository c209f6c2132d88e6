// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.testing.RandomSeeds;

class SafetensorsHeaderTest {
  private static final String LONE_SURROGATE = "\\ud800";

  private static String tensor(String dtype, String shape, String offsets) {
    return "{\"x\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  }

  private static String two(String first, String second) {
    return "{\"a\":{\"dtype\":\"U8\",\"shape\":" + first + "},\"b\":{\"dtype\":\"U8\",\"shape\":" + second + "}}";
  }

  /** A header, the bytes of data behind it, and what the complaint says. */
  static Stream<Arguments> malformed() {
    return Stream.of(
        // The JSON itself.
        arguments("", 0, "does not begin with '{'"),
        arguments(" {}", 0, "does not begin with '{'"),
        arguments("[]", 0, "does not begin with '{'"),
        arguments("{", 0, "not valid JSON"),
        arguments("{}{", 0, "something follows the JSON"),
        arguments("{} null", 0, "something follows the JSON"),
        arguments("{}x", 0, "not valid JSON"),
        arguments("{'x':1}", 0, "not valid JSON"),
        arguments("{\"x\":}", 0, "not valid JSON"),
        arguments("{\"__metadata__\":{}", 0, "not valid JSON"),
        arguments("{\"__metadata__\":{},}", 0, "not valid JSON"),
        arguments("{/* */}", 0, "not valid JSON"),
        arguments("{\"x\":" + "[".repeat(2000), 0, "is a list, not an object"),
        arguments("{\"a\tb\":1}", 0, "not valid JSON"),
        // Keys and names.
        arguments("{\"\":{}}", 0, "a tensor has an empty name"),
        arguments("{\"" + LONE_SURROGATE + "\":{}}", 0, "surrogate"),
        arguments(
            "{\"x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                + "\"x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
            0,
            "the key \"x\" stands twice in the whole"),
        arguments(
            "{\"x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                + "\"\\u0078\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
            0,
            "the key \"x\" stands twice in the whole"),
        arguments(
            "{\"x\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
            0,
            "the key \"dtype\" stands twice in tensor \"x\""),
        arguments(
            "{\"x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"offset\":0}}",
            0,
            "tensor \"x\": unknown key \"offset\""),
        // Metadata.
        arguments("{\"__metadata__\":[]}", 0, "__metadata__ is a list, not an object"),
        arguments("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ \"a\" is 1, not a string"),
        arguments("{\"__metadata__\":{\"a\":null}}", 0, "__metadata__ \"a\" is null, not a string"),
        arguments("{\"__metadata__\":{\"a\":{}}}", 0, "__metadata__ \"a\" is an object, not a string"),
        arguments(
            "{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}",
            0,
            "the key \"a\" stands twice in __metadata__"),
        arguments("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "stands twice"),
        // A tensor's fields.
        arguments("{\"x\":1}", 0, "tensor \"x\" is 1, not an object"),
        arguments("{\"x\":null}", 0, "tensor \"x\" is null, not an object"),
        arguments("{\"x\":{}}", 0, "tensor \"x\": dtype is missing"),
        arguments("{\"x\":{\"dtype\":\"U8\"}}", 0, "tensor \"x\": shape is missing"),
        arguments(two("[1]", "[1]"), 2, "tensor \"a\": data_offsets is missing"),
        arguments(tensor("8", "[0]", "[0,0]"), 0, "dtype is 8, not a string"),
        arguments(tensor("\"FLOAT\"", "[0]", "[0,0]"), 0, "unknown dtype \"FLOAT\""),
        arguments(tensor("\"bf16\"", "[0]", "[0,0]"), 0, "unknown dtype \"bf16\""),
        arguments(tensor("\"U8\"", "4", "[0,4]"), 4, "shape is 4, not a list"),
        arguments(tensor("\"U8\"", "[[4]]", "[0,4]"), 4, "shape[0] is a list, not an integer"),
        arguments(tensor("\"U8\"", "[4.0]", "[0,4]"), 4, "shape[0] is 4.0, not an integer"),
        arguments(tensor("\"U8\"", "[4e0]", "[0,4]"), 4, "shape[0] is 4e0, not an integer"),
        arguments(tensor("\"U8\"", "[true]", "[0,1]"), 1, "shape[0] is true, not an integer"),
        arguments(tensor("\"U8\"", "[\"4\"]", "[0,4]"), 4, "shape[0] is the string \"4\", not an integer"),
        arguments(tensor("\"U8\"", "[2,-2]", "[0,4]"), 4, "shape[1] is -2, which is negative"),
        arguments(tensor("\"U8\"", "[-0]", "[0,0]"), 0, "shape[0] is -0, which is negative"),
        arguments(tensor("\"U8\"", "[04]", "[0,4]"), 4, "not valid JSON"),
        arguments(
            tensor("\"U8\"", "[9223372036854775808]", "[0,4]"), 4, "which does not fit 63 bits"),
        arguments(
            tensor("\"U8\"", "[99999999999999999999999999]", "[0,4]"),
            4,
            "which does not fit 63 bits"),
        // Offsets.
        arguments(tensor("\"U8\"", "[4]", "[0]"), 4, "data_offsets [0] are not two numbers, begin and end"),
        arguments(tensor("\"U8\"", "[4]", "[0,4,8]"), 4, "are not two numbers, begin and end"),
        arguments(tensor("\"U8\"", "[4]", "{}"), 4, "data_offsets is an object, not a list"),
        arguments(tensor("\"U8\"", "[4]", "[4,0]"), 4, "data_offsets [4, 0] end before they begin"),
        arguments(tensor("\"U8\"", "[4]", "[-4,0]"), 4, "data_offsets[0] is -4, which is negative"),
        arguments(tensor("\"U8\"", "[4]", "[0,8]"), 8, "takes 4 bytes, and data_offsets [0, 8] hold 8"),
        arguments(tensor("\"F32\"", "[4]", "[0,4]"), 4, "takes 16 bytes, and data_offsets [0, 4] hold 4"),
        arguments(tensor("\"U8\"", "[0]", "[0,4]"), 4, "takes 0 bytes, and data_offsets [0, 4] hold 4"),
        arguments(tensor("\"U8\"", "[]", "[0,0]"), 0, "takes 1 bytes, and data_offsets [0, 0] hold 0"),
        // Sizes.
        arguments(
            tensor("\"U8\"", "[4294967296,4294967296]", "[0,0]"), 0, "the size of shape "
                + "[4294967296, 4294967296] as U8 overflows"),
        arguments(
            tensor("\"F64\"", "[1152921504606846976]", "[0,0]"), 0, "as F64 overflows"),
        arguments(tensor("\"F4\"", "[3]", "[0,2]"), 2, "takes 12 bits, which is not a whole number of bytes"),
        arguments(tensor("\"F6_E2M3\"", "[2]", "[0,2]"), 2, "takes 12 bits"),
        // The cover of the data.
        arguments(tensor("\"U8\"", "[4]", "[0,4]"), 3, "reach past the file's 3 bytes of data"),
        arguments(tensor("\"U8\"", "[4]", "[0,4]"), 5, "the tensors end at byte 4 of 5 bytes of data"),
        arguments(tensor("\"U8\"", "[4]", "[1,5]"), 5, "leaves a gap after byte 0"),
        arguments("{}", 1, "the tensors end at byte 0 of 1 bytes of data"),
        arguments(
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                + "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
            7,
            "tensor \"b\": begins at byte 3 and overlaps tensor \"a\", which ends at 4"),
        arguments(
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                + "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
            4,
            "tensor \"b\": begins at byte 0 and overlaps tensor \"a\""),
        arguments(
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                + "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[5,9]}}",
            9,
            "tensor \"b\": begins at byte 5 and leaves a gap after byte 4"),
        arguments(
            "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                + "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}",
            4,
            "overlaps tensor \"a\""));
  }

  @ParameterizedTest
  @MethodSource("malformed")
  void aMalformedHeaderIsRefusedWithFileAndReason(String json, int dataBytes, String reason) {
    byte[] bytes = json.getBytes(StandardCharsets.UTF_8);
    assertThatThrownBy(() -> SafetensorsHeader.parse("some.safetensors", bytes, dataBytes))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageStartingWith("some.safetensors: ")
        .hasMessageContaining(reason);
  }

  /** Jackson's table of names has one place for all of these. */
  @Test
  void namesThatCollideAreRead() {
    StringBuilder json = new StringBuilder("{");
    for (int i = 0; i < 400; i++) {
      json.append(i == 0 ? "" : ",").append('"');
      for (int bit = 0; bit < 11; bit++) {
        json.append((i >> bit & 1) == 0 ? "Bb" : "CA");
      }
      json.append("\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}");
    }
    byte[] bytes = json.append('}').toString().getBytes(StandardCharsets.UTF_8);
    assertThat(SafetensorsHeader.parse("x", bytes, 0).tensors()).hasSize(400);
  }

  @Test
  void aHeaderThatIsNotUtf8IsRefused() {
    for (byte[] bad :
        List.of(new byte[] {'{', (byte) 0xff, '}'}, new byte[] {'{', '"', (byte) 0xc0, (byte) 0x80, '"'})) {
      assertThatThrownBy(() -> SafetensorsHeader.parse("f", bad, 0))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessage("f: the JSON is not valid UTF-8");
    }
  }

  /** The eight bytes of a length, then the rest of the file, and what the complaint says. */
  static Stream<Arguments> badLengths() {
    return Stream.of(
        arguments(new byte[0], "0 bytes are too few"),
        arguments(new byte[7], "7 bytes are too few"),
        arguments(file(1, ""), "the header says it has 1 bytes, and the file has 0"),
        arguments(file(3, "{}"), "the header says it has 3 bytes, and the file has 2"),
        arguments(file(0, "{}"), "does not begin with '{'"),
        arguments(
            file(100_000_001, "{}"),
            "not a safetensors file: its first 8 bytes give its header 100000001 bytes; at most 100000000 are read"),
        arguments(file(Long.MAX_VALUE, "{}"), "9223372036854775807 bytes; at most"),
        arguments(file(-1, "{}"), "18446744073709551615 bytes; at most"),
        arguments(file(2, "{}x"), "end at byte 0 of 1"));
  }

  private static byte[] file(long length, String rest) {
    byte[] text = rest.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(8 + text.length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(length)
        .put(text)
        .array();
  }

  @ParameterizedTest
  @MethodSource("badLengths")
  void aLengthThatDoesNotFitTheFileIsRefused(byte[] bytes, String reason, @TempDir Path folder)
      throws IOException {
    Path path = Files.write(folder.resolve("x.safetensors"), bytes);
    assertThatThrownBy(() -> SafetensorsFile.open(path))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageStartingWith(path + ": ")
        .hasMessageContaining(reason);
  }

  @Test
  void everyDtypeOfTheFormatIsRead() {
    for (DType dtype : DType.values()) {
      String json =
          tensor('"' + dtype.safetensorsName() + '"', "[2,4]", "[0," + dtype.bits() + "]");
      SafetensorsHeader header =
          SafetensorsHeader.parse("f", json.getBytes(StandardCharsets.UTF_8), dtype.bits());
      SafetensorsEntry entry = header.find("x").orElseThrow();
      assertThat(entry.dtype()).isEqualTo(dtype);
      assertThat(entry.shape()).containsExactly(2L, 4L);
      assertThat(entry.bytes()).isEqualTo(dtype.bits());
    }
  }

  @Test
  void orderMetadataSpacesAndEmptyTensorsAreKept() {
    String json =
        "{\"z\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[4,7]},"
            + "\"__metadata__\":{\"format\":\"pt\",\"\":\"\\u00e9\"},"
            + "\"none\":{\"data_offsets\":[4,4],\"shape\":[4611686018427387904,0,8],\"dtype\":\"F64\"},"
            + "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}    ";
    byte[] bytes = json.getBytes(StandardCharsets.UTF_8);
    SafetensorsHeader header = SafetensorsHeader.parse("f", bytes, 7);
    assertThat(header.tensors()).extracting(SafetensorsEntry::name).containsExactly("z", "none", "a");
    assertThat(header.metadata()).isEqualTo(Map.of("format", "pt", "", "é"));
    assertThat(header.fileBytes()).isEqualTo(8 + bytes.length + 7);
    assertThat(header.find("b")).isEmpty();
  }

  @Test
  void whatIsWrittenIsReadBackAndStartsAtAMultipleOfEight() {
    List<SafetensorsHeader.Item> items =
        List.of(
            new SafetensorsHeader.Item("b \" \\ \n é", DType.BF16, List.of(3L, 5L)),
            new SafetensorsHeader.Item("a", DType.F4, List.of(2L)),
            new SafetensorsHeader.Item("empty", DType.I64, List.of(0L, 7L)),
            new SafetensorsHeader.Item("scalar", DType.F64, List.of()));
    SafetensorsHeader written = SafetensorsHeader.of("f", items, Map.of("format", "pt"));
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    written.encode(bytes -> Channels.newChannel(out).write(bytes));
    byte[] encoded = out.toByteArray();
    assertThat(encoded.length % 8).isZero();
    assertThat(written.dataStart()).isEqualTo(encoded.length);
    assertThat(ByteBuffer.wrap(encoded).order(ByteOrder.LITTLE_ENDIAN).getLong())
        .isEqualTo(encoded.length - 8);
    SafetensorsHeader read =
        SafetensorsHeader.parse("f", Arrays.copyOfRange(encoded, 8, encoded.length), 30 + 1 + 8);
    assertThat(read.tensors()).containsExactlyElementsOf(written.tensors());
    assertThat(read.metadata()).isEqualTo(Map.of("format", "pt"));
  }

  @Test
  void whatNoFileCanHoldIsNotWritten() {
    assertThatThrownBy(() -> header(new SafetensorsHeader.Item("__metadata__", DType.U8, List.of())))
        .isInstanceOf(InvalidArgumentException.class);
    assertThatThrownBy(() -> header(new SafetensorsHeader.Item("", DType.U8, List.of())))
        .isInstanceOf(InvalidArgumentException.class);
    SafetensorsHeader.Item large = new SafetensorsHeader.Item("l", DType.U8, List.of(1L << 59));
    assertThat(header(large).fileBytes()).isGreaterThan(1L << 59);
    assertThatThrownBy(() -> header(large, large)).hasMessageContaining("stands twice");
  }

  private static SafetensorsHeader header(SafetensorsHeader.Item... items) {
    return SafetensorsHeader.of("f", List.of(items), Map.of());
  }

  /** Whatever the bytes, there is a header or an InvalidArgument. */
  @RandomSeeds(2000)
  void randomBytesNeverDoAnythingElse(long seed) {
    Random random = new Random(seed);
    byte[] bytes = new byte[1 + random.nextInt(256)];
    random.nextBytes(bytes);
    bytes[0] = '{';
    parseOrRefuse(bytes, random.nextInt(64));
  }

  /** Bytes of a good header changed, dropped and doubled. */
  @RandomSeeds(5000)
  void changedHeadersNeverDoAnythingElse(long seed) {
    Random random = new Random(seed);
    byte[] bytes =
        ("{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                + "\"b\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[24,26]}}")
            .getBytes(StandardCharsets.UTF_8);
    String alphabet = "0123456789{}[]\",:.-eEUF \\u\0é";
    for (int change = random.nextInt(4); change >= 0; change--) {
      int at = random.nextInt(bytes.length);
      switch (random.nextInt(3)) {
        case 0 -> bytes[at] = (byte) alphabet.charAt(random.nextInt(alphabet.length()));
        case 1 -> {
          byte[] shorter = Arrays.copyOf(bytes, bytes.length - 1);
          System.arraycopy(bytes, at + 1, shorter, at, bytes.length - at - 1);
          bytes = shorter;
        }
        default -> {
          int end = at + random.nextInt(bytes.length - at + 1);
          byte[] longer = Arrays.copyOf(bytes, bytes.length + end - at);
          System.arraycopy(bytes, at, longer, end, bytes.length - at);
          bytes = longer;
        }
      }
    }
    parseOrRefuse(bytes, 26);
  }

  private static void parseOrRefuse(byte[] bytes, long dataBytes) {
    SafetensorsHeader header;
    try {
      header = SafetensorsHeader.parse("f", bytes, dataBytes);
    } catch (InvalidArgumentException refused) {
      assertThat(refused.getMessage()).startsWith("f: ");
      return;
    }
    long covered = header.tensors().stream().mapToLong(SafetensorsEntry::bytes).sum();
    assertThat(covered).isEqualTo(dataBytes);
  }
}
