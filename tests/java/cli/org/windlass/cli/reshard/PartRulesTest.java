// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.testing.TestFile;

/** Rules that know parts: split, groups, a layout for each part, padding, and tensors left out. */
class PartRulesTest {
  @TempDir Path folder;
  private final List<TestFile.Tensor> tensors = new ArrayList<>();

  /** Adds a tensor of two columns whose rows hold {@code first}, {@code first} + 1, and so on. */
  private void rows(String name, int first, int rows) {
    long[] bits = new long[2 * rows];
    Arrays.setAll(bits, i -> first + i / 2);
    tensors.add(new TestFile.Tensor(name, DType.I32, new int[] {rows, 2}, bits));
  }

  private Cli run(String rules, Path in, Path out, Object... more) throws IOException {
    Path file = Files.writeString(folder.resolve("rules.json"), rules.replace('\'', '"'));
    List<Object> arguments =
        new ArrayList<>(List.of("reshard", "--rules", file, in, out, "--verify", "--force"));
    arguments.addAll(List.of(more));
    return Cli.run(arguments.toArray());
  }

  private Path in() throws IOException {
    Path in = folder.resolve("in.safetensors");
    TestFile.write(in, tensors, Map.of());
    return in;
  }

  private Path out() {
    return folder.resolve("out");
  }

  private Path reshard(String rules, Object... more) throws IOException {
    Cli done = run(rules, in(), out(), more);
    assertThat(done.status()).as(done.err()).isZero();
    return out();
  }

  private void refused(String words, String rules, Object... more) throws IOException {
    Cli failed = run(rules, in(), folder.resolve("new"), more);
    assertThat(failed.status()).as(failed.err()).isEqualTo(2);
    assertThat(failed.err()).contains(words);
    assertThat(folder.resolve("new")).doesNotExist();
  }

  private static List<TestFile.Tensor> rank(Path out, int rank) throws IOException {
    return TestFile.read(out.resolve(String.format("rank-%05d.safetensors", rank))).tensors();
  }

  /** The rows of a rank's tensor, by what they hold. */
  private static List<Long> rows(Path out, int rank, String name) throws IOException {
    return rows(
        rank(out, rank).stream().filter(each -> each.name().equals(name)).findFirst().get());
  }

  private static List<Long> rows(TestFile.Tensor tensor) {
    List<Long> rows = new ArrayList<>();
    for (int i = 0; i < tensor.shape()[0]; i++) {
      rows.add(tensor.bits()[2 * i]);
    }
    return rows;
  }

  private static String layouts(Path out) throws IOException {
    return Files.readString(out.resolve("layout.json")).replaceAll("\\s", "");
  }

  /** Numbers from pairs of a first one and how many there are. */
  private static List<Long> range(long... pairs) {
    LongStream all = LongStream.empty();
    for (int i = 0; i < pairs.length; i += 2) {
      all = LongStream.concat(all, LongStream.range(pairs[i], pairs[i] + pairs[i + 1]));
    }
    return all.boxed().toList();
  }

  private static final String SPLIT =
      "[{'match': '*qkv_proj.weight', 'dim': 0, 'split': [256, 64, 64], 'to': '2:S0'%s}]";

  @Test
  void aFusedSourceIsCutPartByPart() throws IOException {
    rows("l.0.qkv_proj.weight", 0, 384);
    Path out = reshard(String.format(SPLIT, ""), "--from", "1:R");
    for (int r = 0; r < 2; r++) {
      assertThat(rows(out, r, "l.0.qkv_proj.weight"))
          .isEqualTo(range(128 * r, 128, 256 + 32 * r, 32, 320 + 32 * r, 32));
    }
    assertThat(layouts(out))
        .contains("\"parts\":{\"dim\":0,\"extents\":[256,64,64],\"layout\":\"2:S0\"}");
    Path whole = folder.resolve("whole.safetensors");
    Cli back = run("[]", out, whole, "--to", "1@0:R");
    assertThat(back.status()).as(back.err()).isZero();
    assertThat(back.err()).isEmpty();
    assertThat(TestFile.read(whole).tensors()).isEqualTo(tensors);
    reshard(String.format(SPLIT, ", 'as': 'l.fused'"), "--from", "1:R");
    assertThat(rows(out, 1, "l.fused")).isEqualTo(range(128, 128, 288, 32, 352, 32));
  }

  @Test
  void partsBecomeTensorsOfTheirOwn() throws IOException {
    rows("l.0.qkv_proj.weight", 0, 384);
    String as = ", 'as': ['{p}q_proj.weight', '{p}k_proj.weight', '{p}v_proj.weight']";
    Path out = reshard(String.format(SPLIT, as), "--from", "1:R");
    for (int r = 0; r < 2; r++) {
      assertThat(rank(out, r)).hasSize(3);
      assertThat(rows(out, r, "l.0.q_proj.weight")).isEqualTo(range(128 * r, 128));
      assertThat(rows(out, r, "l.0.k_proj.weight")).isEqualTo(range(256 + 32 * r, 32));
      assertThat(rows(out, r, "l.0.v_proj.weight")).isEqualTo(range(320 + 32 * r, 32));
    }
    String each = as + ", 'unit': 32, 'split': [8, 2, 2]";
    String rule = String.format(SPLIT.replace("'split': [256, 64, 64], ", ""), each);
    refused(
        "each rank would hold 16 of the 64 of \"l.0.k_proj.weight\" along dimension 0, which are no"
            + " whole units of 32; give it a layout of its own, as \"2x2:S0,R\"",
        rule.replace("2:S0", "4:S0"), "--from", "1:R");
    reshard(rule.replace("'2:S0'", "['4:S0', '2x2:S0,R', '4:R']"), "--from", "1:R");
    for (int r = 0; r < 4; r++) {
      assertThat(rows(out, r, "l.0.q_proj.weight")).isEqualTo(range(64 * r, 64));
      assertThat(rows(out, r, "l.0.k_proj.weight")).isEqualTo(range(256 + 32 * (r / 2), 32));
      assertThat(rows(out, r, "l.0.v_proj.weight")).isEqualTo(range(320, 64));
    }
  }

  @Test
  void groupsOfPartsAreLeftWholeOrTakenApart() throws IOException {
    rows("l.qkv.weight", 0, 4 * 4 * 64);
    String rule =
        "[{'match': '*qkv.weight', 'dim': 0, 'split': [2, 1, 1], 'unit': 64, 'groups': 4, 'to': '2:S0'%s}]";
    Path out = reshard(String.format(rule, ""), "--from", "1:R");
    assertThat(rows(out, 0, "l.qkv.weight")).isEqualTo(range(0, 512));
    assertThat(rows(out, 1, "l.qkv.weight")).isEqualTo(range(512, 512));
    assertThat(layouts(out)).contains("\"layout\":\"2:S0*256\"");
    reshard(String.format(rule, ", 'as': ['l.q', 'l.k', 'l.v']"), "--from", "1:R");
    for (int r = 0; r < 2; r++) {
      int at = 512 * r;
      assertThat(rows(out, r, "l.q")).isEqualTo(range(at, 128, at + 256, 128));
      assertThat(rows(out, r, "l.k")).isEqualTo(range(at + 128, 64, at + 384, 64));
      assertThat(rows(out, r, "l.v")).isEqualTo(range(at + 192, 64, at + 448, 64));
    }
    refused(
        "\"l.q\" along dimension 0, and each of its 4 groups has 128",
        String.format(rule, ", 'as': ['l.q', 'l.k', 'l.v']").replace("2:S0", "3:S0*64"), "--from", "1:R");
    refused(
        "[0]: 3:S0: the fused tensor has extent 1024 along dimension 0, of which a rank would hold 512",
        String.format(rule, "").replace("2:S0", "3:S0"), "--from", "1:R");
    refused(
        "each rank would hold 64 of the 1024 of the fused tensor along dimension 0, which are no whole units of 256",
        String.format(rule, "").replace("2:S0", "2:SS0/8"), "--from", "1:R");
    refused(
        "has extent 1024 along dimension 0, and split makes 768: 3 groups of [2, 1, 1] units of 64;",
        String.format(rule, "").replace("'groups': 4", "'groups': 3"), "--from", "1:R");
    String join =
        "[{'match': 'l.{p}', 'dim': 0, 'parts': ['q', 'k', 'v'], 'unit': 64, 'groups': 4, 'as': 'l.qkv.weight'}]";
    Path back = folder.resolve("back.safetensors");
    Cli joined = run(join, out, back, "--to", "1@0:R");
    assertThat(joined.status()).as(joined.err()).isZero();
    assertThat(TestFile.read(back).tensors()).isEqualTo(tensors);
  }

  @Test
  void eachPartHasALayout() throws IOException {
    rows("q.weight", 0, 256);
    rows("k.weight", 1000, 128);
    rows("v.weight", 2000, 128);
    String rule =
        "[{'match': '{p}.weight', 'dim': 0, 'parts': [{'name': 'q', 'to': '4:S0'},"
            + " {'name': 'k', 'to': 'kv=2xrep=2:S0,R'}, {'name': 'v', 'to': 'kv=2xrep=2:S0,R'}],"
            + " 'as': 'qkv.weight'%s}]";
    for (List<Object> more : List.<List<Object>>of(List.of(), List.of("--to", "4@0:R"))) {
      List<Object> arguments = new ArrayList<>(List.of("--from", "1:R"));
      arguments.addAll(more);
      Path out = reshard(String.format(rule, ", 'unit': 64"), arguments.toArray());
      for (int r = 0; r < 4; r++) {
        assertThat(rows(out, r, "qkv.weight"))
            .isEqualTo(range(64 * r, 64, 1000 + r / 2 * 64, 64, 2000 + r / 2 * 64, 64));
      }
      assertThat(layouts(out))
          .contains("\"layout\":[\"4:S0\",\"kv=2xrep=2:S0,R\",\"kv=2xrep=2:S0,R\"]");
    }
    String apart =
        "[{'match': 'qkv.weight', 'dim': 0, 'split': [4, 2, 2], 'unit': 64,"
            + " 'as': ['q.weight', 'k.weight', 'v.weight']}]";
    Path back = folder.resolve("back.safetensors");
    Cli done = run(apart, out(), back, "--to", "1@0:R");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(TestFile.read(back).tensors()).isEqualTo(tensors);
    refused(
        "each rank would hold 64 of the 256 of part \"q\" along dimension 0, which are no whole units of 128",
        String.format(rule, ", 'unit': 128"), "--from", "1:R");
    refused(
        "parts of one tensor are on the same ranks; 4:S0 is for rank-00000.safetensors to",
        String.format(rule, "").replace("kv=2xrep=2:S0,R", "2:S0"), "--from", "1:R");
    refused(
        "cut other dimensions than 0 differently",
        String.format(rule, "").replace("kv=2xrep=2:S0,R", "4:S1"), "--from", "1:R");
    refused(
        "[0].to: S7 cuts dimension 7, and tensor \"q.weight\" has 2 dimensions",
        String.format(rule, "").replace("kv=2xrep=2:S0,R", "4:S7"), "--from", "1:R");
  }

  /** Rank files of another engine, without a layout.json. */
  private Path ranks(List<List<Long>> ranks) throws IOException {
    Path in = folder.resolve("ranks");
    Files.createDirectories(in);
    for (int r = 0; r < ranks.size(); r++) {
      long[] bits = ranks.get(r).stream().flatMapToLong(row -> LongStream.of(row, row)).toArray();
      TestFile.write(
          in.resolve(String.format("rank-%05d.safetensors", r)),
          List.of(new TestFile.Tensor("qkv", DType.I32, new int[] {bits.length / 2, 2}, bits)),
          Map.of());
    }
    return in;
  }

  @Test
  void aFusedSourceInRankFilesIsReadPartByPart() throws IOException {
    List<List<Long>> held = new ArrayList<>();
    for (int r = 0; r < 4; r++) {
      held.add(range(2 * r, 2, 8 + r / 2 * 2, 2, 12 + r / 2 * 2, 2));
    }
    Path in = ranks(held);
    Path whole = folder.resolve("whole.safetensors");
    String split = "[{'match': 'qkv', 'dim': 0, 'split': [8, 4, 4]%s}]";
    String each = String.format(split, ", 'from': ['4:S0', '2x2:S0,R', '2x2:S0,R']");
    Cli done = run(each, in, whole, "--from", "4:R", "--to", "1@0:R");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(rows(TestFile.read(whole).tensors().get(0))).isEqualTo(range(0, 16));
    Cli wrong = run(each.replace("2x2:S0,R", "4:S0"), in, whole, "--from", "4:R", "--to", "1@0:R");
    assertThat(wrong.status()).isEqualTo(2);
    assertThat(wrong.err()).contains("rank 0: expected shape [", "each cut separately as 4:S0");
    Cli unsaid = run(String.format(split, ""), in, whole, "--from", "4:S0", "--to", "1@0:R");
    assertThat(unsaid.status()).isEqualTo(2);
    assertThat(unsaid.err().replace("\\", ""))
        .contains(
            "4:S0 cuts dimension 0 of tensor \"qkv\", along which the rule splits it. If each",
            "give the rule \"from\": \"4:S0\"");
    // Of replicas that differ, the one part is compared with the one part of the other.
    List<Long> other = new ArrayList<>(held.get(1));
    other.set(3, 77L);
    held.set(1, other);
    Cli differs = run(each, ranks(held), whole, "--from", "4:R", "--to", "1@0:R");
    assertThat(differs.status()).isEqualTo(6);
    assertThat(differs.err())
        .contains("differs at index [9, 0]: source rank 0 holds 0x9, and its replica rank 1 holds 0x4d");
  }

  @Test
  void groupsInRankFilesAreReadWhole() throws IOException {
    Path in = ranks(List.of(range(0, 8), range(8, 8)));
    Path whole = folder.resolve("whole.safetensors");
    String rule =
        "[{'match': 'qkv', 'dim': 0, 'split': [2, 1, 1], 'unit': 2, 'groups': 2, 'from': '2:S0',"
            + " 'as': ['q', 'k', 'v']}]";
    Cli done = run(rule, in, whole, "--from", "2:R", "--to", "1@0:R");
    assertThat(done.status()).as(done.err()).isZero();
    List<TestFile.Tensor> made = TestFile.read(whole).tensors();
    assertThat(rows(made.get(0))).isEqualTo(range(0, 4, 8, 4));
    assertThat(rows(made.get(1))).isEqualTo(range(4, 2, 12, 2));
    assertThat(rows(made.get(2))).isEqualTo(range(6, 2, 14, 2));
  }

  @Test
  void elementsOfLessThanAByteAreSplitOnBytes() throws IOException {
    tensors.add(
        new TestFile.Tensor("w", DType.F4, new int[] {4, 4}, LongStream.range(0, 16).toArray()));
    Path out = reshard("[" + split("w", "2, 1, 1", 0, ", 'as': ['q', 'k', 'v']") + "]", "--from", "1:R", "--to", "1:R");
    assertThat(rank(out, 0).get(1))
        .isEqualTo(new TestFile.Tensor("k", DType.F4, new int[] {1, 4}, new long[] {8, 9, 10, 11}));
    reshard("[" + split("w", "2, 2", 1, ", 'as': ['q', 'k']") + "]", "--from", "1:R", "--to", "1:R");
    assertThat(rank(out, 0).get(1).bits()).containsExactly(2, 3, 6, 7, 10, 11, 14, 15);
    Cli inside =
        run("[" + split("w", "3, 1", 1, ", 'as': ['q', 'k']") + "]", in(), folder.resolve("new"), "--from", "1:R", "--to", "1:R");
    assertThat(inside.status()).as(inside.err()).isEqualTo(3);
    assertThat(inside.err()).contains("moves only where every cut falls on a byte");
    reshard("[{'match': 'w', 'pad_to': 4, 'to': '3:S0'}]", "--from", "1:R", "--to", "3:S0");
    assertThat(rank(out, 1).get(0).shape()).containsExactly(2, 4);
    assertThat(rank(out, 2).get(0).shape()).containsExactly(0, 4);
  }

  @Test
  void extentsArePaddedBeforeTheyAreCut() throws IOException {
    rows("embed", 1, 49_159);
    String rule = "[{'match': 'embed', 'to': '2:S0', 'pad_to': 64%s}]";
    Path out = reshard(String.format(rule, ""), "--from", "1:R", "--to", "2:S0");
    assertThat(rows(out, 0, "embed")).isEqualTo(range(1, 24_608));
    List<Long> last = new ArrayList<>(range(24_609, 24_551));
    last.addAll(Collections.nCopies(57, 0L));
    assertThat(rows(out, 1, "embed")).isEqualTo(last);
    assertThat(layouts(out))
        .contains("\"shape\":[49159,2],\"dtype\":\"I32\",\"layout\":\"2:S0\",\"padded\":[49216,2]");
    Path whole = folder.resolve("whole.safetensors");
    for (String rules : List.of("[]", "[{'match': 'embed', 'pad_to': 64}]")) {
      Cli done = run(rules, out, whole, "--to", "1@0:R");
      assertThat(done.status()).as(done.err()).isZero();
      assertThat(TestFile.read(whole).tensors()).isEqualTo(tensors);
    }
    Path four = folder.resolve("four");
    Cli again = run("[{'match': 'embed', 'pad_to': 128}]", out, four, "--to", "4@0:S0");
    assertThat(again.status()).as(again.err()).isZero();
    assertThat(rows(four, 1, "embed")).isEqualTo(range(12_321, 12_320));
    assertThat(rank(four, 3).get(0).shape()[0]).isEqualTo(49_280 / 4);
    Cli other = run("[{'match': 'embed', 'pad_to': 64, 'shape': [49160, 2]}]", out, whole, "--to", "1@0:R");
    assertThat(other.err()).contains("make shape [49216, 2], and by its rule or layout.json it is [49160, 2]");
    // Without layout.json the files do not tell where the padding begins.
    Files.delete(out.resolve("layout.json"));
    String shape = "[{'match': 'embed', 'pad_to': 64%s}]";
    Cli unsaid = run(String.format(shape, ""), out, whole, "--from", "2:S0", "--to", "1@0:R");
    assertThat(unsaid.status()).isEqualTo(2);
    assertThat(unsaid.err().replace("\\", ""))
        .contains("together have shape [49216, 2]; its size along dimension 0 is a multiple of 64", "as \"shape\" in the rule");
    Cli wrong = run(String.format(shape, ", 'shape': [49000, 2]"), out, whole, "--from", "2:S0", "--to", "1@0:R");
    assertThat(wrong.err()).contains("tensor \"embed\": its files make shape [49216, 2], and by its rule or layout.json it is [49000, 2], padded to [49024, 2]");
    Cli said = run(String.format(shape, ", 'shape': [49159, 2]"), out, whole, "--from", "2:S0", "--to", "1@0:R");
    assertThat(said.status()).as(said.err()).isZero();
    assertThat(TestFile.read(whole).tensors()).isEqualTo(tensors);
  }

  /** Reads OUT again with a shape that is too small, and expects the index of a lost value. */
  private void losing(String index, String rules, Path in, Object... more) throws IOException {
    Path whole = folder.resolve("whole");
    List<Object> arguments = new ArrayList<>(List.of("reshard", in, whole, "--to", "1@0:R"));
    arguments.addAll(List.of("--rules", Files.writeString(folder.resolve("r"), rules.replace('\'', '"'))));
    arguments.addAll(List.of(more));
    Cli failed = Cli.run(arguments.toArray());
    assertThat(failed.status()).as(failed.err()).isEqualTo(2);
    assertThat(failed.err()).contains(index, "is not zero. Correct");
    assertThat(whole).doesNotExist();
  }

  @Test
  void paddingThatIsLeftOutMustBeZero() throws IOException {
    tensors.add(
        new TestFile.Tensor("w", DType.I8, new int[] {3, 5}, LongStream.range(1, 16).toArray()));
    Path out = reshard("[{'match': 'w', 'to': '2x2:S0,S1', 'pad_to': 4}]", "--from", "1:R", "--to", "4:R");
    Path file = out.resolve("layout.json");
    String stored = Files.readString(file);
    // A wrong shape in layout.json, along either dimension.
    Files.writeString(file, stored.replaceFirst("\\[ *3, *5 *\\]", "[2, 5]"));
    losing("indices from 2 of dimension 0 count as padding, but the value at [2, 0]", "[]", out);
    Files.writeString(file, stored.replaceFirst("\\[ *3, *5 *\\]", "[3, 4]"));
    losing("indices from 4 of dimension 1 count as padding, but the value at [0, 4]", "[]", out);
    // A wrong shape in a rule.
    Files.delete(file);
    String rule = "[{'match': 'w', 'pad_to': 4, 'shape': [%s]}]";
    losing("tensor \"w\": its rule or layout.json gives the shape [1, 5], so indices from 1", String.format(rule, "1, 5"), out, "--from", "2x2:S0,S1");
    Cli right = run(String.format(rule, "3, 5"), out, folder.resolve("right.safetensors"), "--from", "2x2:S0,S1", "--to", "1@0:R");
    assertThat(right.status()).as(right.err()).isZero();
    assertThat(TestFile.read(folder.resolve("right.safetensors")).tensors()).isEqualTo(tensors);
    // Without pad_to nothing is left out.
    Cli all = run("[]", out, folder.resolve("all.safetensors"), "--from", "2x2:S0,S1", "--to", "1@0:R");
    assertThat(all.status()).as(all.err()).isZero();
    assertThat(TestFile.read(folder.resolve("all.safetensors")).tensors().get(0).shape()).containsExactly(4, 8);
  }

  @Test
  void paddingOfEveryKindOfSourceMustBeZero() throws IOException {
    String rule = "[{'match': 'w', 'pad_to': 6, 'shape': [%d]}]";
    // The second piece of each third of a strided shard, and of elements of less than a byte.
    tensors.add(new TestFile.Tensor("w", DType.F4, new int[] {24}, LongStream.range(1, 25).map(i -> i % 15 + 1).toArray()));
    Path strided = reshard("[{'match': 'w', 'to': '2:SS0/3'}]", "--from", "1:R", "--to", "2:R");
    Files.delete(strided.resolve("layout.json"));
    losing("the value at [20] is not zero", String.format(rule, 20), strided, "--from", "2:SS0/3");
    // Two terms, of which only the second has a value where the padding would be.
    Path terms = Files.createDirectory(folder.resolve("terms"));
    for (int r = 0; r < 2; r++) {
      long[] bits = {1, 2, 3, 4, 5, 6L * r};
      TestFile.Tensor term = new TestFile.Tensor("w", DType.I32, new int[] {6}, bits);
      TestFile.write(terms.resolve("rank-0000" + r + ".safetensors"), List.of(term), Map.of());
    }
    losing("the value at [5] is not zero", String.format(rule, 5), terms, "--from", "2x1:P,S0");
    // Negative zero is not all bits zero.
    Path one = Files.createDirectory(folder.resolve("one"));
    TestFile.Tensor negative = new TestFile.Tensor("w", DType.F32, new int[] {6}, new long[] {1, 2, 3, 4, 5, 0x80000000L});
    TestFile.write(one.resolve("rank-00000.safetensors"), List.of(negative), Map.of());
    losing("the value at [5] is not zero", String.format(rule, 5), one, "--from", "1:S0");
  }

  @Test
  void onlyDimensionsThatAreCutArePadded() throws IOException {
    rows("w", 1, 5);
    Path out = reshard("[{'match': 'w', 'to': '2x2:S0,S1', 'pad_to': 4}]", "--from", "1:R", "--to", "4:R");
    assertThat(rank(out, 0).get(0).bits()).containsExactly(1, 1, 2, 2, 3, 3, 4, 4);
    assertThat(rank(out, 1).get(0).bits()).containsExactly(new long[8]);
    assertThat(rank(out, 2).get(0).bits()).containsExactly(5, 5, 0, 0, 0, 0, 0, 0);
    Path rows = reshard("[{'match': 'w', 'to': '1:S0', 'pad_to': 4}]", "--from", "1:R", "--to", "1:R");
    assertThat(rank(rows, 0).get(0).shape()).containsExactly(8, 2);
    Path whole = reshard("[{'match': 'w', 'to': '2:R', 'pad_to': 4}]", "--from", "1:R", "--to", "2:R");
    assertThat(rank(whole, 0).get(0).shape()).containsExactly(5, 2);
  }

  @Test
  void paddedPiecesOfAStridedShardAreReadAgain() throws IOException {
    rows("w", 1, 5);
    Path out = reshard("[{'match': 'w', 'to': '2:SS0/3', 'pad_to': 2}]", "--from", "1:R", "--to", "2:R");
    assertThat(rank(out, 1).get(0).bits()).containsExactly(2, 2, 4, 4, 0, 0);
    Path whole = folder.resolve("whole.safetensors");
    Cli back = run("[]", out, whole, "--to", "1@0:R");
    assertThat(back.status()).as(back.err()).isZero();
    assertThat(TestFile.read(whole).tensors()).isEqualTo(tensors);
  }

  @Test
  void tensorsAreLeftOut() throws IOException {
    rows("lm_head.weight", 0, 4);
    rows("embed.weight", 0, 4);
    rows("x", 9, 1);
    Path out = folder.resolve("out.safetensors");
    Path in = folder.resolve("in.safetensors");
    TestFile.write(in, tensors, Map.of("tied", "x", "alias", "embed.weight"));
    String rules = "[{'match': 'lm_head.weight', 'drop': true}, {'match': 'x', 'drop': true}]";
    Cli done = run(rules, in, out, "--from", "1:R", "--to", "1:R");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err()).contains("__metadata__ \"tied\": names tensor \"x\", which is not written");
    assertThat(TestFile.read(out).tensors()).containsExactly(tensors.get(1));
    assertThat(TestFile.read(out).metadata()).isEqualTo(Map.of("alias", "embed.weight"));
    Cli alias = run("[{'match': 'alias', 'drop': true}]", in, out, "--from", "1:R", "--to", "1:R");
    assertThat(alias.err()).doesNotContain("matches no tensor");
    assertThat(alias.status()).as(alias.err()).isZero();
    assertThat(TestFile.read(out).metadata()).isEqualTo(Map.of("tied", "x"));
    refused("rules drop every tensor", "[{'match': '*', 'drop': true}]", "--from", "1:R", "--to", "1:R");
  }

  @Test
  void aDroppedTensorNeedsNoLayoutAndNoFileOfEachRank() throws IOException {
    Path in = ranks(List.of(range(0, 2), range(2, 2)));
    Path extra = in.resolve("rank-00001.safetensors");
    List<TestFile.Tensor> more = new ArrayList<>(TestFile.read(extra).tensors());
    more.add(new TestFile.Tensor("extra", DType.U8, new int[] {1}, new long[] {7}));
    TestFile.write(extra, more, Map.of());
    Path out = folder.resolve("out.safetensors");
    assertThat(run("[]", in, out, "--from", "2:S0", "--to", "1:R").status()).isEqualTo(2);
    Cli done = run("[{'match': 'extra', 'drop': true}]", in, out, "--from", "2:S0", "--to", "1:R");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(rows(TestFile.read(out).tensors().get(0))).isEqualTo(range(0, 4));
  }

  private void add(String name, DType dtype, int... shape) {
    int elements = Arrays.stream(shape).reduce(1, (a, b) -> a * b);
    long[] bits = LongStream.range(0, elements).map(i -> i % 100).toArray();
    tensors.add(new TestFile.Tensor(name, dtype, shape, bits));
  }

  private void done(String rules, Object... options) throws IOException {
    Cli done = run(rules, in(), out(), options);
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err()).isEmpty();
  }

  private static final Object[] TWO = {"--from", "1:R", "--to", "2:S0"};

  private static String split(String name, String sizes, int dim, String more) {
    return "{'match': '" + name + "', 'dim': " + dim + ", 'unit': 1, 'split': [" + sizes + "]" + more + "}";
  }

  private static String apart(String end) {
    return ", 'as': ['m.q." + end + "', 'm.k." + end + "', 'm.v." + end + "']";
  }

  @Test
  void scalesOfBlocksAreSplitAsTheirWeight() throws IOException {
    add("m.qkv.weight", DType.F8E4M3, 384, 32);
    add("m.qkv.weight_scale", DType.F32, 12, 1);
    String weight = split("m.qkv.weight", "256, 64, 64", 0, "");
    done("[" + weight + "," + split("*scale", "8, 2, 2", 0, "") + "]", TWO);
    refused("scales 0 to 5 along dimension 0, and needs scales 0 to 3, 8, 10", "[" + weight + "]", TWO);
    refused("needs scales 0 to 3, 8, 10", "[" + weight + "," + split("*scale", "4, 4, 4", 0, "") + "]", TWO);
    refused(
        "inside a block of 32",
        "[" + split("m.qkv.weight", "352, 16, 16", 0, "") + "," + split("*scale", "10, 1, 1", 0, ", 'to': '2:R'") + "]",
        TWO);
    String own = split("m.qkv.weight", "256, 64, 64", 0, apart("weight"));
    done("[" + own + "," + split("*scale", "8, 2, 2", 0, apart("weight_scale")) + "]", TWO);
    refused("which are not of one module; rename both in the same way", "[" + own + "]", TWO);
    refused(
        "inside a block of 32 that has one scale",
        "[" + own + "," + split("*scale", "6, 3, 3", 0, apart("weight_scale")) + "]", TWO);
    refused(
        "inside a block of 32 that has one scale",
        "[" + own + ",{'match': '*scale'" + apart("weight_scale") + "}]", TWO);
    refused(
        "quantized tensors are not padded, so leave \"pad_to\" out",
        "[{'match': 'm.qkv.weight', 'pad_to': 256}]", TWO);
  }

  @Test
  void scalesOfWholePartsAreGivenToThem() throws IOException {
    add("m.qkv.weight", DType.F8E4M3, 384, 32);
    add("m.qkv.weight_scale", DType.F32);
    String own = split("m.qkv.weight", "256, 64, 64", 0, apart("weight"));
    done("[" + own + ",{'match': '*scale'" + apart("weight_scale") + "}]", "--from", "1:R", "--to", "2:R");
    tensors.remove(1);
    add("m.qkv.weight_scale", DType.F32, 3);
    refused(
        "\"m.qkv.weight\" is split, and its scales, \"m.qkv.weight_scale\" [3], do not lie along it",
        "[" + own + ",{'match': '*scale'" + apart("weight_scale") + "}]", "--from", "1:R", "--to", "2:R");
    done(
        "[" + own + "," + split("*scale", "1, 1, 1", 0, apart("weight_scale")) + "]",
        "--from", "1:R", "--to", "2:R");
  }

  @Test
  void groupsOfInputsAreNotSplit() throws IOException {
    add("m.qkv.qweight", DType.I32, 32, 384);
    add("m.qkv.qzeros", DType.I32, 2, 48);
    add("m.qkv.scales", DType.F16, 2, 384);
    long[] inputs = LongStream.range(0, 256).map(i -> i / 128).toArray();
    tensors.add(new TestFile.Tensor("m.qkv.g_idx", DType.I32, new int[] {256}, inputs));
    String rules =
        "[" + split("*qweight", "256, 64, 64", 1, apart("qweight")) + ","
            + split("*qzeros", "32, 8, 8", 1, apart("qzeros")) + ","
            + split("*scales", "256, 64, 64", 1, apart("scales")) + ",%s]";
    String copied = "{'match': '*g_idx', 'to': '2:R'" + apart("g_idx") + "}";
    done(String.format(rules, copied), "--from", "1:R", "--to", "2:S1");
    refused("which are not of one module", String.format(rules, "{'match': '*g_idx', 'to': '2:R'}"), "--from", "1:R", "--to", "2:S1");
    String inputsToo = "[" + split("*qweight", "16, 16", 0, ", 'as': ['a.qweight', 'b.qweight']") + ","
        + split("*scales", "1, 1", 0, ", 'as': ['a.scales', 'b.scales']") + ","
        + split("*qzeros", "1, 1", 0, ", 'as': ['a.qzeros', 'b.qzeros']") + ","
        + split("*g_idx", "128, 128", 0, ", 'as': ['a.g_idx', 'b.g_idx']") + "]";
    refused("splits along their inputs: each counts its groups from 0", inputsToo, "--from", "1:R", "--to", "1:R");
  }

  @Test
  void biasesAndLoraFactorsGoWithTheirWeight() throws IOException {
    add("m.fused.weight", DType.F32, 384, 8);
    add("m.fused.bias", DType.F32, 384);
    String weight = split("m.fused.weight", "256, 64, 64", 0, "");
    refused(
        "tensor \"m.fused.bias\" [384] is of one module with \"m.fused.weight\" [384, 8], which ",
        "[" + weight + "]", TWO);
    done("[" + weight + ", {'match': '*bias', 'to': '2:R'}]", TWO);
    done("[" + split("m.fused.*", "256, 64, 64", 0, "") + "]", TWO);
    add("m.fused.lora_A.weight", DType.F32, 4, 8);
    done("[" + split("m.fused.weight", "256, 64, 64", 0, "") + "," + split("*bias", "256, 64, 64", 0, "") + "]", TWO);
    add("m.fused.lora_B.weight", DType.F32, 384, 4);
    refused(
        "tensor \"m.fused.lora_B.weight\" [384, 4] is of one module",
        "[" + split("m.fused.weight", "256, 64, 64", 0, "") + "," + split("*bias", "256, 64, 64", 0, "") + "]", TWO);
    done("[{'match': '*lora_A*', 'to': '2:R'}," + split("m.fused.*", "256, 64, 64", 0, "") + "]", TWO);
    refused("and is not cut alike along dimension 0", "[{'match': '*weight', 'pad_to': 25}]", TWO);
    done("[{'match': '*', 'pad_to': 25}]", TWO);
  }

  @Test
  void aWeightIsNotLeftWithoutItsScales() throws IOException {
    add("m.weight", DType.F8E4M3, 4, 4);
    add("m.weight_scale", DType.F32, 4, 1);
    add("m.input_scale", DType.F32);
    refused(
        "tensor \"m.weight\" is written, and a rule drops its scales, \"m.weight_scale\"",
        "[{'match': '*weight_scale', 'drop': true}]", TWO);
    done("[{'match': '*scale', 'drop': true}]", "--from", "1:R", "--to", "2:S0", "--ignore-scales");
    done("[{'match': '*input_scale', 'drop': true}]", TWO);
    Cli left = run("[{'match': 'm.weight', 'drop': true}]", in(), out(), "--from", "1:R", "--to", "2:R");
    assertThat(left.status()).as(left.err()).isZero();
    assertThat(left.err())
        .contains(
            "2 tensors \"m.weight_scale\", \"m.input_scale\": scales of \"m.weight\", which a rule drops");
  }
}
