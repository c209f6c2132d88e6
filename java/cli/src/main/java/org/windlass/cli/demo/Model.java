// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.demo;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.windlass.DeviceMesh;
import org.windlass.Layout;
import org.windlass.Placement;

/**
 * The tensors of a small transformer, with names and shapes as Qwen3-0.6B has them and fewer
 * layers, between a trainer of data parallelism 2 by tensor parallelism 4 and an inference fleet of
 * tensor parallelism 4.
 *
 * <p>The trainer cuts projections by output rows or input columns, the embeddings by rows among all
 * ranks, and replicates norms. What its data-parallel halves hold of {@code o_proj} and {@code
 * down_proj} are two terms of a sum. The inference ranks hold q, k and v in one buffer, and gate
 * and up in another.
 */
final class Model {
  static final int TRAINER_RANKS = 8;
  static final int INFERENCE_RANKS = 4;

  private static final long HIDDEN = 1024;
  private static final long INTERMEDIATE = 3072;
  private static final long HEAD = 128;
  private static final long HEADS = 16;
  private static final long KV_HEADS = 8;
  private static final long VOCABULARY = 151_936;

  private static final DeviceMesh TRAINER = DeviceMesh.of("dp", 2, "tp", 4);
  private static final DeviceMesh FLEET = DeviceMesh.of("tp", 4).at(TRAINER_RANKS);

  private final List<Weight> weights = new ArrayList<>();
  /** The shape of each buffer of an inference rank. */
  private final Map<String, long[]> buffers = new LinkedHashMap<>();

  private Model() {}

  static Model ofLayers(int layers) {
    Model model = new Model();
    Layout replicated = TRAINER.layout(Placement.replicate(), Placement.replicate());
    Layout rows = TRAINER.layout(Placement.replicate(), Placement.shard(0));
    Layout summedColumns = TRAINER.layout(Placement.partial(), Placement.shard(1));
    // The output projection is the same tensor: embeddings are tied.
    Layout everyRank = TRAINER.layout(Placement.shard(0), Placement.shard(0));
    model.add("embeddings", "model.embed_tokens.weight", everyRank, 0, VOCABULARY, HIDDEN);
    for (int layer = 0; layer < layers; layer++) {
      String name = "model.layers." + layer + ".";
      String attention = name + "self_attn.";
      model.fused(
          "attention q, k, v",
          attention + "qkv",
          rows,
          List.of(attention + "q_proj", attention + "k_proj", attention + "v_proj"),
          HEADS * HEAD,
          KV_HEADS * HEAD,
          KV_HEADS * HEAD);
      model.add(
          "attention output", attention + "o_proj.weight", summedColumns, 1, HIDDEN, HEADS * HEAD);
      model.add("norms", attention + "q_norm.weight", replicated, -1, HEAD);
      model.add("norms", attention + "k_norm.weight", replicated, -1, HEAD);
      model.fused(
          "mlp gate, up",
          name + "mlp.gate_up",
          rows,
          List.of(name + "mlp.gate_proj", name + "mlp.up_proj"),
          INTERMEDIATE,
          INTERMEDIATE);
      model.add("mlp down", name + "mlp.down_proj.weight", summedColumns, 1, HIDDEN, INTERMEDIATE);
      model.add("norms", name + "input_layernorm.weight", replicated, -1, HIDDEN);
      model.add("norms", name + "post_attention_layernorm.weight", replicated, -1, HIDDEN);
    }
    model.add("norms", "model.norm.weight", replicated, -1, HIDDEN);
    return model;
  }

  /**
   * Adds a weight with a buffer of its own. {@code cut} is the dimension that the fleet shards; -1
   * if it replicates.
   */
  private void add(String group, String name, Layout from, int cut, long... shape) {
    Layout to =
        FLEET.layout(cut < 0 ? Placement.replicate() : Placement.shard(cut));
    long[] local = shape.clone();
    if (cut >= 0) {
      local[cut] /= INFERENCE_RANKS;
    }
    buffers.put(name, local);
    weights.add(new Weight(weights.size(), name, group, shape, from, to, name, 0));
  }

  /** Adds weights of HIDDEN columns, cut by rows, that lie one below the other in one buffer. */
  private void fused(
      String group, String buffer, Layout from, List<String> names, long... rows) {
    Layout to = FLEET.layout(Placement.shard(0));
    long row = 0;
    for (int i = 0; i < rows.length; i++) {
      long[] shape = {rows[i], HIDDEN};
      weights.add(
          new Weight(
              weights.size(), names.get(i) + ".weight", group, shape, from, to, buffer, row));
      row += rows[i] / INFERENCE_RANKS;
    }
    buffers.put(buffer, new long[] {row, HIDDEN});
  }

  List<Weight> weights() {
    return weights;
  }

  Map<String, long[]> buffers() {
    return buffers;
  }

  /** Bytes of all buffers of one inference rank, in bf16. */
  long bytesPerRank() {
    long bytes = 0;
    for (long[] shape : buffers.values()) {
      long elements = 1;
      for (long extent : shape) {
        elements *= extent;
      }
      bytes += 2 * elements;
    }
    return bytes;
  }
}
