// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;

/**
 * The tensors of a public model: names, shapes, dtypes, and their layouts under tensor, expert,
 * pipeline and data parallelism.
 */
public final class ModelTable {
  /** Names of the available tables. */
  public static final List<String> NAMES = List.of("qwen3-0.6b", "qwen3-235b-a22b-fp8");

  /** A line of the table: one tensor, one for each layer, or one for each expert of each layer. */
  record Line(
      String name, DType dtype, long[] shape, Placement placement, boolean onLastStage) {
    boolean ofLayers() {
      return name.contains("{layer}");
    }

    boolean ofExperts() {
      return name.contains("{expert}");
    }

    TensorSpec spec(int layer, int expert, Layout layout) {
      String full = name.replace("{layer}", "" + layer).replace("{expert}", "" + expert);
      return TensorSpec.of(full, dtype, layout, shape);
    }
  }

  private final String name;
  private final int layers;
  private final int experts;
  private final List<Line> lines;

  ModelTable(String name, int layers, int experts, List<Line> lines) {
    this.name = name;
    this.layers = layers;
    this.experts = experts;
    this.lines = List.copyOf(lines);
  }

  /** Loads the table of a model, one of {@link #NAMES}. */
  public static ModelTable load(String name) {
    if (!NAMES.contains(name)) {
      throw new InvalidArgumentException("no model '" + name + "'; there are " + NAMES);
    }
    InputStream resource = ModelTable.class.getResourceAsStream(name + ".tensors");
    try (var reader = new BufferedReader(new InputStreamReader(resource, StandardCharsets.UTF_8))) {
      return ModelTableReader.read(name, reader.lines().toList());
    } catch (IOException fault) {
      throw new UncheckedIOException(fault);
    }
  }

  public String name() {
    return name;
  }

  public int layers() {
    return layers;
  }

  public int experts() {
    return experts;
  }

  /** Returns the same model with another number of layers. */
  public ModelTable withLayers(int layers) {
    return new ModelTable(name, layers, experts, lines);
  }

  /**
   * Returns the tensors with their layouts under a parallelism. The order is always the same:
   * tensors before the layers, then layer by layer, then tensors after them.
   */
  public List<TensorSpec> specs(Parallelism parallelism) {
    List<TensorSpec> specs = new ArrayList<>();
    int next = 0;
    while (next < lines.size()) {
      int begin = next;
      boolean ofLayers = lines.get(begin).ofLayers();
      while (next < lines.size() && lines.get(next).ofLayers() == ofLayers) {
        next++;
      }
      for (int layer = 0; layer < (ofLayers ? layers : 1); layer++) {
        for (Line line : lines.subList(begin, next)) {
          addSpecs(line, layer, parallelism, specs);
        }
      }
    }
    return specs;
  }

  private void addSpecs(Line line, int layer, Parallelism how, List<TensorSpec> specs) {
    int stage = line.onLastStage ? how.pp() - 1 : line.ofLayers() ? layer * how.pp() / layers : 0;
    Layout sharded = how.sharded(stage, line.shape, line.placement);
    for (int expert = 0; expert < (line.ofExperts() ? experts : 1); expert++) {
      boolean dealt = line.ofExperts() && how.ep() > 1;
      specs.add(line.spec(layer, expert, dealt ? how.dealt(stage, expert, experts) : sharded));
    }
  }

  /**
   * Prints the list for {@code windlass plan --tensors} of a model between two parallelisms.
   * Tensors with equal layouts are one entry with a count.
   *
   * @param args model, present parallelism, and target parallelism
   */
  public static void main(String[] args) {
    if (args.length != 3) {
      throw new InvalidArgumentException(
          "takes MODEL FROM TO, such as qwen3-235b-a22b-fp8 pp=4,dp=8,tp=2,ep=16 dp=8,tp=8");
    }
    Parallelism from = Parallelism.parse(args[1]);
    Parallelism to = Parallelism.parse(args[2]).at(from.ranks());
    PlanTensors.print(load(args[0]), from, to, System.out);
  }
}
