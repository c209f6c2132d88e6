// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.demo;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.windlass.examples.ModelTable;
import org.windlass.examples.Parallelism;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;

/**
 * The tensors of Qwen3-0.6B with fewer layers. The trainer has 2-way data parallelism and 4-way
 * tensor parallelism. The inference fleet has 4-way tensor parallelism.
 *
 * <p>The trainer shards projections by output rows or input columns and embeddings by rows among
 * all ranks, and replicates norms. Each of its data-parallel halves holds one of the two terms
 * whose sum is {@code o_proj} or {@code down_proj}. The inference ranks hold q, k and v in one
 * buffer, and gate and up in another.
 */
final class Model {
  static final int TRAINER_RANKS = 8;
  static final int INFERENCE_RANKS = 4;

  private static final DeviceMesh TRAINER = DeviceMesh.of("dp", 2, "tp", 4);
  private static final DeviceMesh FLEET = DeviceMesh.of("tp", 4).at(TRAINER_RANKS);
  private static final Layout ROWS = TRAINER.layout(Placement.replicate(), Placement.shard(0));
  private static final Layout SUMMED_COLUMNS =
      TRAINER.layout(Placement.partial(), Placement.shard(1));

  private final List<Weight> weights = new ArrayList<>();
  private final Map<String, long[]> buffers = new LinkedHashMap<>();

  private Model() {}

  static Model ofLayers(int layers) {
    Model model = new Model();
    ModelTable table = ModelTable.load("qwen3-0.6b").withLayers(layers);
    for (TensorSpec spec : table.specs(Parallelism.parse("tp=1"))) {
      model.add(spec.name(), spec.shape().stream().mapToLong(Long::longValue).toArray());
    }
    return model;
  }

  private void add(String name, long... shape) {
    String[] words = name.split("[.]");
    String kind = words[words.length - 2];
    String parent = name.substring(0, name.indexOf(kind));
    switch (kind) {
      // The output projection is the same tensor, since embeddings are tied.
      case "embed_tokens" -> {
        Layout everyRank = TRAINER.layout(Placement.shard(0), Placement.shard(0));
        add("embeddings", name, name, everyRank, Placement.shard(0), shape);
      }
      case "q_proj", "k_proj", "v_proj" ->
          add("attention q, k, v", name, parent + "qkv", ROWS, Placement.shard(0), shape);
      case "o_proj" ->
          add("attention output", name, name, SUMMED_COLUMNS, Placement.shard(1), shape);
      case "gate_proj", "up_proj" ->
          add("mlp gate, up", name, parent + "gate_up", ROWS, Placement.shard(0), shape);
      case "down_proj" -> add("mlp down", name, name, SUMMED_COLUMNS, Placement.shard(1), shape);
      default -> {
        Layout replicated = TRAINER.layout(Placement.replicate(), Placement.replicate());
        add("norms", name, name, replicated, Placement.replicate(), shape);
      }
    }
  }

  /** Adds a weight to {@code buffer}, below the rows of the weights that were added before. */
  private void add(
      String group, String name, String buffer, Layout from, Placement cut, long[] shape) {
    Layout to = FLEET.layout(cut);
    long[] local = to.localShape(shape, TRAINER_RANKS);
    long row = buffers.containsKey(buffer) ? buffers.get(buffer)[0] : 0;
    weights.add(new Weight(weights.size(), name, group, shape, from, to, buffer, row));
    local[0] += row;
    buffers.put(buffer, local);
  }

  List<Weight> weights() {
    return weights;
  }

  Map<String, long[]> buffers() {
    return buffers;
  }

  long bytesPerRank() {
    return buffers.values().stream()
        .mapToLong(shape -> 2 * LongStream.of(shape).reduce(1, Math::multiplyExact))
        .sum();
  }
}
