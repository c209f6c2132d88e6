// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.cli.ChildCommand;
import org.windlass.cli.Cli;
import org.windlass.testing.SafetensorsBytes;
import org.windlass.testing.TestFile;

class ReshardCommandTest {
  @TempDir Path folder;

  private static TestFile.Tensor tensor(String name, DType dtype, int[] shape) {
    int elements = Arrays.stream(shape).reduce(1, (a, b) -> a * b);
    long mask = dtype.bits() == 64 ? -1 : (1L << dtype.bits()) - 1;
    long[] bits = new long[elements];
    for (int i = 0; i < elements; i++) {
      bits[i] = (i * 0x9E3779B97F4A7C15L >>> 13) & mask;
    }
    return new TestFile.Tensor(name, dtype, shape, bits);
  }

  private static int[] shape(int... extents) {
    return extents;
  }

  private Path write(String name, TestFile.Tensor... tensors) throws IOException {
    Path path = folder.resolve(name);
    Files.createDirectories(path.getParent());
    TestFile.write(path, List.of(tensors), Map.of());
    return path;
  }

  private Path out() {
    return folder.resolve("out");
  }

  private Cli reshard(Object... arguments) {
    List<Object> all = new ArrayList<>(List.of("reshard"));
    all.addAll(List.of(arguments));
    return Cli.run(all.toArray());
  }

  private void done(Object... arguments) {
    Cli done = reshard(arguments);
    assertThat(done.status()).as(done.err()).isZero();
  }

  /** Refused with status 2, these words, and nothing written. */
  private void refused(int status, List<String> words, Object... arguments) throws IOException {
    Map<Path, byte[]> before = snapshot();
    Cli failed = reshard(arguments);
    assertThat(failed.status()).as(failed.err()).isEqualTo(status);
    assertThat(failed.out()).isEmpty();
    assertThat(failed.err()).contains(words);
    Map<Path, byte[]> after = snapshot();
    assertThat(after.keySet()).isEqualTo(before.keySet());
    after.forEach((path, bytes) -> assertThat(bytes).as("%s", path).isEqualTo(before.get(path)));
  }

  private Map<Path, byte[]> snapshot() throws IOException {
    Map<Path, byte[]> files = new HashMap<>();
    try (Stream<Path> all = Files.walk(folder)) {
      for (Path path : all.toList()) {
        files.put(path, Files.isRegularFile(path) ? Files.readAllBytes(path) : new byte[0]);
      }
    }
    return files;
  }

  private static List<TestFile.Tensor> read(Path path) throws IOException {
    return TestFile.read(path).tensors();
  }

  @Test
  void aForeignOrCutFileIsSaidToBeOne() throws IOException {
    Path in = Files.writeString(folder.resolve("in.safetensors"), "import json\n".repeat(20));
    Cli foreign = reshard("--from", "1:R", "--to", "2:S0", in, out());
    assertThat(foreign.status()).as(foreign.err()).isEqualTo(2);
    assertThat(foreign.err())
        .contains(in + ": not a safetensors file: its first 8 bytes give its header ")
        .endsWith("\nhint: check which file the path names\n");
    Files.write(in, new byte[] {100, 0, 0, 0, 0, 0, 0, 0, '{'});
    Cli cut = reshard("--from", "1:R", "--to", "2:S0", in, out());
    assertThat(cut.status()).as(cut.err()).isEqualTo(2);
    assertThat(cut.err())
        .contains("the header says it has 100 bytes, and the file has 1 after the length")
        .endsWith("\nhint: check whether the file is whole\n");
  }

  @Test
  void theResultIsReportedAsTheContractSays() throws IOException {
    Path in =
        write("in.safetensors", tensor("w", DType.F32, shape(8, 6)), tensor("n", DType.F32, shape(6)));
    Cli done =
        reshard("--from", "2x4:R,S0", "--to", "1x3:R,S1", in, out(), "--dtype", "bf16", "--json", "--verify");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.out().lines()).hasSize(1);
    assertThat(done.out())
        .startsWith(
            "{\"tensors\":2,\"defaulted\":1,\"bytes_in\":216,\"bytes_out\":132,\"sent_bytes\":132,\"local_bytes\":0,"
                + "\"seconds\":")
        .contains("\"GBps\":", "\"floor_s\":")
        .endsWith(
            "\"verified\":true,\"copied\":[],\"left_out\":[],"
                + "\"warning_count\":0,\"warnings\":[]}\n");
    assertThat(Files.readString(out().resolve("layout.json")))
        .contains("\"version\" : 1", "\"BF16\"", "1x3:R,S1", "1x3:R,R");
    assertThat(read(out().resolve("rank-00002.safetensors")).get(0).shape()).containsExactly(8, 2);
  }

  @Test
  void everyModeAndBucketGivesTheSameBytes() throws IOException {
    Path in =
        write(
            "in.safetensors",
            tensor("w", DType.F32, shape(37, 50)),
            tensor("n", DType.F32, shape(50)),
            tensor("i", DType.I16, shape(7, 3)));
    List<Object> asked = List.of("--from", "2x2:S0,S1", "--to", "3:S1", "--wire", "bf16", in);
    List<List<Object>> ways =
        List.of(
            List.of(),
            List.of("--mode", "staged"),
            List.of("--mode", "staged", "--bucket-bytes", "1"),
            List.of("--mode", "staged", "--bucket-bytes", "100"));
    for (List<Object> way : ways) {
      List<Object> all = new ArrayList<>(asked);
      all.add(folder.resolve("out" + ways.indexOf(way)));
      all.addAll(way);
      done(all.toArray());
      for (int rank = 0; rank < 3; rank++) {
        String name = "rank-0000" + rank + ".safetensors";
        assertThat(folder.resolve("out" + ways.indexOf(way)).resolve(name))
            .hasSameBinaryContentAs(folder.resolve("out0").resolve(name));
      }
    }
  }

  @Test
  void theSameInputsGiveTheSameBytes() throws IOException {
    Path in = write("in.safetensors", tensor("w", DType.F32, shape(7, 5)), tensor("b", DType.BOOL, shape(3)));
    for (String name : List.of("a", "b")) {
      done("--from", "2:S0", "--to", "3:S1", in, folder.resolve(name));
    }
    for (String file : List.of("rank-00000.safetensors", "rank-00002.safetensors", "layout.json")) {
      assertThat(folder.resolve("a").resolve(file)).hasSameBinaryContentAs(folder.resolve("b").resolve(file));
    }
  }

  @Test
  void thereAndBackIsTheSameFileInEveryForm() throws IOException {
    List<TestFile.Tensor> tensors = new ArrayList<>();
    for (DType dtype : DType.values()) {
      // Eight elements a row are whole bytes in every dtype; one byte before it puts the next out of line.
      tensors.add(tensor("one." + dtype, DType.U8, shape(1)));
      tensors.add(tensor(dtype.toString(), dtype, shape(4, 8)));
      tensors.add(tensor("none." + dtype, dtype, shape(0, 8)));
    }
    tensors.add(tensor("scalar", DType.F64, shape()));
    Path in = write("in.safetensors", tensors.toArray(new TestFile.Tensor[0]));
    done("--from", "2:R", "--to", "2x2:S0,R", in, folder.resolve("ranks"), "--verify");
    done("--to", "3:S0", folder.resolve("ranks"), folder.resolve("index"), "--max-shard-bytes", "1K", "--verify");
    done("--from", "1:R", "--to", "2@0:S0", folder.resolve("index"), folder.resolve("back.safetensors"), "--verify");
    assertThat(read(folder.resolve("back.safetensors"))).isEqualTo(tensors);
    assertThat(Files.readString(folder.resolve("index/model.safetensors.index.json")))
        .contains("\"total_size\"", "model-00001-of-");
  }

  @Test
  void aCutInsideAByteIsRefused() throws IOException {
    Path in = write("in.safetensors", tensor("q", DType.F4, shape(4, 6)));
    refused(3, List.of("tensor \"q\"", "f4"), "--from", "1:R", "--to", "2:S1", in, out());
    done("--from", "1:R", "--to", "3:S1", in, out(), "--verify");
    assertThat(read(out().resolve("rank-00001.safetensors")).get(0).shape()).containsExactly(4, 2);
  }

  @Test
  void layoutsMayCoverAnyRanks() throws IOException {
    TestFile.Tensor whole = tensor("w", DType.I32, shape(12));
    Path in = write("in.safetensors", whole);
    done("--from", "2@[900000,7]:S0", "--to", "4@[6,900000,1,3]:S0", in, out(), "--verify");
    try (Stream<Path> files = Files.list(out())) {
      assertThat(files.map(path -> path.getFileName().toString()).sorted())
          .containsExactly(
              "layout.json",
              "rank-00001.safetensors",
              "rank-00003.safetensors",
              "rank-00006.safetensors",
              "rank-900000.safetensors");
    }
    assertThat(read(out().resolve("rank-900000.safetensors")).get(0).bits())
        .containsExactly(Arrays.copyOfRange(whole.bits(), 3, 6));
    done("--to", "1@0:R", out(), folder.resolve("back.safetensors"), "--verify");
    assertThat(read(folder.resolve("back.safetensors"))).containsExactly(whole);
  }

  /** FSDP2 over tensor parallelism, as PyTorch stores it. */
  @Test
  void aDimensionMayBeCutByTensorAndThenByDataParallelRanks() throws IOException {
    TestFile.Tensor whole = tensor("w", DType.I32, shape(9));
    Path in = write("in.safetensors", whole);
    done("--from", "1:R", "--to", "dp=4xtp=2@0:SS0/2,S0", in, out(), "--verify");
    int[][] rows = {{0, 2}, {5, 6}, {2, 4}, {6, 7}, {4, 5}, {7, 8}, {0, 0}, {8, 9}};
    for (int rank = 0; rank < rows.length; rank++) {
      assertThat(read(out().resolve("rank-0000" + rank + ".safetensors")).get(0).bits())
          .containsExactly(Arrays.copyOfRange(whole.bits(), rows[rank][0], rows[rank][1]));
    }
    Path back = folder.resolve("back.safetensors");
    refused(
        2, List.of("tensor 'w' has extent 9 in dimension 0, which placement SS0/2", "unequal"),
        "--from", "8:SS0/2", "--to", "1@0:R", out(), back);
    refused(
        2, List.of("tensor 'w' has extent 9 in dimension 0, which placement SS0/3", "use S0"),
        "--from", "1:R", "--to", "2@0:SS0/3", in, back);
    done("--to", "1@0:R", out(), back, "--verify");
    assertThat(read(back)).containsExactly(whole);
  }

  private void ranks(TestFile.Tensor... perRank) throws IOException {
    for (int rank = 0; rank < perRank.length; rank++) {
      Path path = folder.resolve("in").resolve(String.format("rank-%05d.safetensors", rank));
      Files.createDirectories(path.getParent());
      TestFile.write(path, perRank[rank] == null ? List.of() : List.of(perRank[rank]), Map.of());
    }
  }

  private void rankFolderRefused(List<String> words, String from) throws IOException {
    refused(2, words, "--from", from, "--to", "1:R", folder.resolve("in"), out());
  }

  @Test
  void localShapesAreCheckedAgainstTheChunkRule() throws IOException {
    ranks(tensor("w", DType.F32, shape(3, 2)), tensor("w", DType.F32, shape(4, 2)));
    rankFolderRefused(
        List.of("tensor \"w\"", "rank 0", "expected shape [4, 2]", "found shape [3, 2]"), "2:S0");
    ranks(tensor("w", DType.F32, shape(2, 2)), tensor("w", DType.F32, shape(2, 3)));
    rankFolderRefused(List.of("rank 1", "expected shape [2, 2]", "found shape [2, 3]"), "2:S0");
    rankFolderRefused(List.of("rank 0", "[2, 3]", "found shape [2, 2]"), "2:S1");
    ranks(tensor("w", DType.F32, shape(2, 2)), tensor("w", DType.F16, shape(2, 2)));
    rankFolderRefused(List.of("rank 1", "expected dtype f32 as on rank 0", "found f16"), "2:S0");
    ranks(tensor("w", DType.F32, shape(2, 2)), tensor("w", DType.F32, shape(2)));
    rankFolderRefused(List.of("rank 1", "expected 2 dimensions as on rank 0", "found shape [2]"), "2:S0");
    ranks(tensor("w", DType.F32, shape(2)), null);
    rankFolderRefused(List.of("tensor \"w\"", "rank 1", "zero extent", "found none"), "2:S0");
    ranks(tensor("w", DType.F32, shape(2)), tensor("w", DType.F32, shape(2)));
    rankFolderRefused(List.of("rank-00002.safetensors is missing"), "3:S0");
    rankFolderRefused(List.of("rank-00001.safetensors exists", "not in the source layouts"), "1:S0");
    ranks(tensor("w", DType.F32, shape(3)), tensor("w", DType.F32, shape(2)));
    rankFolderRefused(List.of("tensor 'w' has extent 5 in dimension 0, which", "SS0/2"), "2:SS0/2");
    done("--from", "2:S0", "--to", "1:R", folder.resolve("in"), out());
  }

  @Test
  void layoutJsonMustAgree() throws IOException {
    ranks(tensor("w", DType.F32, shape(2)), tensor("w", DType.F32, shape(2)));
    Path json = folder.resolve("in/layout.json");
    String[][] cases = {
      {"{\"shape\":[5]}", "layout.json says shape [5]", "make [4]"},
      {"{\"shape\":[4],\"dtype\":\"BF16\"}", "says dtype bf16", "hold f32"},
      {"{\"shape\":[4],\"layout\":\"2:R\"}", "layout.json says shape [4]", "make [2]"},
      {"{\"shape\":[2],\"layout\":\"2:R\"}", "says layout 2:R", "--from says 2:S0"},
      {"{\"shape\":[4],\"layout\":\"2:S1\"}", "tensor 'w'", "S1"},
      {"{\"shape\":[4],\"layout\":\"2@[1,0]:S0\"}", "says layout", "--from says"}
    };
    for (String[] each : cases) {
      Files.writeString(json, "{\"version\":1,\"tensors\":{\"w\":" + each[0] + "}}");
      rankFolderRefused(List.of(each[1], each[2]), "2:S0");
    }
    Files.writeString(json, "{\"version\":1,\"tensors\":{\"w\":{\"shape\":[4]}}}");
    refused(2, List.of("--from is missing"), "--to", "1:R", folder.resolve("in"), out());
    Files.writeString(json, "{\"version\":1,\"tensors\":{\"w\":{\"shape\":[4],\"layout\":\"tp=2:S0\"}}}");
    done("--from", "2x1:S0,R", "--to", "1:R", folder.resolve("in"), out(), "--verify");
    done("--to", "1:R", folder.resolve("in"), out(), "--force", "--verify");
  }

  @Test
  void aPartialIsRefusedWhereItMakesNoSense() throws IOException {
    Path in = write("in.safetensors", tensor("w", DType.F32, shape(4)));
    refused(2, List.of("--from 2:P", "whole tensors"), "--from", "2:P", "--to", "2:R", in, out());
    refused(2, List.of("--to", "target cannot be Partial"), "--from", "2:R", "--to", "2:P", in, out());
    refused(2, List.of("--from is missing"), "--to", "2:R", in, out());
    ranks(tensor("w", DType.I32, shape(2)), tensor("w", DType.I32, shape(2)));
    rankFolderRefused(List.of("tensor \"w\"", "i32 can't be reduced by avg"), "2:P:avg");
    ranks(tensor("w", DType.C64, shape(2)), tensor("w", DType.C64, shape(2)));
    rankFolderRefused(List.of("tensor \"w\"", "c64 can't be reduced by sum"), "2:P");
  }

  @Test
  void castsTouchFloatingTensorsOnly() throws IOException {
    Path in =
        write(
            "in.safetensors",
            tensor("f", DType.F32, shape(4)),
            tensor("i", DType.I32, shape(4)),
            tensor("s", DType.F8E8M0, shape(4)),
            tensor("q", DType.F4, shape(4)));
    done("--from", "1:R", "--to", "1:R", in, out(), "--dtype", "F16", "--wire", "f8e5m2", "--verify");
    assertThat(read(out().resolve("rank-00000.safetensors")))
        .extracting(TestFile.Tensor::dtype)
        .containsExactly(DType.F16, DType.I32, DType.F8E8M0, DType.F4);
    for (String option : List.of("--dtype", "--wire")) {
      refused(2, List.of(option + " i32"), "--from", "1:R", "--to", "1:R", in, out(), option, "i32", "--force");
    }
  }

  @Test
  void f8WithScalesBesideItIsCastOnRequestOnly() throws IOException {
    Path in =
        write(
            "in.safetensors",
            tensor("a.weight", DType.F8E4M3, shape(4)),
            tensor("a.weight_scale_inv", DType.F32, shape(1)),
            tensor("b.weight", DType.F8E4M3, shape(4)));
    refused(
        2,
        List.of("tensor \"a.weight\"", "a.weight_scale_inv", "--ignore-scales"),
        "--from", "1:R", "--to", "1:R", in, out(), "--dtype", "bf16");
    refused(
        2, List.of("a.weight"), "--from", "1:R", "--to", "1:R", in, out(), "--wire", "f8e5m2");
    done("--from", "1:R", "--to", "1:R", in, out(), "--dtype", "bf16", "--ignore-scales", "--verify");
    done("--from", "1:R", "--to", "1:R", in, folder.resolve("plain"), "--verify");
    done("--from", "1:R", "--to", "1:R", in, folder.resolve("wide"), "--wire", "bf16", "--verify");
  }

  @Test
  void outMayNotBeInNorInsideItNorAroundIt() throws IOException {
    Path file = write("deep/in.safetensors", tensor("w", DType.U8, shape(4)));
    ranks(tensor("w", DType.U8, shape(4)));
    Path in = folder.resolve("in");
    Files.createSymbolicLink(folder.resolve("link"), in);
    String[] layouts = {"--from", "1:R", "--to", "1:R", "--force"};
    for (Path out :
        List.of(in, in.resolve("out"), in.resolve("../in"), folder.resolve("link"), folder.resolve("link/out"))) {
      refused(2, List.of("OUT is"), layouts[0], layouts[1], layouts[2], layouts[3], layouts[4], in, out);
    }
    refused(2, List.of("(OUT): the path is empty"), "--from", "1:R", "--to", "1:R", "--force", file, "");
    refused(2, List.of("(IN): the path is empty"), "--from", "1:R", "--to", "1:R", "", out());
    refused(2, List.of("OUT is IN itself"), "--from", "1:R", "--to", "1:R", "--force", file, file);
    refused(2, List.of("is inside OUT"), "--from", "1:R", "--to", "1:R", "--force", file, folder.resolve("deep"));
    refused(2, List.of("no such file"), "--from", "1:R", "--to", "1:R", folder.resolve("gone"), out());
    refused(2, List.of("does not exist"), "--from", "1:R", "--to", "1:R", file, folder.resolve("no/out"));
  }

  @Test
  void filesBesideTheTensorsAreCopiedOrNamed() throws IOException {
    write("in/model-1.safetensors", tensor("w", DType.U8, shape(4)));
    Path in = folder.resolve("in");
    Files.writeString(
        in.resolve("model.safetensors.index.json"), "{\"weight_map\":{\"w\":\"model-1.safetensors\"}}");
    List<String> copied =
        List.of("LICENSE", "config.json", "generation_config.json", "merges.txt", "tokenizer.json", "tokenizer.model");
    for (String name : copied) {
      Files.writeString(in.resolve(name), "text of " + name);
    }
    Files.delete(in.resolve("tokenizer.json"));
    Path cached = Files.writeString(folder.resolve("5f3a"), "text of tokenizer.json");
    Files.createSymbolicLink(in.resolve("tokenizer.json"), cached);
    write("in/consolidated.safetensors", tensor("w", DType.U8, shape(4)));
    Files.writeString(in.resolve("pytorch_model.bin.index.json"), "{}");
    Files.writeString(in.resolve("model.safetensors.index.fp16.json"), "{}");
    Files.writeString(in.resolve("layout.json"), "{}");
    Files.createSymbolicLink(in.resolve("vocab.json"), folder.resolve("gone"));
    Files.createDirectory(in.resolve("original"));
    try (RandomAccessFile large = new RandomAccessFile(in.resolve("words.txt").toFile(), "rw")) {
      large.setLength((64L << 20) + 1);
    }
    List<String> leftOut =
        List.of(
            "consolidated.safetensors", "layout.json", "model.safetensors.index.fp16.json", "original/",
            "pytorch_model.bin.index.json", "vocab.json", "words.txt");
    Cli done = reshard("--from", "1:R", "--to", "2:S0", in, out(), "--verify");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.out().lines())
        .startsWith("copied: " + String.join(", ", copied), "left out: " + String.join(", ", leftOut));
    assertThat(done.out()).matches(
        "(?s).*\n1 tensor: .* in, .* out; .* between ranks, .* local\n"
            + "[0-9.]+ m?s, [0-9.]+ k?M?B/s; a copy in memory takes [0-9.]+ [mu]?s\n"
            + out() + ": complete, verified\n");
    // Rank files and the index form hand them on; so does --force take them for Windlass's own.
    done("--to", "1:R", out(), folder.resolve("index"), "--max-shard-bytes", "1M");
    done("--from", "1:R", "--to", "1:R", in, folder.resolve("index"), "--max-shard-bytes", "1M", "--force");
    for (Path made : List.of(out(), folder.resolve("index"))) {
      for (String name : copied) {
        assertThat(made.resolve(name)).isRegularFile().hasContent("text of " + name);
      }
      leftOut.stream()
          .filter(name -> !name.equals("layout.json"))
          .forEach(name -> assertThat(made.resolve(name)).doesNotExist());
    }
    assertThat(reshard("--to", "1:R", out(), folder.resolve("w.safetensors"), "--json").out())
        .endsWith(
            "\"copied\":[],\"left_out\":[\"" + String.join("\",\"", copied)
                + "\"],\"warning_count\":0,\"warnings\":[]}\n");
  }

  @Test
  void filesOfAnIndexMayLieInFolders() throws IOException {
    Path in = Files.createDirectories(folder.resolve("in/sub/deep")).resolve("../..").normalize();
    write("in/sub/deep/model-1.safetensors", tensor("v", DType.U8, shape(4)));
    write("in/sub/model-1.safetensors", tensor("w", DType.U8, shape(6)));
    Files.writeString(
        in.resolve("model.safetensors.index.json"),
        "{\"weight_map\":{\"w\":\"sub/model-1.safetensors\","
            + "\"v\":\"sub/deep/model-1.safetensors\"}}");
    for (String name : List.of("config.json", "sub/config.json", "sub/deep/extra.safetensors")) {
      Files.writeString(in.resolve(name), "{}");
    }
    Files.createDirectory(in.resolve("sub/empty"));
    Cli done = reshard("--from", "1:R", "--to", "2:S0", in, out(), "--verify");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.out().lines())
        .startsWith(
            "copied: config.json",
            "left out: sub/config.json, sub/deep/extra.safetensors, sub/empty/");
    done("--to", "1:R", out(), folder.resolve("w.safetensors"));
    assertThat(TestFile.read(folder.resolve("w.safetensors")).tensors())
        .containsExactly(tensor("w", DType.U8, shape(6)), tensor("v", DType.U8, shape(4)));
  }

  @Test
  void aLinkIsSaidToBeOneAndWhereItLeads() throws IOException {
    Path in = write("in.safetensors", tensor("w", DType.U8, shape(4)));
    Path gone = folder.resolve("gone");
    Path link = Files.createSymbolicLink(folder.resolve("link"), gone);
    String said = link + ": is a symbolic link to " + gone + ", and nothing is there";
    refused(2, List.of(said), "--from", "1:R", "--to", "1:R", link, out());
    refused(2, List.of(said), "--from", "1:R", "--to", "1:R", in, link);
    refused(2, List.of(said), "--from", "1:R", "--to", "1:R", in, link, "--force");
    Path living = Files.createSymbolicLink(folder.resolve("living"), Files.createDirectory(out()));
    refused(2, List.of("is a symbolic link to " + out() + ";"), "--from", "1:R", "--to", "1:R", in, living);
  }

  @Test
  void anExistingOutIsRefusedOrExchanged() throws IOException {
    Path in = write("in.safetensors", tensor("w", DType.U8, shape(4)));
    done("--from", "1:R", "--to", "4:S0", in, out());
    refused(2, List.of("exists already", "--force"), "--from", "1:R", "--to", "2:S0", in, out());
    done("--from", "1:R", "--to", "2:S0", in, out(), "--force");
    try (Stream<Path> files = Files.list(out())) {
      assertThat(files).hasSize(3);
    }
    done("--from", "1:R", "--to", "2:S0", in, folder.resolve("x.safetensors"));
    refused(2, List.of("exists already"), "--from", "1:R", "--to", "2:S0", in, folder.resolve("x.safetensors"));
    done("--from", "1:R", "--to", "2:S0", in, folder.resolve("x.safetensors"), "--force");
  }

  @Test
  void forceDestroysOnlyWhatWindlassWroteOrAnEmptyFolder() throws IOException {
    Path in = write("in.safetensors", tensor("w", DType.U8, shape(4)));
    Path model = write("model/model.safetensors", tensor("w", DType.U8, shape(4)));
    Path home = Files.createDirectory(folder.resolve("home"));
    Files.writeString(home.resolve("thesis.txt"), "years");
    done("--from", "1:R", "--to", "2:S0", in, out());
    Files.writeString(out().resolve("config.json"), "{}");
    Path link = Files.createSymbolicLink(folder.resolve("link"), out());
    Object[][] cases = {
      {home, "holds thesis.txt"},
      {model, "is a file that Windlass did not write"},
      {model.getParent(), "holds model.safetensors"},
      {out(), "holds config.json"},
      {link, "is a symbolic link to"}
    };
    for (Object[] each : cases) {
      refused(2, List.of(each[0] + ": " + each[1]), "--from", "1:R", "--to", "2:S0", in, each[0], "--force");
    }
    Files.delete(out().resolve("config.json"));
    done("--from", "1:R", "--to", "3:S0", in, out(), "--force");
    done("--from", "1:R", "--to", "3:S0", in, out(), "--force", "--max-shard-bytes", "1M");
    Path empty = Files.createDirectory(folder.resolve("empty"));
    done("--from", "1:R", "--to", "2:S0", in, empty, "--force");
    assertThat(reshard("--help").out().replaceAll("\\s+", " ")).contains("Destroy and replace");
  }

  @Test
  void whatAKilledRunLeftIsRemovedByTheNext() throws IOException {
    Path in = write("in.safetensors", tensor("w", DType.U8, shape(4)));
    Path left = Files.createDirectories(folder.resolve(".out.windlass-99-00000000000000ff/content"));
    Files.writeString(left.resolve("rank-00000.safetensors"), "half");
    done("--from", "1:R", "--to", "1:R", in, out());
    assertThat(left.getParent()).doesNotExist();
  }

  @Test
  void replicasThatDifferAreNamedByVerify() throws IOException {
    TestFile.Tensor good = tensor("w", DType.F32, shape(2, 3));
    long[] changed = good.bits().clone();
    changed[4] ^= 1;
    ranks(good, good, new TestFile.Tensor("w", DType.F32, shape(2, 3), changed));
    refused(
        6,
        List.of("VerificationFailed", "tensor \"w\" differs at index [1, 1]", "rank 0", "rank 2"),
        "--from", "3:R", "--to", "1:R", folder.resolve("in"), out(), "--verify");
    done("--from", "3:R", "--to", "1:R", folder.resolve("in"), out());
  }

  @Test
  void malformedInputIsStatusTwoAndNamesTheFile() throws IOException {
    Path in = write("in.safetensors", tensor("w", DType.F32, shape(64)));
    try (RandomAccessFile file = new RandomAccessFile(in.toFile(), "rw")) {
      file.setLength(file.length() - 1);
    }
    refused(2, List.of(in.toString(), "reach past the file"), "--from", "1:R", "--to", "1:R", in, out());
    Files.writeString(in, "not safetensors at all");
    refused(2, List.of(in.toString(), "not a safetensors file"), "--from", "1:R", "--to", "1:R", in, out());
    Path empty = Files.createDirectories(folder.resolve("empty"));
    refused(2, List.of("holds neither"), "--from", "1:R", "--to", "1:R", empty, out());
  }

  @Test
  void manyRanksOnFewCores() throws IOException {
    Path in = write("in.safetensors", tensor("w", DType.U16, shape(64, 9)));
    done("--from", "8x4:R,S0", "--to", "4x8@0:S0,S1", in, out(), "--verify");
    done("--to", "1@0:R", out(), folder.resolve("back.safetensors"), "--verify");
    assertThat(read(folder.resolve("back.safetensors"))).isEqualTo(read(in));
  }

  @Test
  void tensorsLargerThanAStepMoveInWindows() throws IOException {
    Path in =
        write(
            "in.safetensors",
            tensor("one", DType.U8, shape(1)),
            tensor("w", DType.F64, shape(1, 3, 500, 1000)),
            tensor("long", DType.F4, shape(2, 9_000_000)));
    done("--from", "1:R", "--to", "2:S1", in, out(), "--verify");
    done("--to", "3:S2", out(), folder.resolve("columns"), "--verify", "--dtype", "f32");
    done("--to", "1:R", folder.resolve("columns"), folder.resolve("back.safetensors"), "--verify", "--dtype", "f64");
    TestFile.Tensor back = read(folder.resolve("back.safetensors")).get(2);
    assertThat(back).isEqualTo(tensor("long", DType.F4, shape(2, 9_000_000)));
  }

  /** Takes some 4 GB of disk: only where the system property {@code windlass.long} is true. */
  @Test
  void tensorsOfMoreThanTwoToThe31ElementsMove() throws IOException {
    assumeTrue(Boolean.getBoolean("windlass.long"), "-Dwindlass.long=true runs it");
    long[] shape = {3, (1L << 31) / 3 + 2};
    Path in = folder.resolve("in.safetensors");
    SafetensorsBytes.zeros(
        in,
        "{\"w\":{\"dtype\":\"U8\",\"shape\":" + Arrays.toString(shape) + ",\"data_offsets\":[0,"
            + shape[0] * shape[1] + "]}}",
        shape[0] * shape[1]);
    try (RandomAccessFile file = new RandomAccessFile(in.toFile(), "rw")) {
      file.seek(file.length() - 1);
      file.write(7);
    }
    done("--from", "1:R", "--to", "2:S1", in, out(), "--verify");
    try (RandomAccessFile file =
        new RandomAccessFile(out().resolve("rank-00001.safetensors").toFile(), "r")) {
      file.seek(file.length() - 2);
      assertThat(file.read()).isZero();
      assertThat(file.read()).isEqualTo(7);
    }
  }

  @Test
  void aCheckpointOfNoTensorsIsOneToo() throws IOException {
    Path in = write("in.safetensors");
    done("--from", "2:S0", "--to", "2:S0", in, out(), "--verify");
    assertThat(read(out().resolve("rank-00001.safetensors"))).isEmpty();
    Path index = folder.resolve("index");
    done("--from", "1:R", "--to", "1:R", in, index, "--max-shard-bytes", "1M");
    done("--from", "1:R", "--to", "1:R", index, folder.resolve("again"), "--max-shard-bytes", "1M");
    write("index/model.safetensors", tensor("w", DType.U8, shape(4)));
    refused(
        2,
        List.of("weight_map is empty", "model.safetensors is in the same folder"),
        "--from", "1:R", "--to", "1:R", index, folder.resolve("third"));
  }

  /** From no descriptor for the JVM's own files to enough for some of the files of OUT. */
  @ParameterizedTest
  @ValueSource(ints = {10, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 40, 48})
  void aLackOfDescriptorsIsNamedAndWhatIsLeftToo(int limit) throws Exception {
    Path in = folder.resolve("in.safetensors");
    TestFile.write(in, List.of(tensor("w", DType.F32, new int[] {64})), Map.of());
    List<String> command =
        new ArrayList<>(
            List.of("sh", "-c", "ulimit -n " + limit + "; exec \"$@\"", "sh"));
    command.addAll(
        ChildCommand.of("reshard", "--from", "1:R", "--to", "64:S0", in, out()).command());
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    process.waitFor();
    assumeTrue(said.startsWith("windlass: "), said);
    assertThat(process.exitValue()).as(said).isEqualTo(7);
    assertThat(said)
        .contains("Too many open files", "hint: raise the limit of open files (ulimit -n)");
    try (Stream<Path> entries = Files.list(folder)) {
      List<String> left =
          entries
              .map(path -> path.getFileName().toString())
              .filter(name -> name.startsWith("."))
              .toList();
      assertThat(said.contains("nothing was left")).as(said + left).isEqualTo(left.isEmpty());
      assertThat(left).allSatisfy(name -> assertThat(said).contains(name));
    }
  }
}
