// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.windlass.DeviceMesh;
import org.windlass.Layout;
import org.windlass.Placement;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsHeader.Item;
import org.windlass.checkpoint.SafetensorsIndex;
import org.windlass.checkpoint.SafetensorsWriter;

/** The files of a checkpoint in the making, and where in them each tensor goes. */
final class Output {
  private final List<Integer> ranks;
  private final boolean whole;
  /** The file of each tensor where tensors are whole. */
  private final Map<String, SafetensorsWriter> byTensor = new LinkedHashMap<>();
  /** The file of each rank where they are not. */
  private final Map<Integer, SafetensorsWriter> byRank = new LinkedHashMap<>();

  private Output(List<Integer> ranks, boolean whole) {
    this.ranks = ranks;
    this.whole = whole;
  }

  /** Makes every file, at its final size. */
  static Output create(
      CheckpointWriter writer,
      ReshardRequest request,
      List<TensorMove> moves,
      List<Integer> ranks,
      Map<String, String> metadata) {
    Output output = new Output(ranks, request.writesWhole());
    if (request.maxShardBytes().isPresent()) {
      output.createIndexed(writer, moves, request.maxShardBytes().getAsLong(), metadata);
    } else if (output.whole) {
      SafetensorsWriter file = writer.single(items(moves), metadata);
      moves.forEach(move -> output.byTensor.put(move.name(), file));
    } else {
      output.createByRank(writer, moves, metadata);
    }
    return output;
  }

  private static List<Item> items(List<TensorMove> moves) {
    return moves.stream()
        .map(move -> new Item(move.name(), move.target(), move.shapeList()))
        .toList();
  }

  private void createByRank(
      CheckpointWriter writer, List<TensorMove> moves, Map<String, String> metadata) {
    for (int rank : ranks) {
      List<Item> items = new ArrayList<>();
      for (TensorMove move : moves) {
        List<Long> shape = new ArrayList<>();
        for (long extent : move.to().localShape(move.shape(), rank)) {
          shape.add(extent);
        }
        items.add(new Item(move.name(), move.target(), shape));
      }
      byRank.put(rank, writer.file(Checkpoint.rankFile(rank), items, metadata));
    }
    Map<String, LayoutFile.Entry> tensors = new LinkedHashMap<>();
    for (TensorMove move : moves) {
      tensors.put(
          move.name(),
          new LayoutFile.Entry(
              move.shapeList(), Optional.of(move.target()), Optional.of(move.to())));
    }
    writer.text(LayoutFile.NAME, new LayoutFile(tensors).encode());
  }

  private void createIndexed(
      CheckpointWriter writer, List<TensorMove> moves, long limit, Map<String, String> metadata) {
    List<List<TensorMove>> shards = new ArrayList<>();
    long total = 0;
    long inShard = 0;
    for (TensorMove move : moves) {
      long bytes = move.targetBytes(move.elements());
      if (shards.isEmpty() || inShard > 0 && inShard + bytes > limit) {
        shards.add(new ArrayList<>());
        inShard = 0;
      }
      shards.get(shards.size() - 1).add(move);
      inShard += bytes;
      total += bytes;
    }
    Map<String, String> files = new LinkedHashMap<>();
    for (int i = 0; i < shards.size(); i++) {
      String name =
          String.format(
              Locale.ROOT, "model-%05d-of-%05d.safetensors", i + 1, shards.size());
      SafetensorsWriter file = writer.file(name, items(shards.get(i)), metadata);
      for (TensorMove move : shards.get(i)) {
        byTensor.put(move.name(), file);
        files.put(move.name(), name);
      }
    }
    writer.text(SafetensorsIndex.NAME, new SafetensorsIndex(files).encode(total));
  }

  /** Whether tensors are written whole. */
  boolean isWhole() {
    return whole;
  }

  /** The file that a tensor, or a rank's part of it, is written to. */
  SafetensorsWriter file(String tensor, int rank) {
    return whole ? byTensor.get(tensor) : byRank.get(rank);
  }

  /**
   * The layout by which the target ranks write a tensor: the one that was asked for or, where the
   * tensor is written whole, a cut that gives each of them a part of it, so that all work.
   */
  Layout layout(TensorMove move) {
    if (!whole) {
      return move.to();
    }
    DeviceMesh mesh =
        DeviceMesh.of(ranks.size()).ranks(ranks.stream().mapToInt(Integer::intValue).toArray());
    // Bits have no cut that is known to fall on a byte.
    int cut = move.source().bits() < 8 ? -1 : cutDimension(move.shape());
    return cut < 0
        ? DeviceMesh.of(1).at(ranks.get(0)).layout(Placement.replicate())
        : mesh.layout(Placement.shard(cut));
  }

  /** The outermost dimension among the longest; -1 for a scalar. */
  static int cutDimension(long[] shape) {
    int longest = -1;
    for (int d = 0; d < shape.length; d++) {
      if (longest < 0 || shape[d] > shape[longest]) {
        longest = d;
      }
    }
    return longest;
  }
}
