// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsHeader.Item;
import org.windlass.checkpoint.SafetensorsIndex;
import org.windlass.checkpoint.SafetensorsWriter;
import org.windlass.layout.Layout;
import org.windlass.reshard.request.MoveList;
import org.windlass.reshard.request.ReshardRequest;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TargetTensor;

/** Manages the files of a checkpoint that is being written, and the file of each tensor. */
public final class Output {
  private final List<Integer> ranks;
  private final boolean whole;
  /** File of each tensor, if tensors are whole. */
  private final Map<String, SafetensorsWriter> byTensor = new LinkedHashMap<>();
  /** Files by their numbers, if tensors are not whole. */
  private final Map<Integer, SafetensorsWriter> byRank = new LinkedHashMap<>();

  /** Bytes of each tensor in all files. */
  private final Map<String, Long> bytesOnRanks = new HashMap<>();

  private long bytes;

  private Output(List<Integer> ranks, boolean whole) {
    this.ranks = ranks;
    this.whole = whole;
  }

  /** Creates every file at its final size, or opens the files that another process has created. */
  public static Output create(
      OutputFiles writer,
      ReshardRequest request,
      MoveList list) {
    Map<String, String> metadata = list.metadata();
    List<TargetTensor> targets = list.targets();
    Output output = new Output(list.targetRanks(), request.writesWhole());
    if (request.maxShardBytes().isPresent()) {
      output.createIndexed(writer, targets, request.maxShardBytes().getAsLong(), metadata);
    } else if (output.whole) {
      SafetensorsWriter file = writer.single(items(targets), metadata);
      targets.forEach(target -> output.byTensor.put(target.name(), file));
    } else {
      output.createByRank(writer, targets, metadata);
    }
    output.bytes = targets.stream().mapToLong(output::bytes).sum();
    return output;
  }

  private static List<Item> items(List<TargetTensor> targets) {
    return targets.stream()
        .map(target -> new Item(target.name(), target.dtype(), target.shapeList()))
        .toList();
  }

  private void createByRank(
      OutputFiles writer, List<TargetTensor> targets, Map<String, String> metadata) {
    for (int number : ranks) {
      List<Item> items = new ArrayList<>();
      for (TargetTensor target : targets) {
        int rank = number + target.firstFile();
        if (target.to().mesh().contains(rank)) {
          List<Long> shape = new ArrayList<>();
          long[] local = target.held(rank).shape();
          for (long extent : local) {
            shape.add(extent);
          }
          long bytes = target.dtype().bytesOf(TargetTensor.elements(local));
          bytesOnRanks.merge(target.name(), bytes, Long::sum);
          items.add(new Item(target.name(), target.dtype(), shape));
        }
      }
      byRank.put(number, writer.file(Checkpoint.rankFile(number), items, metadata));
    }
    Map<String, LayoutFile.Entry> tensors = new LinkedHashMap<>();
    for (TargetTensor target : targets) {
      Optional<LayoutFile.Parts> parts =
          target.fuse().flatMap(fuse -> fuse.parts(target.files()));
      tensors.put(
          target.name(),
          new LayoutFile.Entry(
              target.shapeList(),
              Optional.of(target.dtype()),
              parts.isPresent() ? Optional.empty() : Optional.of(new Layout(target.files(), target.to().placements())),
              parts));
    }
    writer.text(LayoutFile.NAME, new LayoutFile(tensors).encode());
  }

  private void createIndexed(
      OutputFiles writer,
      List<TargetTensor> targets,
      long limit,
      Map<String, String> metadata) {
    List<List<TargetTensor>> shards = new ArrayList<>();
    long total = 0;
    long inShard = 0;
    for (TargetTensor target : targets) {
      long bytes = target.bytes();
      if (shards.isEmpty() || inShard > 0 && inShard + bytes > limit) {
        shards.add(new ArrayList<>());
        inShard = 0;
      }
      shards.get(shards.size() - 1).add(target);
      inShard += bytes;
      total += bytes;
    }
    Map<String, String> files = new LinkedHashMap<>();
    for (int i = 0; i < shards.size(); i++) {
      String name =
          String.format(
              Locale.ROOT, "model-%05d-of-%05d.safetensors", i + 1, shards.size());
      SafetensorsWriter file = writer.file(name, items(shards.get(i)), metadata);
      for (TargetTensor target : shards.get(i)) {
        byTensor.put(target.name(), file);
        files.put(target.name(), name);
      }
    }
    writer.text(SafetensorsIndex.NAME, new SafetensorsIndex(files).encode(total));
  }

  /** Returns whether tensors are written whole. */
  public boolean isWhole() {
    return whole;
  }

  /** Returns the file of a tensor, or of a rank's part of it. */
  public SafetensorsWriter file(TargetTensor target, int rank) {
    return whole ? byTensor.get(target.name()) : byRank.get(target.fileOf(rank));
  }

  /** Returns the number of bytes that are written of all tensors, including replicas. */
  public long bytes() {
    return bytes;
  }

  /** Returns the number of bytes that are written of a tensor, including replicas. */
  public long bytes(TargetTensor target) {
    return whole ? target.bytes() : bytesOnRanks.get(target.name());
  }

  /**
   * Returns the ranks whose parts of a target are written: all of its layout, or the lowest if the
   * target is written whole.
   */
  public List<Integer> ranks(TargetTensor target) {
    List<Integer> all = target.to().mesh().ranks();
    return whole ? List.of(Collections.min(all)) : all;
  }

  /** Returns what the file of a rank has of a target. */
  public Runs held(TargetTensor target, int rank) {
    return whole ? Runs.whole(target.shape()) : target.held(rank);
  }
}
