// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsHeader.Item;
import org.windlass.checkpoint.SafetensorsIndex;
import org.windlass.checkpoint.SafetensorsWriter;
import org.windlass.reshard.request.MoveList;
import org.windlass.reshard.request.ReshardRequest;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TargetTensor;

/**
 * Manages the files of a checkpoint that is being written. It keeps no table of tensors for each
 * file: {@link #places} finds where the tensors begin, one after another.
 */
public final class Output implements AutoCloseable {
  private final ReshardRequest request;
  private final MoveList list;
  private final List<TargetTensor> targets;
  private final LocalShapes shapes = new LocalShapes();

  /** Files keyed by file number, if OUT has a file for each rank. */
  private final Map<Integer, SafetensorsWriter> byRank = new LinkedHashMap<>();

  /** Files of whole tensors, keyed by the index of the first tensor in each. */
  private final TreeMap<Integer, SafetensorsWriter> byFirst = new TreeMap<>();

  private long bytes;

  /** Creates an output without files. {@code list} has the moves that fill it. */
  public Output(ReshardRequest request, MoveList list) {
    this.request = request;
    this.list = list;
    this.targets = list.targets();
  }

  /** Creates every file at its final size. */
  public void create(CheckpointWriter writer) {
    make(
        (name, items) ->
            name.isEmpty()
                ? writer.single(items, list.metadata())
                : writer.file(name, items, list.metadata()),
        writer::text);
  }

  /**
   * Opens the files that another process has created.
   *
   * @param content the path of that process's {@link CheckpointWriter#staged}
   */
  public void open(Path content) {
    make(
        (name, items) -> SafetensorsWriter.open(content.resolve(name), items, list.metadata()),
        (name, bytes) -> {});
  }

  /**
   * Makes the files.
   *
   * @param files returns a file of a name, which is empty if OUT is a single file
   * @param texts receives the name and the content of any other file
   */
  private void make(
      BiFunction<String, List<Item>, SafetensorsWriter> files, BiConsumer<String, byte[]> texts) {
    BiFunction<String, List<Item>, SafetensorsWriter> kept =
        files.andThen(
            file -> {
              file.dropHeader();
              return file;
            });
    if (request.maxShardBytes().isPresent()) {
      makeIndexed(kept, texts, request.maxShardBytes().getAsLong());
    } else if (isWhole()) {
      byFirst.put(0, kept.apply("", items(targets)));
    } else {
      makeByRank(kept, texts);
    }
    bytes = targets.stream().mapToLong(this::bytes).sum();
  }

  private static List<Item> items(List<TargetTensor> targets) {
    return targets.stream()
        .map(target -> new Item(target.name(), target.dtype(), target.shapeList()))
        .toList();
  }

  private void makeByRank(
      BiFunction<String, List<Item>, SafetensorsWriter> files, BiConsumer<String, byte[]> texts) {
    for (int number : list.targetRanks()) {
      List<Item> items = new ArrayList<>();
      for (TargetTensor target : targets) {
        shapes
            .of(target, number)
            .ifPresent(shape -> items.add(new Item(target.name(), target.dtype(), shape)));
      }
      byRank.put(number, files.apply(Checkpoint.rankFile(number), items));
    }
    Map<String, LayoutFile.Entry> tensors = new LinkedHashMap<>();
    for (TargetTensor target : targets) {
      tensors.put(target.name(), target.division().entry(target.shapeList(), target.dtype()));
    }
    texts.accept(LayoutFile.NAME, new LayoutFile(tensors).encode());
  }

  private void makeIndexed(
      BiFunction<String, List<Item>, SafetensorsWriter> files,
      BiConsumer<String, byte[]> texts,
      long limit) {
    List<Integer> firsts = new ArrayList<>();
    long total = 0;
    long inShard = 0;
    for (int i = 0; i < targets.size(); i++) {
      long size = targets.get(i).bytes();
      if (i == 0 || inShard > 0 && inShard + size > limit) {
        firsts.add(i);
        inShard = 0;
      }
      inShard += size;
      total += size;
    }
    Map<String, String> fileOf = new LinkedHashMap<>();
    for (int i = 0; i < firsts.size(); i++) {
      String name =
          String.format(Locale.ROOT, "model-%05d-of-%05d.safetensors", i + 1, firsts.size());
      int end = i + 1 < firsts.size() ? firsts.get(i + 1) : targets.size();
      List<TargetTensor> held = targets.subList(firsts.get(i), end);
      byFirst.put(firsts.get(i), files.apply(name, items(held)));
      held.forEach(target -> fileOf.put(target.name(), name));
    }
    texts.accept(SafetensorsIndex.NAME, new SafetensorsIndex(fileOf).encode(total));
  }

  /** Returns whether tensors are written whole. */
  public boolean isWhole() {
    return request.writesWhole();
  }

  /** Returns the number of tensor bytes in all files, including replicas. */
  public long bytes() {
    return bytes;
  }

  /** Returns the number of bytes of a tensor in all files, including replicas. */
  public long bytes(TargetTensor target) {
    if (isWhole()) {
      return target.bytes();
    }
    long sum = 0;
    for (int rank : target.to().mesh().ranks()) {
      sum += shapes.bytes(target, rank);
    }
    return sum;
  }

  /**
   * Returns the ranks whose copies of a target are written: all ranks of its layout, or only the
   * lowest if the target is written whole.
   */
  public List<Integer> ranks(TargetTensor target) {
    List<Integer> all = target.to().mesh().ranks();
    return isWhole() ? List.of(Collections.min(all)) : all;
  }

  /** Returns the indices of a target that the file of a rank holds. */
  public Runs held(TargetTensor target, int rank) {
    return isWhole() ? Runs.whole(target.shape()) : target.held(rank);
  }

  /**
   * Describes where a rank's local tensor is written.
   *
   * @param begin the offset of its first byte, in bytes from the end of the file's header
   */
  public record Place(SafetensorsWriter file, long begin) {}

  /**
   * Returns a function that gives the place of a target for each rank. It throws
   * IllegalStateException unless it is applied to all targets, in the order of {@link
   * MoveList#targets}.
   */
  public Function<TargetTensor, Map<Integer, Place>> places() {
    return new Function<>() {
      private final Map<SafetensorsWriter, Long> ends = new HashMap<>();
      private int next;

      @Override
      public Map<Integer, Place> apply(TargetTensor target) {
        if (target != targets.get(next)) {
          throw new IllegalStateException("out of order: " + target.name());
        }
        Map<Integer, Place> places = new LinkedHashMap<>();
        for (int rank : ranks(target)) {
          SafetensorsWriter file =
              isWhole() ? byFirst.floorEntry(next).getValue() : byRank.get(rank);
          long size = isWhole() ? target.bytes() : shapes.bytes(target, rank);
          Objects.requireNonNull(file);
          places.put(rank, new Place(file, ends.merge(file, size, Long::sum) - size));
        }
        next++;
        return places;
      }
    };
  }

  /** Closes the files. */
  @Override
  public void close() {
    byRank.values().forEach(SafetensorsWriter::close);
    byFirst.values().forEach(SafetensorsWriter::close);
  }
}
