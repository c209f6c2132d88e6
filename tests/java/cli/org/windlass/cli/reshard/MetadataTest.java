// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.testing.SafetensorsBytes;
import org.windlass.testing.TestFile;

/** What becomes of {@code __metadata__}, and of the names in it that are tied to stored tensors. */
class MetadataTest {
  @TempDir Path folder;

  private static TestFile.Tensor tensor(String name) {
    return new TestFile.Tensor(name, DType.U8, new int[] {4}, new long[] {1, 2, 3, 4});
  }

  private Path in(Map<String, String> metadata, TestFile.Tensor... tensors) throws IOException {
    Path path = folder.resolve("in.safetensors");
    TestFile.write(path, List.of(tensors), new LinkedHashMap<>(metadata));
    return path;
  }

  private Cli reshard(Path in, String rules, Object... options) throws IOException {
    Path file = Files.writeString(folder.resolve("rules.json"), rules.replace('\'', '"'));
    List<Object> arguments =
        new ArrayList<>(List.of("reshard", in, out(), "--from", "1:R", "--to", "1:R", "--force", "--rules", file));
    arguments.addAll(List.of(options));
    return Cli.run(arguments.toArray());
  }

  private Path out() {
    return folder.resolve("out.safetensors");
  }

  private TestFile.Content done(Path in, String rules) throws IOException {
    Cli done = reshard(in, rules, "--verify");
    assertThat(done.status()).as(done.err()).isZero();
    return TestFile.read(out());
  }

  @Test
  void aTiedNameFollowsItsTensor() throws IOException {
    Map<String, String> tied = Map.of("format", "pt", "lm_head.weight", "embed.weight");
    Path in = in(tied, tensor("embed.weight"), tensor("b"));
    assertThat(done(in, "[]").metadata()).isEqualTo(tied);
    assertThat(done(in, "[{'match':'embed.weight','as':'e'}]").metadata())
        .isEqualTo(Map.of("format", "pt", "lm_head.weight", "e"));
    assertThat(done(in, "[{'match':'embed.weight','as':['e','f']}]").metadata())
        .isEqualTo(Map.of("format", "pt", "lm_head.weight", "e"));
  }

  @Test
  void aRuleForATiedNameMakesATensorOfIt() throws IOException {
    Path in = in(Map.of("lm_head.weight", "embed.weight"), tensor("embed.weight"));
    TestFile.Content made =
        done(in, "[{'match':'embed.weight','as':'e'},{'match':'lm_head.weight','as':'head'}]");
    assertThat(made.metadata()).isEmpty();
    assertThat(made.tensors()).containsExactly(tensor("e"), tensor("head"));
    assertThat(done(in, "[{'match':'lm_head.weight','to':'1:R'}]").tensors())
        .containsExactly(tensor("embed.weight"), tensor("lm_head.weight"));
    Cli failed = reshard(in, "[{'match':'lm_head.weight','from':'1:R'}]");
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err()).contains("[0].from: \"lm_head.weight\" is another name of tensor \"embed.weight\"");
    assertThat(done(in, "[{'match':'{x}.weight','from':'1:R'}]").tensors())
        .containsExactly(tensor("embed.weight"), tensor("lm_head.weight"));
    String both = "[{'match':'lm_head.weight','from':'1:R'},{'match':'embed.weight','from':'%s'}]";
    assertThat(done(in, String.format(both, "1:R")).tensors()).hasSize(2);
    assertThat(reshard(in, String.format(both, "2:R")).status()).isEqualTo(2);
  }

  @Test
  void aTiedNameThatIsATensorOfItsOwnIsLeftOutWithAWord() throws IOException {
    Path in = in(Map.of("b", "a", "format", "pt"), tensor("a"), tensor("b"));
    Cli done = reshard(in, "[]");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err())
        .contains("__metadata__ \"b\": says that it is another name of tensor \"a\", but a tensor has that");
    assertThat(TestFile.read(out()).metadata()).isEqualTo(Map.of("format", "pt"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{'match':'x.0.w','transpose':true}", "{'match':'x.0.w','transpose':true,'as':'wte'}",
        "{'match':'x.0.w','transpose':[1,0],'as':['wte','f']}",
        "{'match':'x.{e}.w','stack':true,'as':'x.w'}"
      })
  void aNameWhoseTensorIsTransposedOrStackedIsLeftOut(String rule) throws IOException {
    TestFile.Tensor square =
        new TestFile.Tensor("x.0.w", DType.U8, new int[] {2, 2}, new long[] {1, 2, 3, 4});
    Cli done = reshard(in(Map.of("lm_head.weight", "x.0.w"), square), "[" + rule + "]");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err())
        .contains(
            "__metadata__ \"lm_head.weight\": names tensor \"x.0.w\", which is not written as a separate tensor; the"
                + " name is left out");
    assertThat(TestFile.read(out()).metadata()).isEmpty();
  }

  @Test
  void aNameWhoseTensorIsJoinedIsLeftOut() throws IOException {
    Path in = in(Map.of("tied", "x.0"), tensor("x.0"), tensor("x.1"));
    Cli done = reshard(in, "[{'match':'x.{n}','stack':true,'as':'x'}]");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err()).contains("__metadata__ \"tied\": names tensor \"x.0\", which is not written");
    assertThat(TestFile.read(out()).metadata()).isEmpty();
  }

  @Test
  void whatFilesDifferInIsLeftOut() throws IOException {
    Path ranks = Files.createDirectory(folder.resolve("ranks"));
    for (int rank = 0; rank < 2; rank++) {
      TestFile.write(
          ranks.resolve("rank-0000" + rank + ".safetensors"),
          List.of(tensor("w")),
          Map.of("format", "pt", "offset", "" + rank));
    }
    Cli done = Cli.run("reshard", ranks, out(), "--from", "2:S0", "--to", "1:R");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err()).contains("warning: ", "__metadata__ \"offset\" is \"1\", and \"0\" in");
    assertThat(TestFile.read(out()).metadata()).isEqualTo(Map.of("format", "pt"));
  }

  @Test
  void nullIsNone() throws IOException {
    Path in =
        SafetensorsBytes.write(
            folder.resolve("null.safetensors"),
            "{\"__metadata__\":null,\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
            new byte[] {1, 2, 3, 4});
    assertThat(done(in, "[]").tensors()).containsExactly(tensor("a"));
  }

  @Test
  void filesOfAnOverlayThatDoNotCountAreNamed() throws IOException {
    Path overlay = Files.createDirectory(folder.resolve("overlay"));
    TestFile.write(overlay.resolve("x.safetensors"), List.of(tensor("a"), tensor("old")), Map.of());
    Files.writeString(
        overlay.resolve("model.safetensors.index.json"), "{\"weight_map\":{\"a\":\"x.safetensors\"}}");
    Cli done = Cli.run("reshard", overlay, out(), "--from", "1:R", "--to", "1:R");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err()).contains("tensor \"old\" is not read, since the weight_map");
    assertThat(TestFile.read(out()).tensors()).containsExactly(tensor("a"));
  }

  @Test
  void whatStandsBesideASingleFileIsCopied() throws IOException {
    Path one = Files.createDirectory(folder.resolve("one"));
    TestFile.write(one.resolve("model.safetensors"), List.of(tensor("a")), Map.of());
    Files.writeString(one.resolve("config.json"), "{}");
    Files.writeString(one.resolve("training.bin"), "");
    Cli done = Cli.run("reshard", one, folder.resolve("out"), "--from", "1:R", "--to", "2:S0", "--json");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.out()).contains("\"copied\":[\"config.json\"],\"left_out\":[\"training.bin\"]");
  }

  @Test
  void dtypesOfOtherMachinesMoveAndAreNotCast() throws IOException {
    for (DType dtype : List.of(DType.F8E4M3FNUZ, DType.F8E5M2FNUZ)) {
      long[] bits = {0, 127, 128, 255};
      TestFile.Tensor tensor = new TestFile.Tensor("w", dtype, new int[] {4}, bits);
      Path in = in(Map.of(), tensor);
      Path ranks = folder.resolve("ranks-" + dtype);
      Cli done = Cli.run("reshard", in, ranks, "--from", "1:R", "--to", "2@0:S0", "--verify");
      assertThat(done.status()).as(done.err()).isZero();
      assertThat(TestFile.read(ranks.resolve("rank-00001.safetensors")).tensors())
          .containsExactly(new TestFile.Tensor("w", dtype, new int[] {2}, new long[] {128, 255}));
      assertThat(done(ranks.resolve("rank-00001.safetensors"), "[]").tensors()).hasSize(1);
      Cli failed = reshard(in, "[]", "--dtype", "bf16");
      assertThat(failed.status()).isEqualTo(3);
      assertThat(failed.err()).contains("tensor \"w\": " + dtype + " is not cast");
      assertThat(Cli.run("reshard", in, out(), "--from", "1:R", "--to", "1:R", "--dtype", "" + dtype).status()).isEqualTo(2);
    }
  }
}
