// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.testing.SafetensorsBytes;

class CheckpointTest {
  @TempDir Path folder;

  private Path index(String json) throws IOException {
    return Files.writeString(folder.resolve(SafetensorsIndex.NAME), json);
  }

  private static void refused(Path path, String reason) {
    assertThatThrownBy(() -> Checkpoint.open(path).close())
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(reason);
  }

  @Test
  void aFileIsReadInPlaceAndItsTensorsStayUntilItIsClosed() throws IOException {
    Path path =
        SafetensorsBytes.write(
            folder.resolve("x.safetensors"),
            "{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                + "\"odd\":{\"dtype\":\"I16\",\"shape\":[1],\"data_offsets\":[3,5]},"
                + "\"none\":{\"dtype\":\"F32\",\"shape\":[0,2],\"data_offsets\":[5,5]}}",
            (byte) 1, (byte) 2, (byte) 3, (byte) 4, (byte) 5);
    Tensor bytes;
    try (SafetensorsFile file = SafetensorsFile.open(path)) {
      bytes = file.tensor("b");
      assertThat(bytes.getLong(2)).isEqualTo(3);
      bytes.setLong(9, 0);
      assertThat(Files.readAllBytes(path)).endsWith(1, 2, 3, 4, 5);
      assertThat(file.tensor("none").shape()).containsExactly(0, 2);
      assertThat(file.bytes("odd").getLong(1)).isEqualTo(5);
      boolean aligned = file.header().dataStart() % 2 == 1;
      assertThat(file.isAligned("odd")).isEqualTo(aligned);
      ByteBuffer two = ByteBuffer.allocate(2);
      file.read("b", 1, two);
      assertThat(two.array()).containsExactly(2, 3);
      assertThatThrownBy(() -> file.tensor("c")).hasMessageContaining("holds no tensor \"c\"");
      assertThatThrownBy(() -> file.read("b", 2, ByteBuffer.allocate(2)))
          .isInstanceOf(InvalidArgumentException.class);
    }
    Tensor closed = bytes;
    assertThatThrownBy(() -> closed.getLong(0)).isInstanceOf(ClosedException.class);
  }

  @Test
  void aFileThatIsCutShortAfterItsHeaderWasReadIsRefused() throws IOException {
    Path path = SafetensorsBytes.bytes(folder.resolve("x.safetensors"), "x", new byte[64]);
    try (SafetensorsFile file = SafetensorsFile.open(path)) {
      try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
        channel.truncate(channel.size() - 1);
      }
      long length = Files.size(path);
      String said = "has " + length + " bytes now, and had " + (length + 1) + " when it was opened";
      assertThatThrownBy(file::checkLength).hasMessageContaining(said);
      assertThatThrownBy(() -> file.tensor("x"))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("bytes now");
      assertThatThrownBy(() -> file.read("x", 0, ByteBuffer.allocate(64)))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining(said);
    }
  }

  @Test
  void anIndexIsReadAsOneInItsOwnOrder() throws IOException {
    SafetensorsBytes.bytes(folder.resolve("one.safetensors"), "a", (byte) 1);
    SafetensorsBytes.bytes(folder.resolve("two.safetensors"), "b", (byte) 2);
    index(
        "{\"metadata\":{\"total_size\":2,\"more\":[1,{}]},"
            + "\"weight_map\":{\"b\":\"two.safetensors\",\"a\":\"one.safetensors\"}}");
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.byRank()).isFalse();
      assertThat(in.names()).containsExactly("b", "a");
      assertThat(in.whole("a").tensor("a").getLong(0)).isEqualTo(1);
      assertThat(in.files()).hasSize(2);
    }
  }

  static Stream<Arguments> badIndexes() {
    return Stream.of(
        arguments("{}", "weight_map is missing"),
        arguments("[]", "not an object"),
        arguments("{\"weight_map\":{}}", "weight_map is empty, and "),
        arguments("{\"weight_map\":[]}", "weight_map is a list, not an object"),
        arguments("{\"weight_map\":{\"a\":1}}", "weight_map \"a\" is 1, not a string"),
        arguments("{\"weight_map\":{\"a\":\"\"}}", "is not the name of a file in the folder"),
        arguments("{\"weight_map\":{\"a\":\"..\"}}", "is not the name of a file in the folder"),
        arguments("{\"weight_map\":{\"a\":\"../x.safetensors\"}}", "is not the name of a file"),
        arguments("{\"weight_map\":{\"a\":\"sub/../x.safetensors\"}}", "is not the name of a file"),
        arguments("{\"weight_map\":{\"a\":\"./x.safetensors\"}}", "is not the name of a file"),
        arguments("{\"weight_map\":{\"a\":\"sub//x.safetensors\"}}", "is not the name of a file"),
        arguments("{\"weight_map\":{\"a\":\"sub\\\\x.safetensors\"}}", "is not the name of a file"),
        arguments("{\"weight_map\":{\"a\":\"/x.safetensors\"}}", "is not the name of a file"),
        arguments("{\"weight_map\":{\"a\":\"x.safetensors/\"}}", "is not the name of a file"),
        arguments("{\"weight_map\":{\"a\":\"sub/x.safetensors\"}}", "which is not in the folder"),
        arguments("{\"weight_map\":{\"a\":\"/etc/passwd\"}}", "is not the name of a file"),
        arguments("{\"weight_map\":{\"a\":\"x\\u0000.safetensors\"}}", "is not the name of a file"),
        arguments("{\"weight_map\":{\"a\":\"x.bin\"}}", "does not end in .safetensors"),
        arguments("{\"weight_map\":{\"a\":\"gone.safetensors\"}}", "which is not in the folder"),
        arguments("{\"weight_map\":{\"a\":\"x.safetensors\"},\"rest\":1}", "the key \"rest\" is unknown; known are weight_map, metadata"),
        arguments(
            "{\"weight_map\":{\"a\":\"x.safetensors\",\"a\":\"x.safetensors\"}}", "stands twice"),
        arguments("{\"weight_map\":{\"b\":\"x.safetensors\"}}", "holds no tensor \"b\""));
  }

  @ParameterizedTest
  @MethodSource("badIndexes")
  void aBadIndexIsRefused(String json, String reason) throws IOException {
    SafetensorsBytes.bytes(folder.resolve("x.safetensors"), "a", (byte) 1);
    SafetensorsBytes.write(
        folder.resolve("y.safetensors"),
        "{\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
            + "\"c\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,2]}}",
        new byte[2]);
    index(json);
    refused(folder, reason);
  }

  @Test
  void theIndexDecidesWhatCountsOfOverlaidFiles() throws IOException {
    String header =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
            + "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[1,2]},"
            + "\"c\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[2,3]}}";
    SafetensorsBytes.write(folder.resolve("x.safetensors"), header, new byte[] {1, 2, 3});
    SafetensorsBytes.write(folder.resolve("y.safetensors"), header, new byte[] {4, 5, 6});
    index("{\"weight_map\":{\"a\":\"x.safetensors\",\"b\":\"y.safetensors\"}}");
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.names()).containsExactly("a", "b");
      assertThat(in.whole("a").tensor("a").getLong()).isEqualTo(1);
      assertThat(in.whole("b").tensor("b").getLong()).isEqualTo(5);
      assertThat(in.notes())
          .containsExactly(
              folder.resolve("x.safetensors") + ": tensor \"b\" and 1 more are not read, since the weight_map of"
                  + " model.safetensors.index.json has it in y.safetensors",
              folder.resolve("y.safetensors") + ": tensor \"a\" and 1 more are not read, since the weight_map of"
                  + " model.safetensors.index.json has it in x.safetensors");
    }
  }

  @Test
  void anIndexOfAnotherNameIsOneWhereItIsTheOnly() throws IOException {
    SafetensorsBytes.bytes(folder.resolve("x.safetensors"), "a", (byte) 1);
    SafetensorsBytes.bytes(folder.resolve("y.safetensors"), "b", (byte) 1);
    String index = "{\"weight_map\":{\"a\":\"x.safetensors\"}}";
    Path one = folder.resolve("diffusion_pytorch_model.safetensors.index.json");
    Files.writeString(one, index);
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.names()).containsExactly("a");
      assertThat(in.index()).contains(one);
    }
    Files.writeString(folder.resolve("model.fp16.safetensors.index.json"), index);
    refused(folder, "holds diffusion_pytorch_model.safetensors.index.json and model.fp16.safetensors.index.json");
    index("{\"weight_map\":{\"b\":\"y.safetensors\"}}");
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.names()).containsExactly("b");
    }
  }

  @Test
  void aFolderOfOneFileIsReadAsThat() throws IOException {
    SafetensorsBytes.bytes(folder.resolve("model.safetensors"), "a", (byte) 1);
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.names()).containsExactly("a");
      assertThat(in.byRank()).isFalse();
      assertThat(in.index()).isEmpty();
    }
    SafetensorsBytes.bytes(folder.resolve("other.safetensors"), "a", (byte) 1);
    refused(folder, "2 safetensors files, such as model.safetensors and other.safetensors");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "model-00001-of-00002", "diffusion_pytorch_model-00001-of-00003", "model-00002-of-00004",
        "consolidated-00001-of-00002", "model.fp16-00001-of-00002",
        "model-00001-of-00002.fp16", "shard_1_of_8", "model-00001-of-00010", "1-of-2"
      })
  void oneOfSeveralFilesIsNoCheckpoint(String name) throws IOException {
    Path file = SafetensorsBytes.bytes(folder.resolve(name + ".safetensors"), "a", (byte) 1);
    refused(folder, name + ".safetensors: is number ");
    refused(folder, " by its name, and the other files and an index of them are missing");
    try (Checkpoint in = Checkpoint.open(file)) {
      assertThat(in.names()).containsExactly("a");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"model-00001-of-00001", "out-of-2", "step1-of-2", "consolidated.00"})
  void aFileOfOneIs(String name) throws IOException {
    SafetensorsBytes.bytes(folder.resolve(name + ".safetensors"), "a", (byte) 1);
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.names()).containsExactly("a");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "diffusion_pytorch_model.fp16, diffusion_pytorch_model, true",
    "diffusion_pytorch_model.fp16, diffusion_pytorch_model-00001-of-00002, true",
    "diffusion_pytorch_model.fp16, diffusion_pytorch_model.fp16, true",
    "model, model, true",
    "model, model.fp16, false",
    "model, model-00001-of-00009, false",
    "model, consolidated, false",
    "diffusion_pytorch_model, adapter, false"
  })
  void anIndexBesideTheModelInAnotherFormIsRefused(String index, String file, boolean isRefused)
      throws IOException {
    SafetensorsBytes.bytes(folder.resolve("x-00001-of-00001.safetensors"), "a", (byte) 1);
    SafetensorsBytes.bytes(folder.resolve(file + ".safetensors"), "a", (byte) 2);
    Path json = folder.resolve(index + ".safetensors.index.json");
    Files.writeString(json, "{\"weight_map\":{\"a\":\"x-00001-of-00001.safetensors\"}}");
    if (isRefused) {
      String holds = "holds " + json.getFileName() + " and " + file + ".safetensors, which";
      refused(folder, holds + " the index does not list");
      Files.writeString(json, "{\"weight_map\":{\"a\":\"" + file + ".safetensors\"}}");
    }
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.whole("a").tensor("a").getLong(0)).isEqualTo(isRefused ? 2 : 1);
    }
  }

  @Test
  void anIndexOfNoTensorsIsACheckpointWhereNoFileStandsBesideIt() throws IOException {
    index("{\"weight_map\":{}}");
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.names()).isEmpty();
    }
  }

  @Test
  void anIndexMayNameLinks(@TempDir Path cache) throws IOException {
    Path blob = SafetensorsBytes.bytes(cache.resolve("5f3a"), "a", (byte) 1);
    Files.createSymbolicLink(folder.resolve("x.safetensors"), blob);
    index("{\"weight_map\":{\"a\":\"x.safetensors\"}}");
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.files()).hasSize(1);
    }
    Files.delete(blob);
    refused(folder, "names x.safetensors, which is not in the folder");
  }

  /** Megatron's converters keep such names. */
  @Test
  void anIndexMayNameFilesInFolders(@TempDir Path elsewhere) throws IOException {
    Path deep = Files.createDirectories(folder.resolve("sub/deep"));
    SafetensorsBytes.bytes(deep.resolve("x.safetensors"), "a", (byte) 7);
    SafetensorsBytes.bytes(folder.resolve("x.safetensors"), "b", (byte) 8);
    String index =
        "{\"weight_map\":{\"a\":\"sub/deep/x.safetensors\",\"b\":\"x.safetensors\"}}";
    index(index);
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.whole("a").tensor("a").getLong(0)).isEqualTo(7);
      assertThat(in.whole("b").tensor("b").getLong(0)).isEqualTo(8);
      assertThat(in.files()).hasSize(2);
    }
    // A link to a file is followed, as a download cache has it, and one to a folder within.
    Path blob = Files.move(deep.resolve("x.safetensors"), elsewhere.resolve("x.safetensors"));
    Files.createSymbolicLink(deep.resolve("x.safetensors"), blob);
    Files.createSymbolicLink(folder.resolve("other"), deep);
    index(index.replace("sub/deep", "other"));
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.whole("a").tensor("a").getLong(0)).isEqualTo(7);
    }
    // A folder that is a link out of IN is not.
    Files.createSymbolicLink(folder.resolve("sub/out"), elsewhere);
    index(index.replace("deep", "out"));
    refused(folder, "names sub/out/x.safetensors, which is not in the folder");
  }

  @Test
  void rankFilesAreReadWithTheirLayouts() throws IOException {
    SafetensorsBytes.bytes(folder.resolve("rank-00000.safetensors"), "a", (byte) 1);
    SafetensorsBytes.bytes(folder.resolve("rank-00012.safetensors"), "a", (byte) 2);
    Files.writeString(
        folder.resolve("layout.json"),
        "{\"version\":1,\"tensors\":{\"a\":{\"shape\":[2],\"dtype\":\"U8\",\"layout\":\"2@[0,12]:S0\"}}}");
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.byRank()).isTrue();
      assertThat(in.ranks().keySet()).containsExactly(0, 12);
      LayoutFile.Entry entry = in.layouts().orElseThrow().tensors().get("a");
      assertThat(entry.layout()).contains(Layout.parse("2@[0,12]:S0"));
      assertThat(entry.dtype()).contains(DType.U8);
    }
  }

  @Test
  void aFolderThatIsNoCheckpointIsRefused() throws IOException {
    refused(folder, "holds neither");
    refused(folder.resolve("gone"), "no such file");
    SafetensorsBytes.bytes(folder.resolve("rank-7.safetensors"), "a", (byte) 1);
    refused(folder, "written with five digits");
    Files.delete(folder.resolve("rank-7.safetensors"));
    for (String rank : List.of("1048576", "2147483648")) {
      Path file = folder.resolve("rank-" + rank + ".safetensors");
      SafetensorsBytes.bytes(file, "a", (byte) 1);
      refused(folder, file + ": ranks are below 1048576 and written with");
      Files.delete(file);
    }
    SafetensorsBytes.bytes(folder.resolve("rank-00007.safetensors"), "a", (byte) 1);
    index("{\"weight_map\":{}}");
    refused(folder, "holds both");
    Files.delete(folder.resolve(SafetensorsIndex.NAME));
    Files.writeString(
        folder.resolve("layout.json"), "{\"version\":1,\"tensors\":{\"b\":{\"shape\":[2]}}}");
    refused(folder, "lists tensor \"b\", which no rank file holds");
  }

  @Test
  void metadataOfSeveralFilesIsOneWithoutWhatTheyDifferIn() throws IOException {
    String tensor = ",\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}";
    SafetensorsBytes.write(
        folder.resolve("rank-00000.safetensors"), "{\"__metadata__\":{\"f\":\"pt\",\"x\":\"1\"}" + tensor);
    SafetensorsBytes.write(
        folder.resolve("rank-00001.safetensors"), "{\"__metadata__\":{\"f\":\"pt\",\"y\":\"2\"}" + tensor);
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.metadata()).isEqualTo(Map.of("f", "pt", "x", "1", "y", "2"));
    }
    SafetensorsBytes.write(
        folder.resolve("rank-00002.safetensors"), "{\"__metadata__\":{\"f\":\"tf\"}" + tensor);
    try (Checkpoint in = Checkpoint.open(folder)) {
      assertThat(in.metadata()).isEqualTo(Map.of("x", "1", "y", "2"));
      assertThat(in.notes()).hasSize(1);
      assertThat(in.notes().get(0)).contains("__metadata__ \"f\" is \"tf\", and \"pt\" in", "left out");
    }
  }

  static Stream<Arguments> badLayoutFiles() {
    return Stream.of(
        arguments("{}", "version is missing"),
        arguments("{\"version\":1}", "tensors is missing"),
        arguments("{\"version\":2,\"tensors\":{}}", "version is 2; only 1 is known"),
        arguments("{\"version\":\"1\",\"tensors\":{}}", "version is the string \"1\", not an integer"),
        arguments("{\"version\":1,\"tensors\":{},\"x\":1}", "the key \"x\" is unknown; known are version, tensors"),
        arguments("{\"version\":1,\"tensors\":{\"a\":{}}}", "tensor \"a\".shape is missing"),
        arguments(
            "{\"version\":1,\"tensors\":{\"a\":{\"shape\":[-1]}}}", "shape[0] is -1, which is negative"),
        arguments(
            "{\"version\":1,\"tensors\":{\"a\":{\"shape\":[1],\"dtype\":\"float\"}}}",
            "tensor \"a\".dtype: 'float' is no dtype"),
        arguments(
            "{\"version\":1,\"tensors\":{\"a\":{\"shape\":[1],\"layout\":\"4\"}}}",
            "tensor \"a\".layout: "),
        arguments(
            "{\"version\":1,\"tensors\":{\"a\":{\"shape\":[1],\"rank\":1}}}", "tensor \"a\": the key \"rank\" is unknown; known are shape, dtype, layout"),
        arguments(parts("1,\"extents\":[6]", ""), "tensor \"a\": parts: dim is 1, and the shape [6]"),
        arguments(parts("0,\"extents\":[4,1]", ""), "parts: extents [4, 1] do not add up to 6"),
        arguments(parts("0", ""), "tensor \"a\".parts.extents is missing"),
        arguments(
            parts("0,\"extents\":[4,2]", ",\"layout\":\"2:S0\""),
            "tensor \"a\": layout is 2:S0 and there are parts"),
        arguments(
            parts("0,\"extents\":[4,2],\"layout\":[\"2:S0\",\"3:S0\"]", "").replace("\"layout\":\"2:S0\",", ""),
            "tensor \"a\".parts: 2:S0 and 3:S0 are not on the same ranks"),
        arguments(
            parts("0,\"extents\":[4,2]", ",\"padded\":[8]"),
            "tensor \"a\": padded is [8] and there are parts, which are not padded"),
        arguments(
            "{\"version\":1,\"tensors\":{\"a\":{\"shape\":[6],\"padded\":[5]}}}",
            "tensor \"a\": padded is [5], which is smaller than shape [6]"));
  }

  private static String parts(String dim, String more) {
    return "{\"version\":1,\"tensors\":{\"a\":{\"shape\":[6],\"parts\":{\"layout\":\"2:S0\",\"dim\":" + dim + "}"
        + more + "}}}";
  }

  @ParameterizedTest
  @MethodSource("badLayoutFiles")
  void aBadLayoutFileIsRefused(String json, String reason) {
    assertThatThrownBy(
            () -> LayoutFile.parse("layout.json", json.getBytes(StandardCharsets.UTF_8)))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageStartingWith("layout.json: ")
        .hasMessageContaining(reason);
  }

  @Test
  void aLayoutFileIsReadBackAsWritten() {
    LayoutFile written =
        new LayoutFile(
            Map.of(
                "w",
                new LayoutFile.Entry(
                    List.of(4L, 0L), Optional.of(DType.F8E4M3), Optional.of(Layout.parse("1x4@8:R,S1"))),
                "v",
                new LayoutFile.Entry(List.of(), Optional.empty(), Optional.empty()),
                "padded",
                new LayoutFile.Entry(
                    List.of(5L),
                    Optional.empty(),
                    Optional.of(Layout.parse("2:S0")),
                    Optional.empty(),
                    Optional.of(List.of(8L))),
                "kv",
                new LayoutFile.Entry(
                    List.of(8L),
                    Optional.empty(),
                    Optional.empty(),
                    Optional.of(
                        new LayoutFile.Parts(
                            0,
                            List.of(4L, 4L),
                            List.of(Layout.parse("4:S0"), Layout.parse("2x2:S0,R")))),
                    Optional.empty()),
                "qkv",
                new LayoutFile.Entry(
                    List.of(2L, 16L),
                    Optional.of(DType.F32),
                    Optional.empty(),
                    Optional.of(
                        new LayoutFile.Parts(
                            1,
                            List.of(8L, 4L, 4L),
                            Collections.nCopies(3, Layout.parse("2:S1")))),
                    Optional.empty())));
    assertThat(LayoutFile.parse("f", written.encode())).isEqualTo(written);
  }
}
