// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;

class ModelTableTest {
  private static final String MIXTURE = "qwen3-235b-a22b-fp8";

  private static long elements(List<TensorSpec> specs) {
    return specs.stream().mapToLong(ModelTableTest::elements).sum();
  }

  private static long elements(TensorSpec spec) {
    return spec.shape().stream().reduce(1L, (numel, extent) -> numel * extent);
  }

  private static List<TensorSpec> specs(String model, int layers, String parallelism) {
    return ModelTable.load(model).withLayers(layers).specs(Parallelism.parse(parallelism));
  }

  /** The counts that are published for these models. */
  @ParameterizedTest
  @CsvSource({"qwen3-0.6b, 596049920, 310", MIXTURE + ", 235093634560, 36945"})
  void theModelsHaveThePublishedParameters(String model, long parameters, int tensors) {
    ModelTable table = ModelTable.load(model);
    List<TensorSpec> weights =
        table.specs(Parallelism.parse("tp=1")).stream()
            .filter(spec -> !spec.name().endsWith("_scale_inv"))
            .toList();
    assertThat(elements(weights)).isEqualTo(parameters);
    assertThat(weights).hasSize(tensors).extracting(TensorSpec::name).doesNotHaveDuplicates();
  }

  /** Between them, the ranks of every parallelism hold each element as often as another. */
  @ParameterizedTest
  @ValueSource(
      strings = {"tp=1", "tp=8", "tp=16", "dp=3,tp=2", "pp=4,dp=8,tp=2,ep=16", "dp=2,tp=3,ep=3"})
  void everyTensorIsWholeAndInOrder(String parallelism) {
    Parallelism how = Parallelism.parse(parallelism).at(5);
    ModelTable table = ModelTable.load(MIXTURE).withLayers(6);
    List<TensorSpec> specs = table.specs(how);
    List<TensorSpec> alone = table.specs(Parallelism.parse("tp=1"));
    assertThat(specs).hasSameSizeAs(alone);
    Map<Integer, Long> held = new HashMap<>();
    for (int i = 0; i < specs.size(); i++) {
      TensorSpec spec = specs.get(i);
      assertThat(spec.name()).isEqualTo(alone.get(i).name());
      assertThat(spec.shape()).isEqualTo(alone.get(i).shape());
      long sum = 0;
      for (int rank : spec.layout().mesh().ranks()) {
        assertThat(rank).isBetween(5, 5 + how.ranks() - 1);
        long numel = spec.localRegion(rank).numel();
        sum += numel;
        held.merge(rank, numel, Long::sum);
      }
      assertThat(sum % elements(spec)).as(spec.toString()).isZero();
    }
    assertThat(held).hasSize(how.ranks());
  }

  /** A rank that holds part of a block holds its scale. */
  @ParameterizedTest
  @ValueSource(strings = {"tp=1", "tp=8", "tp=16", "dp=2,tp=3", "pp=4,dp=8,tp=2,ep=16"})
  void weightsLieBesideTheirScales(String parallelism) {
    List<TensorSpec> specs = specs(MIXTURE, 4, parallelism);
    int pairs = 0;
    for (int i = 0; i < specs.size(); i++) {
      if (specs.get(i).dtype() == DType.F8E4M3) {
        TensorSpec weight = specs.get(i);
        TensorSpec scale = scaleOf(weight, specs);
        for (int rank : weight.layout().mesh().ranks()) {
          for (int d = 0; d < 2; d++) {
            Region.Interval part = weight.localRegion(rank).intervals(d).get(0);
            Region.Interval scales = scale.localRegion(rank).intervals(d).get(0);
            assertThat(scales.start()).isEqualTo(part.start() / 128);
            assertThat(scales.end()).isEqualTo((part.end() + 127) / 128);
          }
        }
        pairs++;
      }
    }
    assertThat(pairs).isEqualTo(4 * (4 + 3 * 128));
  }

  private static TensorSpec scaleOf(TensorSpec weight, List<TensorSpec> specs) {
    String name = weight.name() + "_scale_inv";
    return specs.stream().filter(spec -> spec.name().equals(name)).findFirst().orElseThrow();
  }

  @Test
  void expertsAndLayersAreDealtOut() {
    List<TensorSpec> specs = specs(MIXTURE, 4, "pp=2,dp=4,tp=2,ep=4");
    Map<String, String> layouts = new HashMap<>();
    specs.forEach(spec -> layouts.put(spec.name(), spec.layout().qualified()));
    String layer = "model.layers.2.";
    assertThat(layouts)
        .containsEntry("model.embed_tokens.weight", "dp=4xtp=2@0:R,S0")
        .containsEntry("lm_head.weight", "dp=4xtp=2@8:R,S0")
        .containsEntry(layer + "self_attn.k_proj.weight", "dp=4xtp=2@8:R,S0*128")
        .containsEntry(layer + "mlp.experts.0.up_proj.weight", "dp=2@[8,12]:R")
        .containsEntry(layer + "mlp.experts.127.up_proj.weight", "dp=2@[11,15]:R");
    assertThat(specs(MIXTURE, 1, "tp=16"))
        .filteredOn(spec -> spec.name().contains("k_proj"))
        .extracting(spec -> spec.layout().toString())
        .containsExactly("dp=1xkv=4xrep=4:R,S0*128,R", "dp=1xkv=4xrep=4:R,S0,R");
  }

  /** TP2 x CP2 x PP4 x EP16 to TP8 x DP8, 64 ranks each; processor time. */
  @Test
  void theWholePlanOfAMixtureOfExpertsTakesSeconds() {
    ModelTable table = ModelTable.load(MIXTURE);
    List<TensorSpec> from = table.specs(Parallelism.parse("pp=4,dp=8,tp=2,ep=16"));
    List<TensorSpec> to = table.specs(Parallelism.parse("dp=8,tp=8").at(64));
    var threads = ManagementFactory.getThreadMXBean();
    long begin = threads.getCurrentThreadCpuTime();
    long[] routes = new long[1];
    for (int i = 0; i < from.size(); i++) {
      DType wire = from.get(i).dtype();
      Plan.of(from.get(i), to.get(i), wire, PlanOptions.defaults().withTurn(i))
          .forEachRoute(route -> routes[0]++);
    }
    double seconds = (threads.getCurrentThreadCpuTime() - begin) / 1e9;
    System.out.printf(
        "%s, 64 + 64 ranks: %d tensors, %d routes in %.2f s%n",
        MIXTURE, from.size(), routes[0], seconds);
    assertThat(seconds).as("seconds; another order of growth").isLessThan(60);
    assertThat(routes[0]).isGreaterThan(400_000);
  }

  @Test
  void theListNamesLikeTensorsOnce() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PlanTensors.print(
        ModelTable.load("qwen3-0.6b"),
        Parallelism.parse("dp=2,tp=2"),
        Parallelism.parse("tp=2").at(4),
        new PrintStream(bytes, true, StandardCharsets.UTF_8));
    assertThat(bytes.toString(StandardCharsets.UTF_8))
        .hasLineCount(13)
        .contains(
            "{\"name\": \"model.layers.0.self_attn.q_proj.weight\", \"shape\": [2048, 1024],"
                + " \"dtype\": \"BF16\", \"from\": \"dp=2xtp=2@0:R,S0*128\","
                + " \"to\": \"dp=1xtp=2@4:R,S0*128\", \"count\": 28}");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "w BF16 4x4 S0              | line 2: expected name, dtype, shape, placement and first",
        "w BF16 4x4 S0 middle       | line 2: expected name, dtype, shape, placement and first",
        "w.{layer} BF16 4x4 S0 last | line 2: expected name, dtype, shape, placement",
        "w BF17 4x4 S0 first        | line 2: 'BF17' is no dtype",
        "w BF16 4xb S0 first        | line 2: For input string: \"b\"",
        "w BF16 4x4 T0 first        | line 2: layout '1:T0', position 2",
        "layers                     | line 2: expected a tensor's name",
        "layers many                | line 2: For input string: \"many\"",
      })
  void aLineThatIsNoneIsNamed(String line, String message) {
    assertThatThrownBy(() -> ModelTableReader.read("m", List.of("# a model", line)))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("m.tensors, " + message);
  }

  @Test
  void badParallelismIsRefused() {
    for (String text : List.of("tp", "tp=0", "tp=-1", "xp=2", "tp=2,", "tp=1000000")) {
      assertThatThrownBy(() -> Parallelism.parse(text))
          .as(text)
          .isInstanceOf(InvalidArgumentException.class);
    }
    assertThatThrownBy(() -> Parallelism.parse("dp=2,tp=3,ep=4")).hasMessageContaining("ep=4");
    assertThatThrownBy(() -> ModelTable.load("gpt")).hasMessageContaining("qwen3-0.6b");
  }
}
