// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.TestFile;

/** Quantized weights and their scales stay together, in whatever way a reshard changes them. */
class ScalesTest {
  @TempDir Path folder;

  private final List<TestFile.Tensor> tensors = new ArrayList<>();
  private int runs;

  private void add(String name, DType dtype, int... shape) {
    int elements = 1;
    for (int extent : shape) {
      elements *= extent;
    }
    long[] bits = new long[elements];
    for (int i = 0; i < elements; i++) {
      bits[i] = i * 0x9E3779B97F4A7C15L >>> 64 - Math.min(dtype.bits(), 31);
    }
    tensors.add(new TestFile.Tensor(name, dtype, shape, bits));
  }

  private Cli reshard(String rules, Object... options) throws IOException {
    Path in = folder.resolve("in.safetensors");
    TestFile.write(in, tensors, Map.of());
    List<Object> arguments = new ArrayList<>(List.of("reshard", in, out(), "--from", "1:R"));
    if (!rules.isEmpty()) {
      Path file = folder.resolve("rules.json");
      arguments.addAll(List.of("--rules", Files.writeString(file, rules.replace('\'', '"'))));
    }
    runs++;
    arguments.set(2, out());
    arguments.addAll(List.of(options));
    return Cli.run(arguments.toArray());
  }

  private Path out() {
    return folder.resolve("out" + runs);
  }

  private void done(String rules, Object... options) throws IOException {
    Cli done = reshard(rules, options);
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err()).doesNotContain("warning");
  }

  private void refused(String words, String rules, Object... options) throws IOException {
    Cli failed = reshard(rules, options);
    assertThat(failed.status()).as(failed.err()).isEqualTo(2);
    assertThat(failed.err()).contains(words);
    assertThat(out()).doesNotExist();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "weight_scale", "weight_scale_inv", "scale", "scale_weight", "scale_inv", "scales", "weight.scale",
        "zero_point", "weight_zero_point", "qzeros", "g_idx", "amax", "weight_quantizer._amax", "weight.absmax",
        "weight_scale2", "scaling_factor", "SCB", "input_scale", "qscale_weight", "wscales", "weight.quant_map"
      })
  void anF8WeightIsNotCastWithoutThem(String name) throws IOException {
    add("a.weight", DType.F8E4M3, 4, 4);
    add("a." + name, DType.F32, 1);
    refused("leaves out its scales in \"a." + name + "\"", "", "--to", "1:R", "--dtype", "bf16");
    done("", "--to", "1:R", "--dtype", "bf16", "--ignore-scales");
  }

  @ParameterizedTest
  @ValueSource(strings = {"bias", "rescaled", "downscaler", "norm.scale", "max", "maximum"})
  void andOthersAreNone(String name) throws IOException {
    add("a.weight", DType.F8E4M3, 4, 4);
    add("a." + name, DType.F32, 1);
    done("", "--to", "1:R", "--dtype", "bf16");
  }

  @Test
  void scalesAreNotCast() throws IOException {
    add("a.qweight", DType.I32, 4, 4);
    add("a.scales", DType.F32, 4, 4);
    add("b.weight", DType.I8, 4, 4);
    add("b.weight_scale", DType.F32, 4);
    add("norm.scale", DType.F32, 4);
    assertThat(reshard("[{'match':'b.*','dtype':'f16'}]", "--to", "1:R", "--dtype", "bf16", "--wire", "f16").err())
        .contains("tensor \"b.weight_scale\": ", "[0] gives f16 to scales, which keep their dtype");
    assertThat(TestFile.read(out().resolve("rank-00000.safetensors")).tensors())
        .filteredOn(tensor -> tensor.name().contains("scale"))
        .extracting(TestFile.Tensor::dtype)
        .containsExactly(DType.F32, DType.F32, DType.BF16);
  }

  /** Of activations, and of a cache of keys and values, whatever the weights beside them are. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "l.attn.k_scale", "l.attn.v_scale", "l.attn.kv_scale", "l.k_proj.k_scale", "l.q_proj.input_scale",
        "l.q_proj.output_scale", "l.attn.prob_scale"
      })
  void scalesOfActivationsAreNotCastEither(String name) throws IOException {
    for (DType weights : List.of(DType.BF16, DType.I8)) {
      tensors.clear();
      add("l.q_proj.weight", weights, 4, 4);
      add(name, DType.F32);
      Cli done = reshard("", "--to", "1:R", "--dtype", "f16", "--wire", "f16");
      assertThat(done.status()).as(done.err()).isZero();
      assertThat(done.err()).doesNotContain(name); // the weight may be beyond f16
      assertThat(TestFile.read(out().resolve("rank-00000.safetensors")).tensors())
          .filteredOn(tensor -> tensor.name().equals(name))
          .isEqualTo(tensors.subList(1, 2));
    }
  }

  @Test
  void whatIsCalledScalesIsOneOfQuantizedWeights() throws IOException {
    add("l.qweight", DType.I32, 4, 4);
    add("l.scales", DType.F16, 4, 4);
    add("l.act.scales", DType.F32, 4);
    add("l.norm.scale", DType.F32, 4);
    done("", "--to", "1:R", "--dtype", "bf16");
    assertThat(TestFile.read(out().resolve("rank-00000.safetensors")).tensors())
        .filteredOn(tensor -> tensor.name().contains("scale"))
        .extracting(tensor -> tensor.name() + " " + tensor.dtype())
        .containsExactlyInAnyOrder("l.act.scales f32", "l.norm.scale bf16", "l.scales f16");
  }

  private void addBlocks(int rows, int columns) {
    add("w.weight", DType.F8E4M3, rows, columns);
    add("w.weight_scale_inv", DType.F32, (rows + 127) / 128, (columns + 127) / 128);
  }

  @ParameterizedTest
  @CsvSource({
    "8:S0, 1536, 'cuts dimension 0 at 192, inside a block of 128', S0*128",
    "8:S0, 1500, 'cuts dimension 0 at 188, inside a block of 128', S0*128",
    "3:S1, 256, 'cuts dimension 1 at 86, inside a block of 128', S1*128",
  })
  void aCutIsBetweenBlocks(String to, int rows, String words, String better) throws IOException {
    addBlocks(rows, 256);
    refused(words, "", "--to", to);
    assertThat(reshard("", "--to", to).err())
        .contains("\"w.weight\"", "\"w.weight_scale_inv\"", better);
    String mesh = to.substring(0, to.indexOf(':') + 1);
    done("[{'match':'w.weight','to':'" + mesh + better + "'}]", "--to", to);
    done("", "--to", to, "--ignore-scales");
  }

  @ParameterizedTest
  @ValueSource(strings = {"4:S0", "2:S1", "2x2:S0,S1", "2x2:S0,S0", "4:R", "2x2:S0,R", "12:S0"})
  void whereAllCutsAreBetweenBlocksNothingIsRefused(String to) throws IOException {
    addBlocks(1536, 256);
    done("", "--to", to);
  }

  @Test
  void scalesAreWhereTheirWeightsAre() throws IOException {
    addBlocks(1024, 256);
    refused("would have ", "[{'match':'w.weight','to':'4:S0'},{'match':'*','to':'4:S1'}]");
    refused(
        "rank-00002.safetensors would have a piece of the weight, by 4:S0, and none of the scales,"
            + " by 2:R",
        "[{'match':'w.weight','to':'4@0:S0'},{'match':'*','to':'2@0:R'}]");
    refused(
        "rank-00000.safetensors would have scales 0 to 3 along dimension 0, and needs all scales",
        "[{'match':'w.weight','to':'2@0:R'},{'match':'*','to':'2@0:S0'}]");
    done("[{'match':'w.weight','to':'4:S0'},{'match':'*','to':'4:R'}]");
    tensors.clear();
    add("w.weight", DType.F8E4M3, 8, 4);
    add("w.weight_scale", DType.F32, 1);
    refused(
        "rank-00001.safetensors would have no scales along dimension 0, and needs all scales",
        "", "--to", "4:S0");
    done("[{'match':'*_scale','to':'4:R'}]", "--to", "4:S0");
    tensors.clear();
    add("w.weight", DType.F8E4M3, 8, 4);
    add("w.weight_scale", DType.F32);
    add("v.weight", DType.I8, 8, 4);
    add("v.weight_scale", DType.F32, 8);
    done("", "--to", "4:S0");
    refused("would have ", "[{'match':'v.weight','to':'2:S1'},{'match':'v.*','to':'2:S0'}]", "--to", "2:R");
  }

  @Test
  void packedWeightsAreCutWithTheirGroups() throws IOException {
    add("a.qweight", DType.I32, 32, 64);
    add("a.qzeros", DType.I32, 2, 8);
    add("a.scales", DType.F16, 2, 64);
    add("b.weight", DType.U8, 4, 64);
    add("b.weight_scale", DType.F8E4M3, 4, 8);
    done("", "--to", "2:S1");
    done("", "--to", "2:S0");
    refused("inside a block of 16", "", "--to", "4:S0");
    refused("inside a block of 8", "", "--to", "16:S1");
  }

  @Test
  void scalesOfOtherShapesAreHeldWhole() throws IOException {
    add("e.w", DType.F8E4M3, 4, 64, 64);
    add("e.w_scale", DType.F32, 4, 1);
    refused("rank-00001.safetensors would have no scales", "", "--to", "2:S1");
    done("", "--to", "2:S0");
    tensors.clear();
    add("e.w", DType.F8E4M3, 4, 64, 128);
    add("e.w_scale", DType.F32, 4, 128);
    refused("\"e.w_scale\" [4, 128] belongs to a whole weight", "", "--to", "2:S1");
    tensors.clear();
    add("m.weight", DType.F8E4M3, 64, 64);
    add("m.pre_quant_scale", DType.BF16, 64);
    refused("\"m.pre_quant_scale\" [64] belongs to a whole weight", "", "--to", "2:S0");
    tensors.clear();
    add("m.weight", DType.U8, 4096, 1);
    add("m.weight.absmax", DType.F32, 128);
    add("m.weight.quant_map", DType.F32, 16);
    refused("belongs to a whole weight", "", "--to", "2:S0");
    tensors.clear();
    add("a.k_proj.weight", DType.F8E4M3, 64, 64);
    add("a.k_proj.weight_scale", DType.F32);
    add("a.k_scale", DType.F32, 1);
    refused("\"a.k_scale\" [1] belongs to a whole weight", "", "--to", "2:S0");
    tensors.clear();
    add("e.up_blocks", DType.U8, 4, 64, 2, 16);
    add("e.up_scales", DType.U8, 4, 64, 2);
    add("e.down_blocks", DType.U8, 4, 64, 2, 16);
    add("e.down_scales", DType.U8, 4, 64, 2);
    done("", "--to", "2:S1");
    refused("would have ", "[{'match':'*scales','to':'2:S0'}]", "--to", "2:S1");
    tensors.clear();
    add("o.weight", DType.I8, 64, 64);
    add("o.SCB", DType.F32, 64);
    add("o.weight_format", DType.U8);
    refused("would have ", "[{'match':'o.weight','to':'2:S1'}]", "--to", "2:S0");
  }

  @Test
  void theGroupsOfGptqGoWithItsInputs() throws IOException {
    add("d.qweight", DType.I32, 176, 32);
    add("d.scales", DType.F16, 11, 32);
    add("d.g_idx", DType.I32, 1408);
    refused("would have ", "[{'match':'d.qweight','to':'2:S0*16'}]", "--to", "2:S0");
    done("", "--to", "2:S1");
    tensors.clear();
    add("c.weight_packed", DType.I32, 64, 16);
    add("c.weight_scale", DType.BF16, 64, 2);
    add("c.weight_g_idx", DType.I32, 128);
    refused("would have ", "", "--to", "2:S0");
    done("[{'match':'*g_idx','to':'2:R'}]", "--to", "2:S0");
  }

  /** Numbers of groups of 128 inputs, every {@code step}th input first. */
  private void addNumbers(String name, int inputs, int step) {
    long[] numbers = new long[inputs];
    for (int i = 0, input = 0; i < inputs; i++) {
      numbers[input] = i / 128;
      input += step;
      input = input < inputs ? input : input % step + 1;
    }
    tensors.add(new TestFile.Tensor(name, DType.I32, new int[] {inputs}, numbers));
  }

  private void addGptq(String module, int step) {
    add(module + ".qweight", DType.I32, 64, 32);
    add(module + ".qzeros", DType.I32, 4, 4);
    add(module + ".scales", DType.F16, 4, 32);
    addNumbers(module + ".g_idx", 512, step);
  }

  /** Packed as GPTQ does it: {@code bits} words have 32 numbers of so many bits. */
  private void addPacked(int bits, int inputs, int outputs) {
    add("d.qweight", DType.I32, inputs * bits / 32, outputs);
    add("d.qzeros", DType.I32, (inputs + 127) / 128, outputs * bits / 32);
    add("d.scales", DType.F16, (inputs + 127) / 128, outputs);
    addNumbers("d.g_idx", inputs, 1);
  }

  private static final String OUTPUTS =
      "[{'match':'d.qzeros','to':'%1$s:S1*%2$d'},{'match':'d.g_idx','to':'%1$s:R'},"
          + "{'match':'d.*','to':'%1$s:S1*32'}]";

  private void doneButForCounts(String rules, Object... options) throws IOException {
    Cli done = reshard(rules, options);
    assertThat(done.status()).as(done.err()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {3, 5, 6, 7})
  void wordsOfOddBitsAreCutWhereBlocksAre(int bits) throws IOException {
    addPacked(bits, 512, 1024);
    for (String to : List.of("2:S0", "4:S0", "2:S1", "32:S1", "2x2:S0,S1")) {
      doneButForCounts("", "--to", to, "--verify");
    }
    int group = 4 * bits;
    refused(
        "8:S0 cuts dimension 0 at " + group / 2 + ", inside a block of " + group
            + " that has one scale; a rule for the weight that cuts it by S0*" + group + " keeps",
        "", "--to", "8:S0");
    doneButForCounts(
        "[{'match':'d.qweight','to':'8:S0*" + group + "'},{'match':'d.g_idx','to':'8:S0*128'}]",
        "--to", "8:S0", "--verify");
    refused("inside a block of " + (bits == 6 ? 16 : 32), "", "--to", "128:S1");
  }

  @Test
  void theLayoutThatIsNamedForWordsOf3BitsIsRight() throws IOException {
    addPacked(3, 512, 96);
    refused(
        "cuts dimension 1 at 48, inside a block of 32 that has 3 of them; a rule for the weight"
            + " that cuts it by S1*32, and one for them by S1*3, keep blocks whole",
        "", "--to", "2:S1");
    done(String.format(OUTPUTS, 2, 3), "--to", "2:S1", "--verify");
  }

  /** Each rank has the groups of its inputs and the zero points of its outputs, and no others. */
  @RandomSeeds(value = 60, inLong = 2000)
  void gptqIsCutWhereEachRankHasWhatItsWeightsNeed(long seed) throws IOException {
    tensors.clear();
    Random random = new Random(seed);
    int bits = 2 + random.nextInt(7);
    int group = 32 << random.nextInt(3);
    int inputs = 32 * (1 + random.nextInt(32));
    int outputs = 32 * (1 + random.nextInt(8));
    int groups = (inputs + group - 1) / group;
    int ranks = 1 + random.nextInt(6);
    int dim = random.nextInt(2);
    add("d.qweight", DType.I32, inputs * bits / 32, outputs);
    add("d.qzeros", DType.I32, groups, outputs * bits / 32);
    add("d.scales", DType.F16, groups, outputs);
    long[] numbers = new long[inputs];
    Arrays.setAll(numbers, i -> i / group);
    tensors.add(new TestFile.Tensor("d.g_idx", DType.I32, new int[] {inputs}, numbers));
    boolean isRight = true;
    for (int rank = 0; rank < ranks; rank++) {
      int[] weights = cut(dim == 0 ? inputs * bits / 32 : outputs, ranks, rank);
      for (int side = 0; side < 2 && weights[0] < weights[1]; side++) {
        if (dim == 0) {
          int input = cut(inputs, ranks, rank)[side];
          isRight &= weights[side] * 32 == input * bits;
          isRight &= Math.min(inputs, cut(groups, ranks, rank)[side] * group) == input;
        } else {
          isRight &= cut(outputs * bits / 32, ranks, rank)[side] * 32 == weights[side] * bits;
        }
      }
    }
    Cli done = reshard("", "--to", ranks + ":S" + dim);
    assertThat(done.status())
        .as("seed %d: %d bits, %d inputs, groups of %d, %d outputs, %d:S%d: %s",
            seed, bits, inputs, group, outputs, ranks, dim, done.err())
        .isEqualTo(isRight ? 0 : 2);
  }

  private static int[] cut(int extent, int ranks, int rank) {
    int each = (extent + ranks - 1) / ranks;
    return new int[] {Math.min(extent, rank * each), Math.min(extent, (rank + 1) * each)};
  }

  /** 24 rows of 2 groups are 256 inputs of 3 bits in groups of 128, or 192 of 4 bits. */
  @Test
  void g_idxTellsHowManyBitsThereAre() throws IOException {
    addPacked(3, 256, 64);
    doneButForCounts("", "--to", "2:S0", "--verify");
    tensors.clear();
    addPacked(4, 192, 64);
    refused("cuts dimension 0 at 12, inside a block of 16", "", "--to", "2:S0");
  }

  @Test
  void ranksOf3BitsAreJoinedWhereTheyWereCutBetweenBlocks() throws IOException {
    addPacked(3, 512, 64);
    for (String to : List.of("2:S0", "2:S1")) {
      doneButForCounts("", "--to", to);
      Cli back = Cli.run("reshard", out(), folder.resolve(to + ".safetensors"), "--to", "1:R");
      assertThat(back.status()).as(back.err()).isZero();
      assertThat(TestFile.read(folder.resolve(to + ".safetensors")).tensors())
          .containsExactlyInAnyOrderElementsOf(tensors);
    }
    Path in = Files.createDirectory(folder.resolve("inside"));
    for (int rank = 0; rank < 2; rank++) {
      tensors.clear();
      addPacked(3, 192, 64);
      tensors.remove(3);
      addNumbers("d.g_idx", 384, 1);
      TestFile.write(in.resolve("rank-0000" + rank + ".safetensors"), tensors, Map.of());
    }
    Cli failed = joined(in, "2:S0", "d.g_idx");
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err()).contains("rank 0 of IN holds 18 of 36", "the cut is inside a block");
  }

  /** Joins what two ranks have, but for what both have whole. */
  private Cli joined(Path in, String from, String whole) throws IOException {
    Path rules = folder.resolve("whole.json");
    Files.writeString(rules, "[{\"match\":\"" + whole + "\",\"from\":\"2:R\"}]");
    Path out = folder.resolve("out");
    return Cli.run("reshard", in, out, "--from", from, "--to", "1:R", "--rules", rules);
  }

  @Test
  void ranksMayHaveTheScalesOfWholeRows() throws IOException {
    Path in = Files.createDirectory(folder.resolve("rows"));
    for (int rank = 0; rank < 2; rank++) {
      tensors.clear();
      add("w.weight", DType.F8E4M3, 64, 704);
      add("w.weight_scale", DType.F32, 64, 1);
      TestFile.write(in.resolve("rank-0000" + rank + ".safetensors"), tensors, Map.of());
    }
    Cli done = joined(in, "2:S1", "*scale");
    assertThat(done.status()).as(done.err()).isZero();
  }

  /** compressed-tensors has 10 numbers of 3 bits in a word: 5 groups are 64 words. */
  @Test
  void wordsThatEndInsideGroupsAreCutWhereBothEnd() throws IOException {
    add("c.weight_packed", DType.I32, 4, 128);
    add("c.weight_scale", DType.F16, 4, 10);
    done("", "--to", "2:S1", "--verify");
    refused("cuts dimension 1 at 32, inside a block of 64 that has 5 of them", "", "--to", "4:S1");
    tensors.clear();
    add("c.weight_packed", DType.I32, 4, 410); // 4,096 inputs
    add("c.weight_scale", DType.F16, 4, 32);
    refused("cuts dimension 1 at 205, inside a block of 410", "", "--to", "2:S1");
    refused("inside a block of 410", "[{'match':'*packed','to':'2:S1*13'}]", "--to", "2:S1");
    done("", "--to", "2:S0");
  }

  /** Blocks of 100, or of any extent from 96 to 104. */
  @Test
  void whatBlocksThereMayBeIsCutInNone() throws IOException {
    add("w.weight", DType.F8E4M3, 1050, 4);
    add("w.weight_scale", DType.F32, 11, 1);
    refused("inside a block of 1050", "[{'match':'w.weight','to':'2:S0*96'}]", "--to", "2:S0");
    done("", "--to", "2:R");
  }

  @Test
  void inputsInAnotherOrderThanTheirGroupsTakeAllScales() throws IOException {
    addGptq("d", 1);
    assertThat(reshard("", "--to", "2:S0", "--json").out())
        .contains("they count the groups of the whole weight, of which each file has a part");
    assertThat(reshard("", "--to", "2:S1", "--json").out()).contains("\"warnings\":[]");
    tensors.clear();
    addGptq("d", 8);
    refused("are not in the order of their groups (act-order)", "", "--to", "2:S0");
    done("", "--to", "2:S1");
    done("", "--to", "1:R");
    done("[{'match':'d.scales','to':'2:R'},{'match':'d.qzeros','to':'2:R'}]", "--to", "2:S0");
    refused("(act-order)", "[{'match':'d.scales','to':'2:R'}]", "--to", "2:S0");
    done("", "--to", "2:S0", "--ignore-scales");
  }

  @Test
  void weightsOfOtherGroupsAreNotJoined() throws IOException {
    String fuse =
        "[{'match':'{p}.qweight','parts':['q','k'],'dim':1,'as':'qk.qweight'},"
            + "{'match':'{p}.qzeros','parts':['q','k'],'dim':1,'as':'qk.qzeros'},"
            + "{'match':'{p}.scales','parts':['q','k'],'dim':1,'as':'qk.scales'}%s]";
    String apart = String.format(fuse, "");
    addGptq("q", 8);
    addGptq("k", 8);
    refused("the rule {\"match\": \"q.g_idx\", \"as\": \"qk.g_idx\"} gives it the same numbers", apart, "--to", "1:R");
    done(String.format(fuse, ",{'match':'q.g_idx','as':'qk.g_idx'}"), "--to", "1:R");
    refused(
        "numbers the groups of \"q.qweight\", and a rule joins them",
        String.format(fuse, ",{'match':'{p}.g_idx','parts':['q','k'],'dim':0,'as':'qk.g_idx'}"),
        "--to",
        "1:R");
    refused("along their input dimension", apart.replace("'dim':1", "'dim':0"), "--to", "1:R");
    tensors.clear();
    addGptq("q", 8);
    addGptq("k", 4);
    refused("has others in \"k.g_idx\"", apart, "--to", "1:R");
  }

  /** What shapes don't tell from 3 bits is a last group that is shorter. */
  @Test
  void aShorterLastGroupIsNotCutInTheMiddle() throws IOException {
    add("d.weight_packed", DType.I32, 8, 12); // 96 inputs of 4 bits, in groups of 64
    add("d.weight_scale", DType.F16, 8, 2);
    refused("inside a block of 8", "", "--to", "2:S1");
  }

  @Test
  void theNumbersOfGroupsAreThoseOfTheScales() throws IOException {
    addGptq("d", 1);
    tensors.set(3, new TestFile.Tensor("d.g_idx", DType.I32, new int[] {512}, new long[512]));
    refused("names 1 groups of the inputs of \"d.qweight\", and its scales have 4", "", "--to", "2:S0");
    long[] unset = new long[512];
    Arrays.fill(unset, 0xffffffffL);
    tensors.set(3, new TestFile.Tensor("d.g_idx", DType.I32, new int[] {512}, unset));
    assertThat(reshard("", "--to", "2:S0").status()).isZero();
    unset[7] = 0;
    tensors.set(3, new TestFile.Tensor("d.g_idx", DType.I32, new int[] {512}, unset));
    refused("names 2 groups", "", "--to", "2:S0");
  }

  @Test
  void ranksThatEachCountTheirGroupsFrom0AreNotJoined() throws IOException {
    Path in = Files.createDirectory(folder.resolve("counted"));
    for (int rank = 0; rank < 2; rank++) {
      tensors.clear();
      addGptq("d", 1);
      TestFile.write(in.resolve("rank-0000" + rank + ".safetensors"), tensors, Map.of());
    }
    Cli failed = Cli.run("reshard", in, folder.resolve("out"), "--from", "2:S0", "--to", "1:R");
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err())
        .contains("names 4 groups of the inputs of \"d.qweight\", and its scales have 8");
  }

  @Test
  void stackedNumbersAreCutAsTheirWeights() throws IOException {
    addGptq("e.0", 8);
    addGptq("e.1", 8);
    String stack =
        "{'match':'e.{i}.qweight','stack':true,'as':'e.qweight','to':'2:S0'},"
            + "{'match':'e.{i}.scales','stack':true,'as':'e.scales','to':'2:S0'},"
            + "{'match':'e.{i}.qzeros','stack':true,'as':'e.qzeros','to':'2:S0'},";
    String numbers = "{'match':'e.{i}.g_idx','stack':true,'as':'%s.g_idx','to':'2:%s'}";
    done("[" + stack + String.format(numbers, "e", "S0") + "]", "--to", "2:R");
    done("[" + stack + String.format(numbers, "e", "R") + "]", "--to", "2:R");
    refused("would have ", "[" + stack + String.format(numbers, "e", "S1") + "]", "--to", "2:R");
    refused(
        "which are not of one module", "[" + stack + String.format(numbers, "other", "S0") + "]", "--to", "2:R");
  }

  @Test
  void aFileThatHasAWeightHasWhatBelongsToIt() throws IOException {
    add("n.weight", DType.U8, 64, 1);
    add("n.weight.absmax", DType.F32, 7);
    refused(
        "/rules.json: [0] gives them to all files",
        "[{'match':'*absmax','to':'1@0:R'}]", "--to", "2@0:R");
    done("", "--to", "2:R");
  }

  @Test
  void theShapeOfAWeightIsJoinedWithNothing() throws IOException {
    for (String part : List.of("q", "k")) {
      add(part + ".weight_packed", DType.I32, 64, 8);
      add(part + ".weight_scale", DType.F16, 64, 1);
      add(part + ".weight_shape", DType.I64, 2);
    }
    String rule = "{'match':'{p}.%s','parts':['q','k'],'dim':0,'as':'qk.%s'}";
    String fuse =
        String.format(rule, "weight_packed", "weight_packed") + "," + String.format(rule, "weight_scale", "weight_scale");
    assertThat(reshard("[" + fuse + "]", "--to", "1:R").err())
        .contains("they tell the shapes that weights had before rules joined or split them");
    String shapes =
        "," + String.format(rule, "weight_shape", "weight_shape")
            .replace("'parts':['q','k'],'dim':0,", "");
    refused(
        "\"qk.weight_shape\" [2] belongs to a whole weight",
        "[" + fuse + shapes.replace("{p}", "q") + ",{'match':'k.weight_shape','to':'2:R'}]",
        "--to", "2:S0");
    refused(
        "gives the shape of \"q.weight_packed\", but a rule joins it with others",
        "[" + fuse + "," + String.format(rule, "weight_shape", "weight_shape") + "]", "--to", "1:R");
  }

  @Test
  void filesTellWhoHoldsBoth() throws IOException {
    add("m.weight", DType.F8E4M3, 256, 128);
    add("m.weight_scale", DType.F32, 256, 1);
    String none =
        "rank-00000.safetensors would have a piece of the weight, by 2:S0, and none of the scales";
    refused(none, "[{'match':'*scale','to':'2@1:S0'}]", "--to", "2:S0");
    done("[{'match':'*scale','to':'2@0:S0'}]", "--to", "2:S0");
    // Of two that are alike but for the numbers of their files, the second is checked too.
    add("n.weight", DType.F8E4M3, 256, 128);
    add("n.weight_scale", DType.F32, 256, 1);
    refused(none, "[{'match':'n.*scale','to':'2@1:S0'}]", "--to", "2:S0");
  }

  @Test
  void namesKeepThemTogether() throws IOException {
    for (int i : new int[] {1, 3}) {
      add("l.w" + i + ".weight", DType.F8E4M3, 64, 64);
      add("l.w" + i + ".weight_scale", DType.F32, 64, 1);
    }
    refused(
        "which are not of one module",
        "[{'match':'l.w1.weight','as':'l.w3.weight'},{'match':'l.w3.weight','as':'l.w1.weight'}]", "--to", "1:R");
    refused("which are not of one module", "[{'match':'l.w1.weight','as':['l.w1.weight','e.weight']}]", "--to", "1:R");
    done("[{'match':'l.w1.{x}','as':'e.{x}'}]", "--to", "1:R");
  }

  @Test
  void weightsWithRulesCountAsTensorsToo() throws IOException {
    add("l.q_proj.weight", DType.F8E4M3, 64, 64);
    add("l.q_proj.weight_scale", DType.F32);
    done("[{'match':'*.weight','to':'8:S0'}]", "--to", "8:S0");
    tensors.clear();
    add("l.q_proj.weight", DType.BF16, 64, 64);
    add("l.norm.weight", DType.BF16, 64);
    done("[{'match':'*proj.weight','to':'2x4:S0,S1'}]", "--to", "2x4:S0,S1");
  }

  @Test
  void oneScaleForAWholeWeightIsJoinedAsItIs() throws IOException {
    for (String part : List.of("q", "k", "v")) {
      add("a." + part + ".weight", DType.F8E4M3, part.equals("q") ? 256 : 128, 64);
      add("a." + part + ".weight_scale", DType.F32, 1, 1);
    }
    String rule = "{'match':'a.{p}.%s','parts':['q','k','v'],'dim':0,'as':'a.qkv.%s','to':'2:%s','unit':1}";
    done("[" + String.format(rule, "weight", "weight", "S0") + "," + String.format(rule, "weight_scale", "weight_scale", "R") + "]", "--to", "2:R");
    tensors.clear();
    add("m.weight", DType.F8E4M3, 64, 32);
    add("m.weight_scale", DType.F32, 1, 1);
    done("[{'match':'m.weight','transpose':true}]", "--to", "1:R");
  }

  @Test
  void partsAreJoinedWhereBlocksEnd() throws IOException {
    String fuse =
        "[{'match':'{p}.weight','parts':['q','k','v'],'dim':0,'as':'qkv.weight'},"
            + "{'match':'{p}.weight_scale_inv','parts':['q','k','v'],'dim':0,'as':'qkv.weight_scale_inv'}]";
    for (int kv : new int[] {64, 128}) {
      tensors.clear();
      for (String part : List.of("q", "k", "v")) {
        int rows = part.equals("q") ? 256 : kv;
        add(part + ".weight", DType.F8E4M3, rows, 128);
        add(part + ".weight_scale_inv", DType.F32, (rows + 127) / 128, 1);
      }
      if (kv == 64) {
        refused("tensor \"v.weight\" begins at 320 of dimension 0 of \"qkv.weight\", inside a block of 128", fuse, "--to", "1:R");
      } else {
        done(fuse, "--to", "1:R");
        refused(
            "and its scales, \"q.weight_scale_inv\", as \"q.weight_scale_inv\"",
            fuse.substring(0, fuse.indexOf("},") + 1) + "]", "--to", "1:R");
        refused("as part 1 of 3 of \"qkv.weight\"", fuse.substring(0, fuse.indexOf("},") + 1) + "]", "--to", "1:R");
        String turned = fuse.replace("['q','k','v'],'dim':0,'as':'qkv.weight_", "['k','q','v'],'dim':0,'as':'qkv.weight_");
        refused("join the scales in the same order", turned, "--to", "1:R");
        refused("transposes the one and not the other", "[{'match':'q.weight','transpose':true}]", "--to", "1:R");
        done(fuse.substring(0, fuse.indexOf("},") + 1) + "]", "--to", "1:R", "--ignore-scales");
      }
    }
  }

  @Test
  void expertsAreStackedWithTheirScales() throws IOException {
    for (int e = 0; e < 4; e++) {
      add("e." + e + ".weight", DType.F8E4M3, 256, 128);
      add("e." + e + ".weight_scale_inv", DType.F32, 2, 1);
      add("e." + e + ".input_scale", DType.F32);
    }
    String weights = "{'match':'e.{e}.weight','stack':true,'as':'w'}";
    String scales = "{'match':'e.{e}.weight_scale_inv','stack':true,'as':'w_scale_inv'}";
    String inputs = "{'match':'e.{e}.input_scale','stack':true,'as':'input_scale'}";
    refused("and its scales, \"e.0.weight_scale_inv\"", "[" + weights + "]", "--to", "2:R");
    refused("and its scales, \"e.0.input_scale\"", "[" + weights + "," + scales + "]", "--to", "2:R");
    String all = "[" + weights + "," + scales + "," + inputs + "]";
    for (String to : List.of("2:S0", "4:S0", "2:S1", "2x2:S0,S1")) {
      done(all, "--to", to);
    }
    refused("inside a block of 128", all, "--to", "4:S1");
  }

  @Test
  void ranksThatHoldPartsOfBlocksAreNotJoined() throws IOException {
    Path in = Files.createDirectory(folder.resolve("ranks"));
    for (int rank = 0; rank < 2; rank++) {
      tensors.clear();
      addBlocks(192, 128);
      TestFile.write(in.resolve("rank-0000" + rank + ".safetensors"), tensors, Map.of());
    }
    Object[] arguments = {"reshard", in, folder.resolve("out"), "--from", "2:S0", "--to", "1:R"};
    Cli failed = Cli.run(arguments);
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err()).contains("rank 0 of IN holds 192 of 384", "blocks of 128: the cut is inside a block");
    List<Object> all = new ArrayList<>(List.of(arguments));
    all.add("--ignore-scales");
    assertThat(Cli.run(all.toArray()).status()).isZero();
  }

  /** HQQ packs row i with row i + M/2; Transformer Engine pickles a record. */
  @ParameterizedTest
  @CsvSource({"l.W_q, 16, 16", "l._extra_state, 101, 1", "l.e._extra_state0, 64, 1"})
  void whatIsOfNoRowsIsNotCut(String name, int rows, int columns) throws IOException {
    int[] shape = columns == 1 ? new int[] {rows} : new int[] {rows, columns};
    add(name, DType.U8, shape);
    String own = name.substring(name.lastIndexOf('.') + 1);
    String rule = "{\"match\": \"*" + own + "\", \"to\": \"2:R\"}";
    refused("2:S0 cuts them; the rule " + rule + " keeps them whole", "", "--to", "2:S0");
    refused("2:S0 cuts them", "[{'match':'*','to':'2:S0'}]", "--to", "2:R");
    done("[" + rule + "]", "--to", "2:S0");
    done("", "--to", "2:S0", "--ignore-scales");
    done("", "--to", "2:R");
    add(name.replace("l.", "m."), DType.U8, shape);
    String parts = "'parts':['l','m'],'dim':0,'as':'x." + own + "'}]";
    refused(
        "a rule joins or transposes them",
        "[{'match':'{p}." + name.substring(2) + "'," + parts, "--to", "1:R");
    Path ranks = Files.createDirectory(folder.resolve("ranks"));
    for (int rank = 0; rank < 2; rank++) {
      Path file = ranks.resolve("rank-0000" + rank + ".safetensors");
      TestFile.write(file, tensors.subList(0, 1), Map.of());
    }
    Cli failed = Cli.run("reshard", ranks, folder.resolve("o"), "--from", "2:S0", "--to", "1:R");
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err()).contains("2:S0 cuts them; the rule", "\"from\": \"2:R\"}");
    Cli done = Cli.run("reshard", ranks, folder.resolve("o"), "--from", "2:S0", "--to", "2@0:S0");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(TestFile.read(folder.resolve("o/rank-00001.safetensors")).tensors())
        .containsExactly(tensors.get(0));
  }

  @Test
  void aStackOfThoseIsCutAlongItsNewDimension() throws IOException {
    for (int i = 0; i < 4; i++) {
      add("e." + i + ".W_q", DType.U8, 16, 16);
    }
    String stack = "[{'match':'e.{i}.W_q','stack':true,'as':'e.W_q'}]";
    done(stack, "--to", "2:S0");
    refused("2:S1 cuts them", stack, "--to", "2:S1");
    tensors.clear();
    add("attention.W_q", DType.F32, 16, 16);
    add("w_q", DType.I8, 16, 16);
    done("", "--to", "2:S0");
  }

  @ParameterizedTest
  @ValueSource(strings = {"weight_shape", "weight_packed.quant_state.bitsandbytes__nf4"})
  void theShapeOfAWholeWeightIsNamedWhereFilesHaveAPart(String name) throws IOException {
    add("l.weight_packed", DType.U8, 64, 32);
    add("l." + name, DType.U8, 7);
    String whole = "[{'match':'l." + name + "','to':'2:R'}]";
    Cli done = reshard(whole, "--to", "2:S0");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err())
        .contains("tensor \"l." + name + "\": they tell the shape of the whole weight, of which");
    done("", "--to", "2:R");
  }

  @Test
  void codebooksAreOfTheWholeWeight() throws IOException {
    add("l.codes", DType.I8, 8, 16, 2);
    add("l.codebooks", DType.F16, 2, 256, 1, 8);
    add("l.scales", DType.F16, 8, 1, 1, 1);
    refused("\"l.codebooks\"", "", "--to", "2:S0");
    tensors.remove(0);
    done("", "--to", "2:S0");
  }

  private static final Pattern RULE =
      Pattern.compile("the rule (\\{(?:[^{}]|\\{\\w+\\})*\\})(?: before \\S*: \\[(\\d+)\\])?");

  private static final Pattern KEY = Pattern.compile("(\"to\": \"[^\"]*\") in \\S*: \\[(\\d+)\\]");

  /** Does what each complaint names, until there is none. */
  private void succeedsAsTold(int complaints, String rules, Object... options) throws IOException {
    List<String> all = new ArrayList<>();
    Matcher each = Pattern.compile("\\{(?:[^{}]|\\{\\w+\\})*\\}").matcher(rules.replace('\'', '"'));
    while (each.find()) {
      all.add(each.group());
    }
    for (int i = 0; i < complaints; i++) {
      Cli failed = reshard(all.toString(), options);
      assertThat(failed.status()).as(all + failed.err()).isEqualTo(2);
      Matcher rule = RULE.matcher(failed.err());
      Matcher key = KEY.matcher(failed.err());
      if (key.find()) {
        int place = Integer.parseInt(key.group(2));
        all.set(place, all.get(place).replaceFirst("\\}$", ", " + key.group(1) + "}"));
      } else {
        assertThat(rule.find()).as(failed.err()).isTrue();
        String place = rule.group(2);
        all.add(place == null ? all.size() : Integer.parseInt(place), rule.group(1));
      }
    }
    Cli done = reshard(all.toString(), options);
    assertThat(done.status()).as(all + done.err()).isZero();
    if (!rules.contains("@")) {
      assertThat(done.err()).doesNotContain("is for rank-");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"4:S1", "4@8:S1", "4@[6,4,2,0]:S1"})
  void theRuleThatIsNamedIsRight(String to) throws IOException {
    for (int e = 0; e < 4; e++) {
      add("e." + e + ".weight", DType.F8E4M3, 8, 8);
      add("e." + e + ".weight_scale", DType.F32, 8, 1);
      add("e." + e + ".input_scale", DType.F32, 1);
    }
    String rule = "{'match':'e.{e}.%1$s','stack':true,'as':'w.%1$s'}";
    String both = "{'match':'e.{e}.{x}','stack':true,'as':'w.{x}'}";
    String input = String.format(rule, "input_scale");
    String scale = String.format(rule, "weight_scale");
    String apart = String.format(rule, "weight") + "," + scale + "," + input;
    succeedsAsTold(1, "[" + apart + "]", "--to", to);
    succeedsAsTold(1, "[" + both + "]", "--to", to);
    succeedsAsTold(1, "[" + apart + "]", "--to", to.replace("S1", "S2"));
    succeedsAsTold(1, "[" + both + "]", "--to", to.replace("S1", "S2"));
    tensors.clear();
    add("a.weight", DType.F8E4M3, 8, 8);
    add("a.weight_scale", DType.F32, 1);
    add("a.weight_shape", DType.I32, 2);
    succeedsAsTold(2, "[]", "--to", to.replace("S1", "S0"));
    succeedsAsTold(2, "[{'match':'a.{x}','as':['b.{x}','c.{x}']}]", "--to", to.replace("S1", "S0"));
    succeedsAsTold(
        1, "[{'match':'a.weight{x}','as':'b.weight{x}'},{'match':'a.weight','as':'b.weight'}]",
        "--to", to.replace("S1", "S0"));
    succeedsAsTold(2, "[{'match':'a.weight','to':'2@1:S0'}]", "--to", to.replace("S1", "S0"));
  }

  @Test
  void stacksOfTwoDimensionsAreNoTransposition() throws IOException {
    for (int e = 0; e < 2; e++) {
      add("e." + e + ".weight", DType.F8E4M3, 256, 128);
      add("e." + e + ".weight_scale", DType.F32, 2, 1);
    }
    refused(
        "rules stack the one along dimension 0, and the other along 1; give both the same \"stack\"",
        "[{'match':'e.{e}.weight','stack':true,'as':'w.weight'},"
            + "{'match':'e.{e}.weight_scale','stack':1,'as':'w.weight_scale'}]",
        "--to", "1:R");
  }
}
