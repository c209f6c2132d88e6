// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.cli.documents.Pages;
import org.windlass.examples.ModelTable;
import org.windlass.examples.Parallelism;
import org.windlass.examples.PlanTensors;

class PlanCommandTest {
  private static Cli plan(Object... arguments) {
    Object[] all = new Object[arguments.length + 1];
    all[0] = "plan";
    System.arraycopy(arguments, 0, all, 1, arguments.length);
    Cli done = Cli.run(all);
    assertThat(done.status()).as(done.err()).isZero();
    return done;
  }

  private static String withoutTime(String json) {
    return json.replaceAll("\"plan_ms\":[0-9.]+", "\"plan_ms\":0").strip();
  }

  @Test
  void theJsonIsThatOfTheContract() {
    Cli done =
        plan("--from", "2:S0", "--to", "2:S1", "--shape", "4x2", "--dtype", "f32", "--json");
    assertThat(withoutTime(done.out()))
        .isEqualTo(
            "{\"from\":\"2:S0\",\"to\":\"2@2:S1\",\"shape\":[4,2],\"dtype\":\"f32\",\"wire\":\"f32\",\"ranks\":4,"
                + "\"routes\":["
                + "{\"src\":0,\"transport\":\"P2P\",\"bytes\":8,\"dsts\":[{\"rank\":2,\"region\":[[0,2],[0,1]]}]},"
                + "{\"src\":0,\"transport\":\"P2P\",\"bytes\":8,\"dsts\":[{\"rank\":3,\"region\":[[0,2],[1,2]]}]},"
                + "{\"src\":1,\"transport\":\"P2P\",\"bytes\":8,\"dsts\":[{\"rank\":2,\"region\":[[2,4],[0,1]]}]},"
                + "{\"src\":1,\"transport\":\"P2P\",\"bytes\":8,\"dsts\":[{\"rank\":3,\"region\":[[2,4],[1,2]]}]}],"
                + "\"links\":[{\"src\":0,\"dst\":2,\"bytes\":8},{\"src\":0,\"dst\":3,\"bytes\":8},"
                + "{\"src\":1,\"dst\":2,\"bytes\":8},{\"src\":1,\"dst\":3,\"bytes\":8}],"
                + "\"buckets\":4,\"sent_bytes\":32,\"local_bytes\":0,\"reduce_bytes\":0,\"staging_bytes\":0,"
                + "\"plan_ms\":0}");
  }

  @Test
  void stridedRegionsAreListsOfIntervals() {
    Cli done =
        plan("--from", "1:R", "--to", "2x2@0:SS0/2,S0", "--shape", "8", "--dtype", "u8", "--json");
    assertThat(done.out())
        .contains("\"rank\":1,\"region\":[[4,6]]")
        .contains("\"local_bytes\":2,");
    Cli strided =
        plan("--from", "1:R", "--to", "2@1:SS0/2", "--shape", "8", "--dtype", "u8", "--json");
    assertThat(strided.out()).contains("\"region\":[[[0,2],[4,6]]]");
  }

  @Test
  void partialTermsAreCountedAndOnlyReducingRanksHaveNoDestination() {
    Cli done =
        plan("--from", "2:P", "--to", "1:R", "--shape", "8", "--dtype", "f32", "--wire", "bf16", "--json");
    assertThat(done.out())
        .contains("\"wire\":\"bf16\"")
        .contains("\"sent_bytes\":16,")
        .contains("\"reduce_bytes\":32,")
        .contains("\"transport\":\"NONE\",\"bytes\":16,\"dsts\":[]");
  }

  @Test
  void aScalarHasAnEmptyShape() {
    assertThat(plan("--from", "1:R", "--to", "2:R", "--shape", "", "--dtype", "f64", "--json").out())
        .contains("\"shape\":[]")
        .contains("\"dsts\":[{\"rank\":1,\"region\":[]},{\"rank\":2,\"region\":[]}]");
  }

  @Test
  void oneRankKnowsItsOwnRoutesAndASummaryNone() {
    String one =
        plan("--from", "2:S0", "--to", "2:S1", "--shape", "4x2", "--dtype", "f32", "--rank", "3", "--json")
            .out();
    assertThat(one)
        .contains("\"rank\":3,")
        .contains("\"sent_bytes\":16,")
        .doesNotContain("\"dst\":2");
    String summary =
        plan("--from", "2:S0", "--to", "2:S1", "--shape", "4x2", "--dtype", "f32", "--summary", "--json")
            .out();
    assertThat(summary).doesNotContain("routes").doesNotContain("links").contains("\"buckets\":4");
  }

  @Test
  void aRankThatNoLayoutReachesIsAnError() {
    for (String rank : List.of("4", "-1")) {
      Cli done =
          Cli.run("plan", "--from", "2:S0", "--to", "2:S1", "--shape", "4x2", "--dtype", "f32", "--rank=" + rank);
      assertThat(done.status()).isEqualTo(2);
      assertThat(done.err()).contains("--rank " + rank + " is not in 0 to 3");
    }
  }

  @Test
  void aModeSaysWhatItStages() {
    String[] asked = {"--from", "2:S0", "--to", "2:S1", "--shape", "64x2", "--dtype", "f32", "--json"};
    assertThat(plan(with(asked, "--mode", "staged")).out())
        .contains("\"buckets\":4,\"sent_bytes\":512,")
        .contains("\"staging_bytes\":512,");
    assertThat(plan(with(asked, "--mode", "staged", "--bucket-bytes", "64")).out())
        .contains("\"staging_bytes\":512,");
    assertThat(plan(with(asked, "--mode", "staged", "--bucket-bytes", "1", "--rank", "1")).out())
        .contains("\"staging_bytes\":256,");
    assertThat(plan(with(asked, "--mode", "gather-broadcast")).out())
        .contains("{\"src\":0,\"dst\":0,\"bytes\":256},{\"src\":0,\"dst\":2,\"bytes\":512}")
        .contains("\"sent_bytes\":1280,\"local_bytes\":256,")
        .contains("\"staging_bytes\":1536,");
  }

  private static Object[] with(Object[] arguments, Object... more) {
    Object[] all = Arrays.copyOf(arguments, arguments.length + more.length, Object[].class);
    System.arraycopy(more, 0, all, arguments.length, more.length);
    return all;
  }

  @Test
  void textIsForPeople() {
    Cli done = plan("--from", "2:S0", "--to", "2:S1", "--shape", "4x2", "--dtype", "f32");
    assertThat(done.out()).contains("f32[4, 2] from 2:S0 to 2@2:S1").contains("32 bytes sent");
  }

  @Test
  void aLineOfTextSaysWhatItMeans() {
    String direct =
        plan("--from", "2:P", "--to", "2@1:S0", "--shape", "4x2", "--dtype", "f32").out();
    assertThat(direct)
        .contains(" 0 P2P       -> 2  16 bytes  [2,4) x [0,2)  sum of 0,1\n")
        .contains(" 0 NONE      sends nothing: holds a term of 16 bytes  [0,2) x [0,2)  sum of 0,1\n")
        .contains("no bucket, since mode direct packs nothing (staged: 4)");
    String staged =
        plan("--from", "1:R", "--to", "2:R", "--shape", "4", "--dtype", "u8", "--mode", "staged").out();
    assertThat(staged).contains(" 0 BROADCAST -> 1,2  4 bytes each  [0,4)\n").contains("; 1 bucket;");
  }

  @Test
  void thePageSaysWhatALineMeans() throws IOException {
    assertThat(Files.readString(Pages.ROOT.resolve("docs/reference/command/windlass-plan.md")))
        .contains("`P2P`", "`BROADCAST`", "`LOCAL`", "`NONE`", "read for a reduction", "staging", "Buckets");
  }

  @Test
  void aListOfTensorsIsPlannedLineByLineAndSummed(@TempDir Path folder) throws IOException {
    Path file =
        Files.writeString(
            folder.resolve("tensors.json"),
            """
            [{"name": "w", "shape": [4, 2], "dtype": "F32", "count": 3},
             {"name": "norm", "shape": [2], "dtype": "bf16", "from": "2:R", "to": "2@2:R"},
             {"name": "scalar", "shape": [], "dtype": "i64"}]
            """);
    Cli done = plan("--tensors", file, "--from", "2:S0", "--to", "2:S1", "--json");
    List<String> lines = done.out().lines().toList();
    assertThat(lines).hasSize(4);
    assertThat(lines.get(0)).startsWith("{\"name\":\"w\",\"count\":3,");
    assertThat(lines.get(1)).contains("\"from\":\"2:R\"");
    assertThat(lines.get(2)).contains("\"from\":\"2:R\"");
    assertThat(lines.get(3)).startsWith("{\"tensors\":5,\"ranks\":4,\"links\":").contains("\"sent_bytes\":120,");
    Cli summary = plan("--tensors", file, "--from", "2:S0", "--to", "2:S1", "--json", "--summary");
    assertThat(summary.out().lines()).hasSize(1);
  }

  @Test
  void theTableOfAModelIsAList(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("model.json");
    try (PrintStream out = new PrintStream(file.toFile(), StandardCharsets.UTF_8)) {
      PlanTensors.print(
          ModelTable.load("qwen3-0.6b"),
          Parallelism.parse("pp=2,dp=2,tp=2"),
          Parallelism.parse("tp=4").at(8),
          out);
    }
    Cli done = plan("--tensors", file, "--summary", "--json");
    long bytes = 2 * 596_049_920L;
    long replicatedOnThree = 2 * (28 * (2 * 1024 + 2 * 128) + 1024) * 3L;
    assertThat(done.out())
        .startsWith("{\"tensors\":310,\"ranks\":12,")
        .contains("\"sent_bytes\":" + (bytes + replicatedOnThree) + ",");
  }

  private static final Object[] HOSTS = {
    "--from", "2:S0", "--to", "4@2:R", "--shape", "1024", "--dtype", "f32", "--ranks-per-host", "2"
  };

  @Test
  void hostsSayWhatCrossesBetweenThem() {
    assertThat(plan(with(HOSTS, "--json")).out())
        .contains(
            "\"staging_bytes\":8192,\"hosts\":3,"
                + "\"between_hosts\":[{\"src\":0,\"dst\":1,\"bytes\":4096},{\"src\":0,\"dst\":2,\"bytes\":4096}],"
                + "\"cross_bytes\":8192,\"plan_ms\":")
        .contains("\"sent_bytes\":16384,")
        .doesNotContain("predicted");
    assertThat(plan(with(HOSTS, "--json", "--summary")).out())
        .contains("\"staging_bytes\":8192,\"hosts\":3,\"cross_bytes\":8192,");
    assertThat(plan(with(HOSTS, "--json", "--rank", "2")).out())
        .contains("\"between_hosts\":[{\"src\":0,\"dst\":1,");
    assertThat(plan(HOSTS).out())
        .contains(
            "  host 0 -> host 1  4,096 bytes\n  host 0 -> host 2  4,096 bytes\n"
                + "  3 hosts: 8,192 bytes have to cross between them\n");
    assertThat(
            plan("--from", "2:S0", "--to", "2:R", "--shape", "4", "--dtype", "u8", "--ranks-per-host", "4").out())
        .contains("  1 host: 0 bytes have to cross between them\n");
    Cli zero =
        Cli.run("plan", "--from", "2:R", "--to", "2:R", "--shape", "4", "--dtype", "u8", "--ranks-per-host", "0");
    assertThat(zero.status()).isEqualTo(2);
    assertThat(zero.err()).contains("--ranks-per-host 0: a host has at least 1 rank");
  }

  @Test
  void aTableOfSpeedsPredictsTheTime(@TempDir Path folder) throws IOException {
    Path file =
        Files.writeString(
            folder.resolve("links.json"),
            """
            {"within": {"GBps": 0.01}, "between": {"GBps": 0.004, "us": 100},
             "pairs": [{"src": 0, "dst": 2, "GBps": 0.001, "us": 0}]}
            """);
    assertThat(plan(with(HOSTS, "--links", file, "--json", "--summary")).out())
        .contains(
            "\"cross_bytes\":8192,\"predicted_ms\":4.096,\"bound_by\":\"the link of hosts 0 -> 2\",");
    assertThat(plan(with(HOSTS, "--links", file)).out())
        .contains("  predicted: 4.096 ms, bound by the link of hosts 0 -> 2\n");
    // On one host 4 ranks get 4 KiB each.
    assertThat(
            plan("--from", "2:S0", "--to", "4@2:R", "--shape", "1024", "--dtype", "f32", "--links", file, "--json")
                .out())
        .contains("\"predicted_ms\":1.638,\"bound_by\":\"what ranks of host 0 get\",")
        .doesNotContain("cross_bytes");
    Path bad = Files.writeString(folder.resolve("bad.json"), "{\"within\": {}}");
    Cli refused = Cli.run(with(new Object[] {"plan"}, with(HOSTS, "--links", bad)));
    assertThat(refused.status()).isEqualTo(2);
    assertThat(refused.err()).contains("bad.json: within.GBps is missing");
    Cli gone = Cli.run(with(new Object[] {"plan"}, with(HOSTS, "--links", folder.resolve("gone"))));
    assertThat(gone.status()).isEqualTo(2);
    assertThat(gone.err()).contains("no such file");
  }

  @Test
  void aBadListIsRefused(@TempDir Path folder) throws IOException {
    String[][] cases = {
      {"{}", "the whole is an object, not a list"},
      {"[1]", "[0] is 1, not an object"},
      {"[{\"name\":\"a\"}]", "[0].shape is missing"},
      {"[{\"name\":\"a\",\"shape\":[-1],\"dtype\":\"u8\"}]", "[0].shape[0] is -1"},
      {"[{\"name\":\"a\",\"shape\":[1],\"dtype\":\"u8\",\"count\":0}]", "[0].count: 0 is not in"},
      {"[{\"name\":\"a\",\"shape\":[1],\"dtype\":\"u8\",\"x\":0}]", "[0]: the key \"x\" is unknown; known are name, shape"},
      {"[{\"name\":\"a\",\"shape\":[1],\"dtype\":\"u8\"}] 1", "something follows"},
      {"[{\"name\":\"a\",\"name\":\"b\"}]", "\"name\" stands twice in [0]"},
      {"[{\"name\":\"a\",\"shape\":[1],\"dtype\":\"u8\",\"count\":1000001}]", "[0].count: 1000001 is not"},
      {"[{\"name\":\"a\",\"shape\":[1],\"dtype\":\"u7\"}]", "[0].dtype: 'u7' is no dtype"},
      {"[{\"name\":\"a\",\"shape\":[1],\"dtype\":\"u8\",\"from\":\"2:S1\"}]", "tensor 'a'"},
      {"[", "(start marker at line: 1, column: 1)"}
    };
    for (String[] each : cases) {
      Path file = Files.writeString(folder.resolve("t.json"), each[0]);
      Cli done = Cli.run("plan", "--tensors", file, "--from", "2:S0", "--to", "2:S0");
      assertThat(done.status()).as(each[0]).isEqualTo(2);
      assertThat(done.err()).contains(each[1]);
    }
    assertThat(Cli.run("plan", "--tensors", folder.resolve("gone")).err()).contains("no such file");
    Cli ofFolder = Cli.run("plan", "--tensors", folder);
    assertThat(ofFolder.status()).isEqualTo(2);
    assertThat(ofFolder.err()).contains("is a folder, not a file");
    assertThat(Cli.run("plan", "--tensors", "x", "--shape", "4").status()).isEqualTo(2);
  }

  @Test
  void aShardOfADimensionThatTheShapeLacksIsAnError() {
    Cli done = Cli.run("plan", "--from", "2:S1", "--to", "2:R", "--shape", "4", "--dtype", "f32");
    assertThat(done.status()).isEqualTo(2);
    assertThat(done.err()).contains("tensor", "S1");
    for (String shape : List.of("4x", "-4", "x", "4x-1", "4.0", "99999999999999999999")) {
      assertThat(
              Cli.run("plan", "--from", "2:S0", "--to", "2:R", "--shape=" + shape, "--dtype", "f32").status())
          .as(shape)
          .isEqualTo(2);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"--from 4:S7 --to 4:S0", "--from 1:R --to 4@0:S7", "--from 1:R --to 4:S7"})
  void aLayoutThatDoesNotFitIsShownAsItWasGiven(String layouts) {
    String[] words = layouts.split(" ");
    Cli failed =
        Cli.run("plan", words[0], words[1], words[2], words[3], "--shape", "4x4", "--dtype", "f32");
    assertThat(failed.status()).isEqualTo(2);
    String given = words[1].contains("S7") ? words[0] + " " + words[1] : words[2] + " " + words[3];
    assertThat(failed.err())
        .contains(
            "the tensor has 2 dimensions, but placement S7 of mesh dimension 0 in " + given
                + " shards dimension 7");
  }
}
