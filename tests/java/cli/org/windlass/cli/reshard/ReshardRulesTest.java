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
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.DType;
import org.windlass.cli.Cli;
import org.windlass.testing.TestFile;

/** What {@code --rules} takes, what it refuses, and what each kind of rule does. */
class ReshardRulesTest {
  @TempDir Path folder;

  private static TestFile.Tensor tensor(String name, int first, int... shape) {
    return tensor(name, DType.I32, first, shape);
  }

  /** Elements that count up from {@code first}. */
  private static TestFile.Tensor tensor(String name, DType dtype, int first, int... shape) {
    long[] bits = new long[Arrays.stream(shape).reduce(1, (a, b) -> a * b)];
    Arrays.setAll(bits, i -> first + i);
    return new TestFile.Tensor(name, dtype, shape, bits);
  }

  private static TestFile.Tensor of(String name, int[] shape, long... bits) {
    return new TestFile.Tensor(name, DType.I32, shape, bits);
  }

  private static int[] shape(int... extents) {
    return extents;
  }

  private Path in(TestFile.Tensor... tensors) throws IOException {
    Path path = folder.resolve("in.safetensors");
    TestFile.write(path, List.of(tensors), Map.of());
    return path;
  }

  private Cli reshard(String rules, Path in, Path out, Object... more) throws IOException {
    Path file = Files.writeString(folder.resolve("rules.json"), rules.replace('\'', '"'));
    List<Object> arguments = new ArrayList<>(List.of("reshard", "--rules", file, in, out, "--verify"));
    arguments.addAll(List.of(more));
    return Cli.run(arguments.toArray());
  }

  /** The tensors that rules make of some, written whole. */
  private List<TestFile.Tensor> whole(String rules, TestFile.Tensor... tensors)
      throws IOException {
    Path out = folder.resolve("out.safetensors");
    Cli done = reshard(rules, in(tensors), out, "--from", "1:R", "--to", "2:S0", "--force");
    assertThat(done.status()).as(done.err()).isZero();
    return TestFile.read(out).tensors();
  }

  private List<String> names() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(path -> path.getFileName().toString()).sorted().toList();
    }
  }

  private void refused(String rules, String words, TestFile.Tensor... tensors) throws IOException {
    Path in = in(tensors);
    Files.writeString(folder.resolve("rules.json"), "");
    List<String> before = names();
    Cli failed = reshard(rules, in, folder.resolve("new"), "--from", "1:R", "--to", "2:S0");
    assertThat(failed.status()).as(failed.err()).isEqualTo(2);
    assertThat(failed.err()).contains(words);
    assertThat(names()).isEqualTo(before);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{}                                              | rules.json: the whole is an object, not a list",
        "[                                               | rules.json: not valid JSON",
        "[] 1                                            | rules.json: something follows the JSON",
        "[3]                                             | [0] is 3, not an object",
        "[{'match':'*'},{}]                              | [1].match is missing",
        "[{'match':1}]                                   | [0].match is 1, not a string",
        "[{'match':'{a'}]                                | [0].match: the brace at character 0 of \"{a\"",
        "[{'match':'a}'}]                                | [0].match: the brace at character 1",
        "[{'match':'{a}.{a}'}]                           | [0].match: {a} stands twice",
        "[{'match':'*','match':'*'}]                     | the key \"match\" stands twice in [0]",
        "[{'match':'*','form':'2:R'}]                    | [0]: the key \"form\" is unknown; known are match, from, to",
        "[{'match':'*','from':'2:Q'}]                    | [0].from: ",
        "[{'match':'*','from':2}]                        | [0].from is 2, not a string",
        "[{'match':'*','to':'2'}]                        | [0].to: ",
        "[{'match':'*','to':'2:P'}]                      | [0].to: 2:P: a target cannot be Partial",
        "[{'match':'*','dtype':'f31'}]                   | [0].dtype: 'f31' is no dtype",
        "[{'match':'*','dtype':'i32'}]                   | [0].dtype: i32: not a dtype that floating",
        "[{'match':'*','as':''}]                         | [0].as: \"\" is no name",
        "[{'match':'*','as':[]}]                         | [0].as: is empty",
        "[{'match':'*','as':['a','a']}]                  | [0].as: \"a\" stands twice",
        "[{'match':'*','as':['a',null]}]                 | [0].as[1] is null, not a string",
        "[{'match':'*','as':'{x}'}]                      | [0].as: match does not capture {x}",
        "[{'match':'*','as':['a','b{']}]                 | [0].as[1]: the brace at character 1",
        "[{'match':'*','as':'b*'}]                       | [0].as: holds *",
        "[{'match':'*','transpose':false}]               | [0].transpose is false, not a list",
        "[{'match':'*','transpose':[0,2]}]               | [0].transpose: [0, 2] does not name dimension 1",
        "[{'match':'*','transpose':[0,-1]}]              | [0].transpose[1] is -1, which is negative",
        "[{'match':'{p}','as':'a','parts':['q']}]        | [0].dim is missing",
        "[{'match':'{p}','as':'a','dim':0}]              | [0].dim: has no parts",
        "[{'match':'{p}','as':'a','parts':'q','dim':0}]  | [0].parts is the string \"q\", not a list",
        "[{'match':'{p}','parts':['q'],'dim':0}]         | [0].as: is missing",
        "[{'match':'p','as':'a','parts':['q'],'dim':0}]  | [0].as: holds every capture; give the",
        "[{'match':'{p}.{r}','as':'a','stack':true}]     | [0].as: leaves out {p} and {r}; give",
        "[{'match':'{l}.{p}','as':['q','k'],'parts':['q','k'],'dim':0}] | does not name its parts",
        "[{'match':'{p}','as':['{p}'],'stack':true}]     | [0].as: holds every capture; give the",
        "[{'match':'*','unit':4}]                        | [0].unit: has no parts",
        "[{'match':'{p}','as':'a','parts':['q'],'dim':0,'unit':0}] | [0].unit: 0 is not a valid number",
        "[{'match':'*','uneven':true}]                   | [0].uneven: has no stack",
        "[{'match':'{p}','as':'a','stack':true,'uneven':1}] | [0].uneven: is true where it is given",
        "[{'match':'{p}','as':'a','stack':99}]           | [0].stack: 99 is not a dimension",
        "[{'match':'{p}','as':'a','stack':true,'parts':['q'],'dim':0}] | [0].stack: stands beside parts",
        "[{'match':'*','split':[1,1]}]                   | [0].dim is missing",
        "[{'match':'*','split':2,'dim':0}]               | [0].split is 2, not a list",
        "[{'match':'*','split':[2],'dim':0}]             | [0].split: is [2]; give the sizes of two",
        "[{'match':'*','split':[1,0],'dim':0}]           | [0].split[1]: 0 is not a valid number of indices or groups",
        "[{'match':'*','split':[9223372036854775807,1],'dim':0}] | [0].split: the parts together have 2^63",
        "[{'match':'*','pad_to':2147483648}]              | [0].pad_to: 2147483648 is above 2147483647",
        "[{'match':'*','split':[1,1],'dim':0,'stack':true}] | [0].stack: stands beside split; a rule does only one of: join,",
        "[{'match':'{p}','as':'a','parts':['q'],'split':[1,1],'dim':0}] | [0].split: stands beside parts",
        "[{'match':'*','split':[1,1],'dim':0,'as':['a','b','c']}] | [0].as: has 3 names, and split has 2 parts",
        "[{'match':'*','split':[1,1],'dim':0,'to':['1:R','1:R','1:R']}] | [0].to: has 3 layouts, and split has 2",
        "[{'match':'*','split':[1,1],'dim':0,'to':['1:R','1:Q']}] | [0].to[1]: ",
        "[{'match':'*','split':[1,1],'dim':0,'groups':2,'to':['1:R','1:S0']}] | [0].groups: stands beside parts with",
        "[{'match':'*','split':[1,1],'dim':0,'groups':2,'from':['1:R','1:S0']}] | [0].groups: stands beside parts with",
        "[{'match':'*','split':[1,1],'dim':0,'from':[]}] | [0].from: is empty",
        "[{'match':'*','split':[1,1],'dim':0,'groups':0}] | [0].groups: 0 is not a valid number",
        "[{'match':'**','split':[1,1],'dim':0,'as':['{x}a','{x}b']}] | [0].as[0]: match does not capture {x}",
        "[{'match':'*','split':[1,1],'dim':0,'as':['{x}a','{y}b']}] | [0].as[1]: match does not capture {y}",
        "[{'match':'*','to':['1:R','1:R']}]              | [0].to: has 2 layouts, and split has 0 parts",
        "[{'match':'*','groups':2}]                      | [0].groups: has no parts or split that it is of",
        "[{'match':'{p}','as':'a','parts':[{'to':'1:R'}],'dim':0}] | [0].parts[0].name is missing",
        "[{'match':'{p}','as':'a','parts':[{'name':'q','from':'1:R'}],'dim':0}] | [0].parts[0]: the key \"from\" is unknown; known are name, to",
        "[{'match':'{p}','as':'a','parts':[{'name':'q','to':'1:P'}],'dim':0}] | [0].parts[0].to: 1:P: a target",
        "[{'match':'{p}','as':'a','parts':['q',{'name':'q'}],'dim':0}] | [0].parts: \"q\" stands twice",
        "[{'match':'*','pad_to':0}]                      | [0].pad_to: 0 is not a valid number",
        "[{'match':'*','pad_to':2,'split':[1,1],'dim':0}] | [0].pad_to: stands beside split",
        "[{'match':'*','shape':[4]}]                     | [0].shape: has no pad_to that it is of",
        "[{'match':'*','drop':false}]                    | [0].drop: is true where it is given",
        "[{'match':'*','drop':true,'to':'1:R'}]          | [0].to: is in a rule with drop; a rule that leaves",
        "[{'match':'*','drop':true,'pad_to':2}]          | [0].pad_to: stands beside drop; a rule does only one of: join,",
      })
  void aBadFileIsRefusedWithThePlaceInIt(String rules, String words) throws IOException {
    refused(rules, words, tensor("w", 0, 4));
  }

  @Test
  void aFileThatIsMissingIsNamed() throws IOException {
    Cli failed =
        Cli.run(
            "reshard", "--from", "1:R", "--to", "1:R", "--rules", folder.resolve("gone"),
            in(tensor("w", 0, 4)), folder.resolve("out"));
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err()).contains(folder.resolve("gone") + ": no such file");
  }

  @Test
  void theFirstMatchWinsAndTheRestGoesByDefaults() throws IOException {
    Path out = folder.resolve("out");
    Path in = in(tensor("a.b.w", 0, 4, 2), tensor("a.w", 0, 4, 2), tensor("b", 0, 4));
    Cli done =
        reshard(
            "[{'match':'a.*.w','to':'2@5:S1'},{'match':'a.*','to':'1@9:R'},{'match':'*.c'}]",
            in, out, "--from", "1:R", "--to", "2:S0", "--json");
    assertThat(done.status()).as(done.err()).isZero();
    String warning = "windlass: warning: ";
    String place = folder.resolve("rules.json") + ": ";
    String rest =
        ", and --to 2:S0 for rank-00000.safetensors to rank-00001.safetensors; a layout without @"
            + " uses the ranks of --to";
    assertThat(done.err().lines())
        .containsExactly(
            warning + place + "[2]: matches no tensor, or only tensors that a rule before it"
                + " matches",
            warning + "tensor \"a.b.w\": " + place
                + "[0].to: 2@5:S1 is for rank-00005.safetensors to rank-00006.safetensors" + rest,
            warning + "tensor \"a.w\": " + place
                + "[1].to: 1@9:R is for rank-00009.safetensors" + rest);
    assertThat(done.out()).startsWith("{\"tensors\":3,\"defaulted\":0,");
    assertThat(Files.readString(out.resolve("layout.json"))).contains("2@5:S1", "1@9:R", "2:S0");
    assertThat(TestFile.read(out.resolve("rank-00005.safetensors")).tensors())
        .containsExactly(of("a.b.w", shape(4, 1), 0, 2, 4, 6));
    assertThat(TestFile.read(out.resolve("rank-00009.safetensors")).tensors())
        .containsExactly(tensor("a.w", 0, 4, 2));
    assertThat(TestFile.read(out.resolve("rank-00001.safetensors")).tensors())
        .containsExactly(tensor("b", 2, 2));
    Cli back =
        Cli.run("reshard", "--to", "1@0:R", out, folder.resolve("back.safetensors"), "--verify");
    assertThat(back.status()).as(back.err()).isZero();
    assertThat(TestFile.read(folder.resolve("back.safetensors")).tensors())
        .containsExactlyInAnyOrderElementsOf(TestFile.read(in).tensors());
  }

  /** Ranks of the default layout; a rule of the same ranks, or fewer; the files of both. */
  @ParameterizedTest
  @CsvSource(
      delimiter = ' ',
      value = {
        "4:S0 4:R 0,1,2,3 0,1,2,3", "4@8:S0 4:R 8,9,10,11 8,9,10,11", "4@8:S0 2:R 8,9,10,11 8,9",
        "4@[6,4,2,0]:S0 4:S1 0,2,4,6 0,2,4,6", "4@[6,4,2,0]:S0 2:R 0,2,4,6 4,6",
        "4@8:S0 2@10:R 8,9,10,11 10,11", "4:S0 2@2:R 0,1,2,3 2,3"
      })
  void aRuleWithoutRanksLiesWhereTheDefaultDoes(String to, String rule, String files, String ruled)
      throws IOException {
    Path out = folder.resolve("out");
    Cli done =
        reshard(
            "[{'match':'a','to':'" + rule + "'}]",
            in(tensor("a", 0, 4, 4), tensor("b", 0, 4, 4)), out, "--from", "1:R", "--to", to);
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.err()).isEmpty();
    assertThat(filesWith(out, "b")).isEqualTo(files);
    assertThat(filesWith(out, "a")).isEqualTo(ruled);
    if (to.startsWith("4@[") && rule.equals("4:S1")) {
      assertThat(TestFile.read(out.resolve("rank-00006.safetensors")).tensors().get(0))
          .isEqualTo(of("a", shape(4, 1), 0, 4, 8, 12));
    }
    Cli back =
        Cli.run("reshard", "--to", "1@0:R", out, folder.resolve("back.safetensors"), "--verify");
    assertThat(back.status()).as(back.err()).isZero();
    assertThat(TestFile.read(folder.resolve("back.safetensors")).tensors())
        .containsExactlyInAnyOrder(tensor("a", 0, 4, 4), tensor("b", 0, 4, 4));
  }

  private static String filesWith(Path out, String tensor) throws IOException {
    List<String> numbers = new ArrayList<>();
    try (Stream<Path> entries = Files.list(out)) {
      List<Path> files =
          entries.filter(path -> path.toString().endsWith(".safetensors")).sorted().toList();
      for (Path file : files) {
        if (TestFile.read(file).tensors().stream().anyMatch(each -> each.name().equals(tensor))) {
          numbers.add(file.getFileName().toString().replaceAll("rank-0*(\\d+)\\..*", "$1"));
        }
      }
    }
    return String.join(",", numbers);
  }

  @ParameterizedTest
  @CsvSource(delimiter = ' ', value = {"4:S0 4@8:S0", "4@8:S0 4@0:S0", "2:S0 4:S0", "1:R 2@1:S0"})
  void filesThatOnlyARuleHasAreNamed(String to, String rule) throws IOException {
    Path out = folder.resolve("out");
    Cli done =
        reshard(
            "[{'match':'a*','to':'" + rule + "'}]",
            in(tensor("a", 0, 4, 4), tensor("aa", 0, 4, 4), tensor("b", 0, 4, 4)), out,
            "--from", "1:R", "--to", to, "--json");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(done.out()).contains("\"warning_count\":1,");
    assertThat(done.err())
        .contains(
            "2 tensors \"a\", \"aa\": ", "[0].to: " + rule + " is for rank-",
            ", and --to " + to + " for rank-");
  }

  @Test
  void aSourceWithoutRanksLiesWhereTheDefaultDoes() throws IOException {
    Path in = Files.createDirectory(folder.resolve("ranks"));
    for (int rank = 8; rank < 10; rank++) {
      TestFile.write(
          in.resolve(String.format("rank-%05d.safetensors", rank)),
          List.of(tensor("a", 0, 4), tensor("b", 2 * rank - 16, 2)), Map.of());
    }
    Path out = folder.resolve("out.safetensors");
    Cli done = reshard("[{'match':'a','from':'2:R'}]", in, out, "--from", "2@8:S0", "--to", "1:R");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(TestFile.read(out).tensors()).containsExactly(tensor("a", 0, 4), tensor("b", 0, 4));
    Path mid = folder.resolve("mid");
    assertThat(Cli.run("reshard", in, mid, "--from", "2@8:S0", "--to", "2@4:S0").status()).isZero();
    Cli told = reshard("[{'match':'a','from':'2:S0'}]", mid, folder.resolve("o2"), "--to", "1:R");
    assertThat(told.status()).as(told.err()).isZero();
  }

  @Test
  void aRulesLayoutThatDoesNotFitIsNamedWithItsPlace() throws IOException {
    refused(
        "[{'match':'*','to':'4@3:S1'}]",
        "[0].to: S1 cuts dimension 1, and tensor \"w\" has 1 dimension; before this one, add a"
            + " rule for such tensors",
        tensor("w", 0, 4));
    refused(
        "[{'match':'*','from':'4:S1'}]",
        "[0].from: S1 cuts dimension 1, and tensor \"w\" has 1 dimension;", tensor("w", 0, 4));
    refused("[{'match':'*','to':'1048577:R'}]", "[0].to: ", tensor("w", 0, 4));
  }

  @Test
  void capturesAreSegmentsAndNamesMayBeSeveral() throws IOException {
    assertThat(
            whole(
                "[{'match':'h.{n}.*.{k}','as':['x.{k}.{n}','y.{n}']},{'match':'{n}','as':'top.{n}'}]",
                tensor("h.3.a.b.w", 0, 2),
                tensor("e", 7, 3),
                tensor("h.w", 9, 1)))
        .containsExactly(
            tensor("x.w.3", 0, 2), tensor("y.3", 0, 2), tensor("top.e", 7, 3), tensor("h.w", 9, 1));
  }

  @Test
  void dtypesOfRulesTouchFloatingTensorsOnly() throws IOException {
    List<TestFile.Tensor> made =
        whole(
            "[{'match':'f*','dtype':'F32'}]",
            new TestFile.Tensor("f", DType.BF16, shape(2), new long[] {0x3f80, 0xc000}),
            tensor("fi", 1, 2),
            tensor("g", DType.BF16, 0, 2));
    assertThat(made)
        .containsExactly(
            new TestFile.Tensor("f", DType.F32, shape(2), new long[] {0x3f800000L, 0xc0000000L}),
            tensor("fi", 1, 2),
            tensor("g", DType.BF16, 0, 2));
  }

  @Test
  void dimensionsChangeTheirOrder() throws IOException {
    assertThat(
            whole(
                "[{'match':'a','transpose':true},{'match':'b','transpose':[2,0,1]}]",
                tensor("a", 0, 2, 3),
                tensor("b", 0, 1, 2, 3)))
        .containsExactly(
            of("a", shape(3, 2), 0, 3, 1, 4, 2, 5), of("b", shape(3, 1, 2), 0, 3, 1, 4, 2, 5));
    refused("[{'match':'*','transpose':true}]", "[0]: transpose exchanges the last two", tensor("w", 0, 3));
    refused("[{'match':'*','transpose':[0]}]", "tensor \"w\" has shape [1, 3]", tensor("w", 0, 1, 3));
  }

  @Test
  void partsJoinInTheirOrder() throws IOException {
    String rule = "[{'match':'l.{n}.{p}.w','parts':['q','k'],'dim':%d,'as':'l.{n}.qk.w'%s}]";
    TestFile.Tensor k = tensor("l.0.k.w", 10, 1, 2);
    TestFile.Tensor q = tensor("l.0.q.w", 0, 2, 2);
    TestFile.Tensor other = tensor("l.0.v.w", 20, 1);
    assertThat(whole(String.format(rule, 0, ""), k, other, q))
        .containsExactly(of("l.0.qk.w", shape(3, 2), 0, 1, 2, 3, 10, 11), other);
    assertThat(whole(String.format(rule, 1, ",'transpose':true"), q, k))
        .containsExactly(of("l.0.qk.w", shape(2, 3), 0, 2, 10, 1, 3, 11));
    refused(String.format(rule, 0, ""), "no tensor is part \"k\" of \"l.0.qk.w\"", q);
    refused(String.format(rule, 1, ""), "\"l.0.k.w\" has shape [1, 2], which can't be joined with [2, 2]", q, k);
    refused(String.format(rule, 2, ""), "dim is 2, and tensor \"l.0.q.w\" has shape [2, 2]", q, k);
    refused(
        String.format(rule, 0, ""),
        "tensor \"l.0.k.w\" is i16, and \"l.0.q.w\", with which it joins, is i32",
        q, tensor("l.0.k.w", DType.I16, 0, 1, 2));
  }

  private static final String QKV =
      "[{'match':'l.{n}.{p}','parts':['q','k','v'],'dim':0,'as':'l.{n}.qkv'%s}]";

  private void fused(String to, TestFile.Tensor[] parts, long[][] expected) throws IOException {
    Path out = folder.resolve("fused");
    Cli done =
        reshard(String.format(QKV, ",'to':'" + to + "'"), in(parts), out, "--from", "1:R", "--force");
    assertThat(done.status()).as(done.err()).isZero();
    for (int rank = 0; rank < expected.length; rank++) {
      Path file = out.resolve(String.format("rank-%05d.safetensors", rank));
      assertThat(TestFile.read(file).tensors())
          .as("rank %d", rank)
          .containsExactly(of("l.0.qkv", shape(expected[rank].length), expected[rank]));
    }
  }

  @Test
  void partsOfDifferentExtentsAreCutOneByOne() throws IOException {
    TestFile.Tensor[] grouped = {
      tensor("l.0.q", 0, 8), tensor("l.0.k", 100, 4), tensor("l.0.v", 200, 4)
    };
    fused("2:S0", grouped, new long[][] {{0, 1, 2, 3, 100, 101, 200, 201}, {4, 5, 6, 7, 102, 103, 202, 203}});
    fused("2x2:R,S0", grouped, new long[][] {{0, 1, 2, 3, 100, 101, 200, 201}, {4, 5, 6, 7, 102, 103, 202, 203}});
    fused("2x2:S0,S0", grouped, new long[][] {{0, 1, 100, 200}, {2, 3, 101, 201}, {4, 5, 102, 202}});
    fused("2:S0*2", grouped, new long[][] {{0, 1, 2, 3, 100, 101, 200, 201}});
    fused("2:R", grouped, new long[][] {{0, 1, 2, 3, 4, 5, 6, 7, 100, 101, 102, 103, 200, 201, 202, 203}});
    assertThat(whole(String.format(QKV, ""), grouped))
        .containsExactly(
            of("l.0.qkv", shape(16), 0, 1, 2, 3, 4, 5, 6, 7, 100, 101, 102, 103, 200, 201, 202, 203));
  }

  @Test
  void aTensorCutByUnequalPartsIsNotReadAsAPlainCut() throws IOException {
    TestFile.Tensor[] grouped = {
      tensor("l.0.q", 0, 8), tensor("l.0.k", 100, 4), tensor("l.0.v", 200, 4)
    };
    fused("2:S0", grouped, new long[][] {{0, 1, 2, 3, 100, 101, 200, 201}, {4, 5, 6, 7, 102, 103, 202, 203}});
    Path cut = folder.resolve("fused");
    Path rules = folder.resolve("from.json");
    Files.writeString(rules, "[{\"match\":\"*\",\"from\":\"2:S0\"}]");
    Path next = folder.resolve("next");
    for (List<Object> more : List.<List<Object>>of(List.of("--from", "2:S0"), List.of("--rules", rules))) {
      List<Object> arguments = new ArrayList<>(List.of("reshard", "--to", "2:S0", cut, next));
      arguments.addAll(more);
      Cli refused = Cli.run(arguments.toArray());
      assertThat(refused.status()).as(more + ": " + refused.out() + refused.err()).isEqualTo(2);
      assertThat(refused.err())
          .contains("tensor \"l.0.qkv\"", "[8, 4, 4]", "each cut separately as 2:S0, and", "says 2:S0");
      assertThat(next).doesNotExist();
    }
    Cli across = Cli.run("reshard", "--to", "2:S0", cut, next, "--verify");
    assertThat(across.status()).as(across.err()).isZero();
    assertThat(across.err())
        .contains("2:S0 cuts across them; a rule with \"dim\": 0, \"split\": [8, 4, 4] cuts each part");
    assertThat(TestFile.read(next.resolve("rank-00000.safetensors")).tensors())
        .containsExactly(of("l.0.qkv", shape(8), 0, 1, 2, 3, 4, 5, 6, 7));
    for (String lies : List.of("1:S0", "2:R")) {
      fused(lies, grouped, new long[][] {{0, 1, 2, 3, 4, 5, 6, 7, 100, 101, 102, 103, 200, 201, 202, 203}});
      Cli done = Cli.run("reshard", "--to", "2:S0", cut, next, "--verify", "--force");
      assertThat(done.status()).as(done.err()).isZero();
    }
  }

  @Test
  void equalPartsAreAStridedWhole() throws IOException {
    TestFile.Tensor[] equal = {
      tensor("l.0.q", 0, 4), tensor("l.0.k", 100, 4), tensor("l.0.v", 200, 4)
    };
    for (String to : List.of("2:S0", "2:SS0/3")) {
      fused(to, equal, new long[][] {{0, 1, 100, 101, 200, 201}, {2, 3, 102, 103, 202, 203}});
      assertThat(Files.readString(folder.resolve("fused/layout.json"))).contains("2:SS0/3");
    }
    for (String to : List.of("2x2:S0,S0", "2x2:SS0/3,SS0/3")) {
      fused(to, equal, new long[][] {{0, 100, 200}, {1, 101, 201}, {2, 102, 202}});
    }
    Cli back = Cli.run("reshard", "--to", "1@0:R", folder.resolve("fused"), folder.resolve("b.safetensors"));
    assertThat(back.status()).as(back.err()).isZero();
    assertThat(TestFile.read(folder.resolve("b.safetensors")).tensors())
        .containsExactly(of("l.0.qkv", shape(12), 0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203));
  }

  @Test
  void partsThatTheTargetCannotCutAlikeAreRefused() throws IOException {
    TestFile.Tensor q = tensor("l.0.q", 0, 8);
    TestFile.Tensor k = tensor("l.0.k", 100, 4);
    TestFile.Tensor v = tensor("l.0.v", 200, 4);
    refused(
        String.format(QKV, ",'to':'8:S0'"),
        "[0]: 8:S0: part \"k\" has extent 4 along dimension 0, of which a rank would hold 1", q, k, v);
    refused(String.format(QKV, ",'to':'2:S0*4'"), "part \"k\" has extent 4", q, k, v);
    refused(
        String.format(QKV, ",'to':'2:SS0/3'"),
        "SS0/3 cuts what is joined into 3 equal runs, and the parts [q, k, v] have extents [8, 4, 4]; S0",
        q, k, v);
    refused(
        String.format(QKV, ",'to':'2:SS0/2'"), "SS0/2 cuts what is joined into 2 equal runs",
        tensor("l.0.q", 0, 4), k, v);
    for (String to : List.of("2x2:SS0/3,S0", "2x2:S0,SS0/3", "4x2:SS0/3,S0", "1x2:S0,SS0/3")) {
      refused(
          String.format(QKV, ",'to':'" + to + "'"), "both plainly and strided; S0 alone cuts each part",
          tensor("l.0.q", 0, 4), k, v);
    }
  }

  @Test
  void tensorsOfLessThanAByteJoinOnBytes() throws IOException {
    String rule = "[{'match':'{p}.w','parts':['a','b'],'dim':%d,'as':'w'}]";
    TestFile.Tensor a = tensor("a.w", DType.F4, 0, 2, 4);
    assertThat(whole(String.format(rule, 1), a, tensor("b.w", DType.F4, 8, 2, 2)))
        .containsExactly(
            new TestFile.Tensor(
                "w", DType.F4, shape(2, 6), new long[] {0, 1, 2, 3, 8, 9, 4, 5, 6, 7, 10, 11}));
    Path in = in(a, tensor("b.w", DType.F4, 8, 4, 4));
    Path out = folder.resolve("ranks");
    Cli done = reshard(String.format(rule, 0), in, out, "--from", "2:S0", "--to", "2@0:S0");
    assertThat(done.status()).as(done.err()).isZero();
    assertThat(TestFile.read(out.resolve("rank-00001.safetensors")).tensors())
        .containsExactly(
            new TestFile.Tensor(
                "w", DType.F4, shape(3, 4), new long[] {4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}));
    for (String wrong :
        List.of("[{'match':'a.w','transpose':true}]", "[{'match':'a.w','to':'4:S1'}]")) {
      Cli failed = reshard(wrong, in, folder.resolve("new"), "--from", "1:R", "--to", "1:R");
      assertThat(failed.status()).as(failed.err()).isEqualTo(3);
      assertThat(failed.err()).contains("tensor \"a.w\"", "byte");
    }
  }

  @Test
  void stacksAreByNumber() throws IOException {
    List<TestFile.Tensor> experts = new ArrayList<>();
    for (int e : new int[] {10, 9, 11}) {
      experts.add(tensor("x." + e + ".w", 10 * e, 2));
    }
    TestFile.Tensor[] all = experts.toArray(new TestFile.Tensor[0]);
    String rule = "[{'match':'x.{e}.w','stack':%s,'as':'x.w'}]";
    String uneven = rule.replace("%s", "%s,'uneven':true");
    refused(String.format(rule, true), "has tensors 9 to 11 to stack, but \"x.0.w\" is missing; to stack", all);
    assertThat(whole(String.format(uneven, true), all))
        .containsExactly(of("x.w", shape(3, 2), 90, 91, 100, 101, 110, 111));
    assertThat(whole(String.format(uneven, 1), all))
        .containsExactly(of("x.w", shape(2, 3), 90, 100, 110, 91, 101, 111));
    assertThat(whole(String.format(rule, true), tensor("x.0.w", 4), tensor("x.1.w", 5)))
        .containsExactly(of("x.w", shape(2), 4, 5));
    refused(String.format(uneven, true), "has tensors 9 to 11 to stack, but \"x.10.w\" is missing", all[1], all[2]);
    refused(String.format(rule, true), "{e} is \"09\"; tensors are stacked by number", tensor("x.09.w", 0, 2));
    for (String number : List.of("2147483648", "1000000000")) {
      refused(
          String.format(uneven, true),
          "{e} is \"" + number + "\"; tensors are stacked by number, from 0 to 999999999",
          tensor("x." + number + ".w", 0, 2));
    }
    assertThat(whole(String.format(uneven, true), tensor("x.999999999.w", 4)))
        .containsExactly(of("x.w", shape(1), 4));
    refused(String.format(uneven, 2), "stack makes dimension 2, and tensor \"x.9.w\" has shape [2]", all[1]);
  }

  @Test
  void stacksOfOneRuleAreAlike() throws IOException {
    List<TestFile.Tensor> experts = new ArrayList<>();
    for (int layer = 0; layer < 3; layer++) {
      for (int e = 0; e < 4; e++) {
        experts.add(tensor("l." + layer + ".e." + e + ".w", 10 * layer + e, 2));
      }
    }
    String rule = "[{'match':'l.{l}.e.{e}.w','stack':true,'as':'l.{l}.w'%s}]";
    for (int missing : new int[] {4, 6, 7}) {
      List<TestFile.Tensor> some = new ArrayList<>(experts);
      String name = some.remove(missing).name();
      TestFile.Tensor[] all = some.toArray(new TestFile.Tensor[0]);
      refused(String.format(rule, ""), "\"" + name + "\" is missing", all);
      if (missing != 6) {
        List<TestFile.Tensor> made = whole(String.format(rule, ",'uneven':true"), all);
        assertThat(made).extracting(tensor -> tensor.shape()[0]).containsExactly(4, 3, 4);
      }
    }
    assertThat(whole(String.format(rule, ""), experts.toArray(new TestFile.Tensor[0]))).hasSize(3);
  }

  @Test
  void namesThatCollideAreRefused() throws IOException {
    refused("[{'match':'*','as':'x'}]", "tensors \"a\" and \"b\" would both be written as \"x\"", tensor("a", 0, 1), tensor("b", 0, 1));
    refused("[{'match':'a','as':'__metadata__'}]", "InvalidArgument: tensor \"a\" would be written as \"__metadata__\", which is not a valid name", tensor("a", 0, 1));
    refused("[{'match':'a','as':'b'}]", "tensors \"a\" and \"b\" would both be written as \"b\"", tensor("a", 0, 1), tensor("b", 0, 1));
    refused(
        "[{'match':'*{p}.w','parts':['q'],'dim':0,'as':'x'}]",
        "tensors \"1.q.w\" and \"2.q.w\" are both \"q\"",
        tensor("1.q.w", 0, 1), tensor("2.q.w", 0, 1));
  }

  @Test
  void whatARuleShardsMustBeThere() throws IOException {
    refused("[{'match':'w','to':'2:S1'}]", "S1 cuts dimension 1, and tensor \"w\" has 1 dimension;", tensor("w", 0, 4));
    refused("[{'match':'w','from':'2:S1'}]", "S1 cuts dimension 1, and tensor \"w\" has 1 dimension;", tensor("w", 0, 4));
    refused("[{'match':'w','from':'2:P'}]", "[0].from 2:P holds P", tensor("w", 0, 4));
  }

  @Test
  void tensorsThatNothingCoversAreListed() throws IOException {
    TestFile.Tensor[] seven = new TestFile.Tensor[7];
    Arrays.setAll(seven, i -> tensor("t" + i, 0, 1));
    Path in = in(seven);
    Cli failed =
        reshard("[{'match':'t0','to':'1:R'}]", in, folder.resolve("out"), "--from", "1:R");
    assertThat(failed.status()).isEqualTo(2);
    assertThat(failed.err())
        .contains(
            "6 tensors \"t1\", \"t2\", \"t3\", \"t4\", \"t5\" and 1 more have no target layout; no"
                + " rule gives one, and --to is missing");
    failed = reshard("[{'match':'t[0]'},{'match':'t0','from':'1:R'}]", in, folder.resolve("out"), "--to", "1:R");
    assertThat(failed.err()).contains("6 tensors \"t1\",", "have no source layout");
    Cli done =
        reshard("[{'match':'*','from':'1:R','to':'1:R'}]", in, folder.resolve("out"));
    assertThat(done.status()).as(done.err()).isZero();
  }
}
