// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.testing.TestFile;

/** What is seldom meant is done and said. */
class WarningsTest {
  @TempDir Path folder;

  private final List<TestFile.Tensor> tensors = new ArrayList<>();

  private void add(String name, int... shape) {
    int elements = 1;
    for (int extent : shape) {
      elements *= extent;
    }
    long[] bits = new long[elements];
    for (int i = 0; i < elements; i++) {
      bits[i] = Float.floatToIntBits(1 + i);
    }
    tensors.add(new TestFile.Tensor(name, DType.F32, shape, bits));
  }

  private Cli reshard(String rules, Object... options) throws IOException {
    Path in = folder.resolve("in.safetensors");
    TestFile.write(in, tensors, Map.of());
    List<Object> arguments =
        new ArrayList<>(List.of("reshard", in, folder.resolve("out"), "--from", "1:R", "--force", "--json"));
    if (!rules.isEmpty()) {
      Path file = folder.resolve("rules.json");
      arguments.addAll(List.of("--rules", Files.writeString(file, rules.replace('\'', '"'))));
    }
    arguments.addAll(List.of(options));
    return Cli.run(arguments.toArray());
  }

  /** Done with this many warnings, which the result has too. */
  private void warns(int count, String words, String rules, Object... options) throws IOException {
    Cli done = reshard(rules, options);
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err().lines().filter(line -> line.startsWith("windlass: warning: "))).as(done.err()).hasSize(count);
    assertThat(done.err()).contains(words);
    assertThat(warnings(done)).isEqualTo(printed(done));
    assertThat(done.out()).contains("\"warning_count\":" + count + ",");
  }

  /** What the JSON result says. */
  private static List<String> warnings(Cli done) throws IOException {
    assertThat(done.out().lines()).hasSize(1);
    List<String> warnings = new ArrayList<>();
    try (JsonParser json = new JsonFactory().createParser(done.out())) {
      while (!"warnings".equals(json.nextFieldName())) {
        assertThat(json.currentToken()).isNotNull();
      }
      json.nextToken();
      while (json.nextToken() == JsonToken.VALUE_STRING) {
        warnings.add(json.getText());
      }
    }
    return warnings;
  }

  private static List<String> printed(Cli done) {
    String begin = "windlass: warning: ";
    return done.err().lines()
        .filter(line -> line.startsWith(begin))
        .map(line -> line.substring(begin.length()))
        .toList();
  }

  @Test
  void ofManyWarningsTheResultHasSomeAndTheirNumber() throws IOException {
    add("w", 4);
    String rules = "[" + "{'match':'none'},".repeat(250) + "{'match':'w'}]";
    Cli done = reshard(rules, "--to", "1:R");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(printed(done)).hasSize(250);
    assertThat(warnings(done)).isEqualTo(printed(done).subList(0, 100));
    assertThat(done.out()).contains("\"warning_count\":250,");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "a.qkv_proj.weight", "a.qkv_proj.bias", "a.query_key_value.weight", "a.gate_up_proj.weight", "a.W_pack.weight",
        "attn.Wqkv.weight", "a.in_proj_weight", "qkv.weight", "a.to_qkv.weight", "a.linear_qkv.weight", "a.dense_h_to_4h.weight"
      })
  void aFusedWeightIsNotOneWeight(String name) throws IOException {
    add(name, 12, 4);
    warns(1, "tensor \"" + name + "\": the name is that of several weights", "", "--to", "2:S0");
    warns(0, "", "", "--to", "2:S1");
    warns(0, "", "", "--to", "2:R");
    warns(0, "", "[{'match':'*','to':'2:S0'}]", "--to", "2:R");
    add("other." + name, 12, 4);
    warns(1, "2 tensors \"" + name + "\", \"other." + name + "\": the name is", "", "--to", "2:S0");
  }

  /** Of experts, one after another, each with the biases of both. */
  @Test
  void theFirstDimensionOfStackedBiasesIsTheExperts() throws IOException {
    add("experts.gate_up_proj_bias", 4, 12);
    warns(0, "", "", "--to", "2:S0");
    warns(1, "the name is that of several weights", "", "--to", "2:S1");
  }

  @Test
  void ofGpt2TheOtherDimensionIsFused() throws IOException {
    add("h.0.attn.c_attn.weight", 4, 12);
    warns(1, "c_attn", "", "--to", "2:S1");
    warns(0, "", "", "--to", "2:S0");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "l.mlp.gate.e_score_correction_bias", "l.router.bias", "l.mlp.gate.bias", "l.router_bias", "m.A_log", "m.dt_bias",
        "l.rotary_emb.inv_freq", "l.mlp.gate.expert_bias"
      })
  void whatUsuallyKeepsItsDtypeIsNamed(String name) throws IOException {
    add(name, 4);
    warns(1, name + "\": such tensors usually keep their dtype, and become bf16", "", "--to", "1:R", "--dtype", "bf16");
    warns(0, "", "[{'match':'*','dtype':'bf16'}]", "--to", "1:R");
    warns(0, "", "", "--to", "1:R", "--dtype", "f64");
    warns(0, "", "", "--to", "1:R");
  }

  @Test
  void valuesThatACastMakesEqualAreCounted() throws IOException {
    long[] bits = new long[400];
    for (int i = 0; i < bits.length; i++) {
      bits[i] = Float.floatToIntBits(100 + i / 100f);
    }
    tensors.add(new TestFile.Tensor("a", DType.F32, new int[] {20, 20}, bits));
    // Between 100 and 104 bf16 has steps of a half.
    String words = "tensor \"a\": under a tenth of the different values are left as bf16";
    warns(1, words, "", "--to", "2:S0", "--dtype", "bf16");
    tensors.add(new TestFile.Tensor("b", DType.F32, new int[] {400}, bits));
    warns(1, "2 tensors \"a\", \"b\": under a tenth", "", "--to", "2:S0", "--dtype", "bf16");
    tensors.remove(1);
    warns(0, "", "", "--to", "2:S0", "--dtype", "f16");
    warns(0, "", "[{'match':'a','dtype':'f32'}]", "--to", "2:S0", "--dtype", "bf16");
  }

  /** Many values around 0, or within an octave, share codes of bf16, and mean what they did. */
  @Test
  void weightsThatACastRoundsAreNot() throws IOException {
    Random random = new Random(1);
    for (String name : List.of("lora_A.weight", "lora_B.weight", "uniform")) {
      float[] values = new float[name.equals("lora_A.weight") ? 32_768 : 65_536];
      for (int i = 0; i < values.length; i++) {
        float normal = (float) random.nextGaussian();
        values[i] = name.equals("uniform") ? 1 + random.nextFloat() : 0.02f * normal;
      }
      f32(name, new int[] {values.length / 4096, 4096}, values);
    }
    warns(0, "", "", "--to", "1:R", "--dtype", "bf16");
    warns(0, "", "", "--to", "2:S1", "--wire", "bf16");
  }

  private void f32(String name, int[] shape, float... values) {
    long[] bits = new long[values.length];
    for (int i = 0; i < bits.length; i++) {
      bits[i] = Float.floatToIntBits(values[i]);
    }
    tensors.add(new TestFile.Tensor(name, DType.F32, shape, bits));
  }

  @Test
  void aCountThatACastChangesIsNamed() throws IOException {
    f32("state.0.step", new int[0], 1001);
    f32("state.1.step", new int[] {1}, 123457);
    f32("scale", new int[0], 2.6592f);
    f32("epoch", new int[0], 128);
    String words = "2 tensors \"state.0.step\", \"state.1.step\": one whole number, such as a count of steps";
    warns(1, words, "", "--to", "2:R", "--dtype", "bf16");
    warns(1, words, "", "--to", "2:R", "--wire", "bf16");
    warns(0, "", "[{'match':'*step','dtype':'f32'}]", "--to", "2:R", "--dtype", "bf16");
    warns(1, "tensor \"state.1.step\": one value is larger than f16 has them", "", "--to", "2:R", "--dtype", "f16");
    warns(1, "2 tensors", "", "--to", "2:R", "--dtype", "f8e4m3");
    warns(0, "", "", "--to", "2:R");
  }

  @ParameterizedTest
  @ValueSource(strings = {"f16 65504 65536", "f8e4m3 448 512", "f8e4m3 460 600", "f8e5m2 57344 65536", "bf16 3.3e38 3.4028e38"})
  void aValueBeyondTheDtypeIsNamed(String limits) throws IOException {
    String[] words = limits.split(" ");
    f32("w", new int[] {3}, -1.3f, -Float.parseFloat(words[1]), Float.POSITIVE_INFINITY);
    warns(0, "", "", "--to", "1:R", "--dtype", words[0]);
    f32("v", new int[] {3}, 1.4f, Float.NaN, -Float.parseFloat(words[2]));
    warns(1, "tensor \"v\": one value is larger than " + words[0], "", "--to", "1:R", "--dtype", words[0]);
  }

  @Test
  void integersThatADefaultAddsUpAreNamed() throws IOException {
    TestFile.Tensor step = new TestFile.Tensor("step", DType.I64, new int[0], new long[] {5});
    Path in = Files.createDirectories(folder.resolve("ranks"));
    for (int rank = 0; rank < 2; rank++) {
      TestFile.write(in.resolve("rank-0000" + rank + ".safetensors"), List.of(step), Map.of());
    }
    Path rules = Files.writeString(folder.resolve("r.json"), "[{\"match\":\"step\"}]");
    for (String op : List.of("P", "P:max", "R", "P rule")) {
      List<Object> call = new ArrayList<>(List.of("reshard", in, folder.resolve("o"), "--force", "--to", "1:R"));
      call.addAll(List.of("--from", "2:" + op.split(" ")[0]));
      call.addAll(op.endsWith("rule") ? List.of("--rules", rules) : List.of());
      Cli done = Cli.run(call.toArray());
      assertThat(done.status()).as(done.err()).isZero();
      assertThat(done.err().contains("tensor \"step\": integers, such as a count of steps, which 2:P adds up"))
          .as(op + done.err()).isEqualTo(op.equals("P"));
    }
  }

  @Test
  void partsOfHeadsAreNamed() throws IOException {
    add("q.weight", 256, 2);
    add("k.weight", 128, 2);
    String rule = "[{'match':'{p}.weight','parts':['q','k'],'dim':0,'as':'qk.weight'%s}]";
    warns(1, "2 tensors \"q.weight\", \"k.weight\": ", String.format(rule, ""), "--to", "4:S0");
    warns(0, "", String.format(rule, ",'unit':32"), "--to", "4:S0");
    warns(0, "", String.format(rule, ""), "--to", "4:S1");
    Cli failed = reshard(String.format(rule, ",'unit':64"), "--to", "4:S0");
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err())
        .contains("each rank would hold 32 of the 128 of part \\\"k\\\" along dimension 0, which are no whole units of 64");
  }

  @Test
  void aDimensionThatFewTensorsHaveIsNotCutInSilence() throws IOException {
    add("w", 4, 4);
    add("a", 4);
    add("b", 4);
    Cli failed = reshard("", "--to", "4:S7");
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err())
        .contains("--to 4:S7: dimension 7, which S7 cuts, is one that no tensor has: tensors have 2 at most");
    warns(1, "--to 2:S1: dimension 1, which S1 cuts, is one that 1 of 3 tensors have", "", "--to", "2:S1");
    warns(0, "", "", "--to", "2:S0");
    String ruled = "[{'match':'w','to':'2:S0'}]";
    warns(1, "--to 2:S1: dimension 1, which S1 cuts, is one that none of 2 tensors have", ruled, "--to", "2:S1");
    warns(1, "2 tensors \"a\", \"b\"", ruled, "--to", "2:S1");
    warns(0, "", "[{'match':'w','to':'2:S1'}]", "--to", "2:S1");
    warns(0, "", "[{'match':'w','to':'2:R'},{'match':'a','to':'2:S0'},{'match':'b','to':'2:S0'}]", "--to", "2:S1");
  }

  /** Whatever the tensor is called. */
  @ParameterizedTest
  @ValueSource(strings = {"m.gu", "m.gate_up_proj.weight"})
  void whatWasFusedIsNotCutAcrossInSilence(String name) throws IOException {
    add("m.gate", 8, 6);
    add("m.up", 8, 6);
    String rule = "[{'match':'m.{p}','parts':['gate','up'],'dim':0,'unit':1,'as':'" + name + "'}]";
    warns(0, "", rule, "--to", "4:S0");
    Path fused = Files.move(folder.resolve("out"), folder.resolve("fused"));
    for (String to : List.of("2:S0", "4:S0", "2x2:R,S0", "2@0:SS0/4", "8:S0*2")) {
      String warning = "\"" + name + "\": 4:SS0/2 has it in 2 parts, each cut by itself, and ";
      assertThat(again(fused, to))
          .as(to)
          .contains(warning + to.replace("@0", "") + " cuts across them")
          .hasLineCount(1);
    }
    for (String to : List.of("2:SS0/2", "4:SS0/2", "2x2:SS0/2,SS0/2", "4:S1", "1:R", "4:R")) {
      assertThat(again(fused, to)).as(to).doesNotContain("cuts across");
    }
    Path rules = Files.writeString(folder.resolve("r.json"), "[{\"match\":\"*\",\"to\":\"2:S0\"}]");
    assertThat(again(fused, "4:S0", "--rules", rules)).isEmpty();
  }

  /** What FSDP cuts of what tensor parallelism cuts is one tensor. */
  @Test
  void aStridedCutThatGoesWithAPlainOneIsNoFusion() throws IOException {
    add("w", 8, 6);
    warns(0, "", "", "--to", "2x4:SS0/4,S0");
    Path cut = Files.move(folder.resolve("out"), folder.resolve("cut"));
    assertThat(again(cut, "2:S0")).isEmpty();
  }

  private String again(Path in, String to, Object... more) {
    Path out = folder.resolve("again");
    List<Object> call = new ArrayList<>(List.of("reshard", in, out, "--force", "--to", to));
    call.addAll(List.of(more));
    Cli done = Cli.run(call.toArray());
    assertThat(done.status()).as(done.err()).isZero();
    return done.err();
  }

  @Test
  void aRulesDtypeThatIsForNoneOfItsTensorsIsNamed() throws IOException {
    tensors.add(new TestFile.Tensor("step", DType.I64, new int[0], new long[] {7}));
    String rule = "[{'match':'*','dtype':'f32'}]";
    warns(1, "tensor \"step\": ", rule, "--to", "1:R");
    warns(1, "[0].dtype: is for floating tensors, and changes none here", rule, "--to", "1:R");
    add("w", 4);
    warns(0, "", rule, "--to", "1:R");
  }

  @Test
  void layoutsAreShownAsTheUserWroteThem() throws IOException {
    add("a.qkv_proj.weight", 12, 4);
    warns(1, "which 2:S0 cuts as one", "", "--to", "2:S0");
    warns(1, "which 2@4:S0 cuts as one", "", "--to", "2@4:S0");
    assertThat(reshard("", "--to", "2@0:S7").err()).contains("--to 2@0:S7: dimension 7");
  }

  /** Fewer heads of keys than ranks. */
  @Test
  void theRulesThatAreNamedForFewHeadsAreRight() throws IOException {
    add("a.q_proj.weight", 1024, 2);
    add("a.k_proj.weight", 256, 2);
    String join =
        "{'match':'a.{p}_proj.weight','parts':['q','k'],'dim':0,'unit':128,'as':'a.qk.weight'}";
    Cli failed = reshard("[" + join + "]", "--to", "8:S0");
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err().replace("\\", ""))
        .contains(
            "give it a layout of its own, as \"2x4:S0,R\": 4 ranks share each unit");
    String own = join.replace("'k'", "{'name':'k','to':'2x4:S0,R'}");
    warns(0, "", "[" + own + "]", "--to", "8:S0", "--verify");
    Path fused = folder.resolve("out/rank-00003.safetensors");
    assertThat(TestFile.read(fused).tensors().get(0).shape()[0]).isEqualTo(128 + 128);
    warns(0, "", "[{'match':'*k_proj*','to':'2x4:S0,R'}]", "--to", "8:S0", "--verify");
    Path file = folder.resolve("out/rank-00003.safetensors");
    assertThat(TestFile.read(file).tensors().get(1).shape()[0]).isEqualTo(128);
  }

  private static final int LARGE = 70_003;

  /** A large tensor that has {@code value} at one place, and infinite values before. */
  private void large(String name, DType dtype, int place, double value) {
    long[] bits = new long[LARGE];
    for (int i = 0; i < LARGE; i++) {
      bits[i] = bits(dtype, 1 + i % 7);
    }
    bits[5] = bits(dtype, Double.NEGATIVE_INFINITY);
    bits[place] = bits(dtype, value);
    tensors.add(new TestFile.Tensor(name, dtype, new int[] {LARGE}, bits));
  }

  private static long bits(DType dtype, double value) {
    return switch (dtype) {
      case F64 -> Double.doubleToLongBits(value);
      case BF16 -> Float.floatToIntBits((float) value) >>> 16;
      default -> Float.floatToIntBits((float) value);
    };
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ' ',
      value = {
        "F32 F16 --dtype 65504 1e6", "F32 F8E5M2 --dtype 57344 65536", "F32 F8E4M3 --dtype 460 600",
        "BF16 F16 --dtype 65024 66048", "BF16 F8E4M3 --dtype 448 1e30", "F64 BF16 --dtype 3e38 1e39",
        "F64 F32 --dtype 3e38 -1e39", "F32 F16 --wire 65504 -1e6", "F32 F8E4M3 --wire 448 1e6",
        "BF16 F8E5M2 --wire 57344 65536"
      })
  void aValueOfALargeTensorBeyondTheDtypeIsNamed(
      DType from, DType to, String option, double kept, double lost) throws IOException {
    for (int place : new int[] {0, 1, 35_001, 35_002, LARGE - 1}) {
      tensors.clear();
      large("v", from, place, kept);
      warns(0, "", "", "--to", "3:S0", option, to, "--verify");
      large("w", from, place, lost);
      large("x", from, place, lost);
      warns(
          1, "2 tensors \"w\", \"x\": 2 values are larger than " + to + " has them; a rule with", "",
          "--to", "3:S0", option, to, "--verify");
    }
    warns(1, "2 values are larger", "", "--to", "2:R", option, to, "--launch", "processes");
    warns(0, "", "[{'match':'*','dtype':'" + from + "'}]", "--to", "2:R", "--dtype", to);
  }

  @Test
  void valuesThatRanksHaveSeveralTimesAreCountedOnce() throws IOException {
    large("w", DType.F32, 40_000, 1e6);
    warns(0, "", "", "--to", "2x2:S0,R");
    Path in = Files.move(folder.resolve("out"), folder.resolve("in"));
    assertThat(again(in, "1:R", "--dtype", "f16")).contains("tensor \"w\": one value is larger than f16");
    assertThat(again(in, "1:R", "--dtype", "bf16")).isEmpty();
    for (int rank = 0; rank < 2; rank++) {
      TestFile.write(in.resolve("rank-0000" + rank + ".safetensors"), tensors, Map.of());
    }
    Files.delete(in.resolve("rank-00002.safetensors"));
    Files.delete(in.resolve("rank-00003.safetensors"));
    Files.delete(in.resolve("layout.json"));
    assertThat(again(in, "1:R", "--from", "2:P", "--dtype", "f16"))
        .contains("tensor \"w\": sums may be larger than f16");
  }

  @Test
  void anInputWithoutTensorsIsNamed() throws IOException {
    warns(1, "in.safetensors: has no tensors, and OUT gets none", "", "--to", "2:S0");
  }

  @Test
  void aFolderThatIsCalledAsAFileIsRefused() throws IOException {
    add("w", 4);
    reshard("", "--to", "1:R");
    Path out = folder.resolve("new.safetensors");
    Cli failed =
        Cli.run(
            "reshard", folder.resolve("in.safetensors"), out, "--from", "1:R", "--to", "1:R",
            "--max-shard-bytes", "8");
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err())
        .contains(out + ": --max-shard-bytes writes a folder, but this is the name of a file; name a folder");
    assertThat(out).doesNotExist();
  }
}
