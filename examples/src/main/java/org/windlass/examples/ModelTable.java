// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;

/**
 * The tensors of a public model: names, shapes, dtypes, and where tensor, expert, pipeline and data
 * parallelism put them. A table is a text of lines {@code layers N} and {@code experts N}, then a
 * line for each tensor: its name, with {@code {layer}} and {@code {expert}}, dtype, shape, the
 * placement among tensor parallel ranks as in layout strings, and {@code first} or {@code last} for
 * the pipeline stage of one outside the layers. {@code #} begins a comment.
 */
public final class ModelTable {
  /** The tables that are there. */
  public static final List<String> NAMES = List.of("qwen3-0.6b", "qwen3-235b-a22b-fp8");

  /** A line: a tensor of the model, or one for each layer, or for each expert of each layer. */
  private record Line(
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

  private ModelTable(String name, int layers, int experts, List<Line> lines) {
    this.name = name;
    this.layers = layers;
    this.experts = experts;
    this.lines = lines;
  }

  /** One of {@link #NAMES}. */
  public static ModelTable load(String name) {
    if (!NAMES.contains(name)) {
      throw new InvalidArgumentException("no model '" + name + "'; there are " + NAMES);
    }
    InputStream resource = ModelTable.class.getResourceAsStream(name + ".tensors");
    try (var reader = new BufferedReader(new InputStreamReader(resource, StandardCharsets.UTF_8))) {
      return read(name, reader.lines().toList());
    } catch (IOException fault) {
      throw new UncheckedIOException(fault);
    }
  }

  /**
   * A table of a text.
   *
   * @throws InvalidArgumentException if a line is none; it names the table and the line
   */
  static ModelTable read(String name, List<String> text) {
    Map<String, Integer> counts = new LinkedHashMap<>(Map.of("layers", 0, "experts", 0));
    List<Line> lines = new ArrayList<>();
    for (int i = 0; i < text.size(); i++) {
      String[] words = text.get(i).replaceFirst("#.*", "").strip().split("\\s+");
      try {
        if (words.length == 2 && counts.containsKey(words[0])) {
          counts.put(words[0], Integer.parseInt(words[1]));
        } else if (words.length > 1) {
          lines.add(line(words));
        } else if (!words[0].isEmpty()) {
          throw new InvalidArgumentException("expected a tensor's name, dtype, shape, placement");
        }
      } catch (InvalidArgumentException | NumberFormatException e) {
        throw new InvalidArgumentException(
            name + ".tensors, line " + (i + 1) + ": " + e.getMessage(), e);
      }
    }
    return new ModelTable(name, counts.get("layers"), counts.get("experts"), lines);
  }

  private static Line line(String[] words) {
    boolean ofLayers = words[0].contains("{layer}");
    List<String> stages = ofLayers ? List.of() : List.of("first", "last");
    if (words.length != (ofLayers ? 4 : 5) || !ofLayers && !stages.contains(words[4])) {
      throw new InvalidArgumentException(
          "expected name, dtype, shape, placement" + (ofLayers ? "" : " and first or last"));
    }
    return new Line(
        words[0],
        DType.parse(words[1]),
        Arrays.stream(words[2].split("x")).mapToLong(Long::parseLong).toArray(),
        Layout.parse("1:" + words[3]).placements().get(0),
        words[words.length - 1].equals("last"));
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

  /** The same model with another number of layers. */
  public ModelTable withLayers(int layers) {
    return new ModelTable(name, layers, experts, lines);
  }

  /**
   * The tensors as they lie under a parallelism, in the same order under each: those before the
   * layers, layer by layer, those after them.
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
    int first = how.firstRank() + stage * how.stageRanks();
    if (!line.ofExperts()) {
      specs.add(line.spec(layer, 0, sharded(line, how, first)));
      return;
    }
    for (int expert = 0; expert < experts; expert++) {
      Layout layout =
          how.ep() > 1 ? dealt(expert, how, first) : sharded(line, how, first);
      specs.add(line.spec(layer, expert, layout));
    }
  }

  /** Cut among the tensor parallel ranks; with fewer units than ranks, several hold each. */
  private static Layout sharded(Line line, Parallelism how, int first) {
    Placement whole = Placement.replicate();
    if (line.placement instanceof Placement.Shard shard) {
      long units = (line.shape[shard.dim()] - 1) / shard.unit() + 1;
      if (units < how.tp() && how.tp() % units == 0) {
        int kv = (int) units;
        DeviceMesh mesh = DeviceMesh.of("dp", how.dp(), "kv", kv, "rep", how.tp() / kv);
        return mesh.at(first).layout(whole, shard, whole);
      }
    }
    return DeviceMesh.of("dp", how.dp(), "tp", how.tp()).at(first).layout(whole, line.placement);
  }

  /** Whole on one rank of each expert parallel group. */
  private Layout dealt(int expert, Parallelism how, int first) {
    int place = expert * how.ep() / experts;
    int[] ranks =
        IntStream.range(0, how.stageRanks() / how.ep())
            .map(group -> first + group * how.ep() + place)
            .toArray();
    return DeviceMesh.of("dp", ranks.length).ranks(ranks).layout(Placement.replicate());
  }

  /**
   * Prints a model between two parallelisms as the list that {@code windlass plan --tensors} takes,
   * tensors that lie alike as one entry with a count.
   *
   * @param args a model, its parallelism now, and the one that it shall have
   */
  public static void main(String[] args) {
    if (args.length != 3) {
      throw new InvalidArgumentException(
          "takes MODEL FROM TO, such as qwen3-235b-a22b-fp8 pp=4,dp=8,tp=2,ep=16 dp=8,tp=8");
    }
    Parallelism from = Parallelism.parse(args[1]);
    Parallelism to = Parallelism.parse(args[2]).at(from.ranks());
    load(args[0]).printList(from, to, System.out);
  }

  /** Prints the list for {@code windlass plan --tensors}, as {@link #main} does. */
  public void printList(Parallelism from, Parallelism to, PrintStream out) {
    List<TensorSpec> sources = specs(from);
    List<TensorSpec> targets = specs(to);
    Map<String, String> names = new LinkedHashMap<>();
    Map<String, Integer> counts = new LinkedHashMap<>();
    for (int i = 0; i < sources.size(); i++) {
      TensorSpec source = sources.get(i);
      // Tensors of other layers and experts that lie alike differ in the numbers of their names.
      String kind = source.name().replaceAll("[0-9]+", "*");
      String rest =
          String.format(
              "\"shape\": %s, \"dtype\": \"%s\", \"from\": \"%s\", \"to\": \"%s\"",
              source.shape(),
              source.dtype().safetensorsName(),
              source.layout().qualified(),
              targets.get(i).layout().qualified());
      names.putIfAbsent(kind + rest, "{\"name\": \"" + source.name() + "\", " + rest);
      counts.merge(kind + rest, 1, Integer::sum);
    }
    String separator = "[";
    for (Map.Entry<String, String> entry : names.entrySet()) {
      out.print(separator + entry.getValue() + ", \"count\": " + counts.get(entry.getKey()) + "}");
      separator = ",\n ";
    }
    out.println("]");
  }
}
