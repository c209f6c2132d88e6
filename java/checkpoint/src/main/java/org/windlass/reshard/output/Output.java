// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsHeader.Item;
import org.windlass.checkpoint.SafetensorsIndex;
import org.windlass.checkpoint.SafetensorsWriter;
import org.windlass.reshard.request.MoveList;
import org.windlass.reshard.request.ReshardRequest;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.TargetTensor;

/**
 * Manages the files of a checkpoint that is being written. It keeps no table of tensors for each
 * file: {@link #places} computes where each tensor begins, for one tensor after another.
 */
public final class Output implements AutoCloseable {
  /** Largest number of local shapes that are cached. */
  private static final int MOST_SHAPES = 100_000;

  private final ReshardRequest request;
  private final MoveList list;
  private final List<TargetTensor> targets;

  /**
   * Local shapes, keyed by division, global shape and rank. Many targets have the same division and
   * shape, and share these objects, so keys are compared by identity.
   */
  private final Map<Division, Map<long[], Map<Integer, List<Long>>>> shapes =
      new IdentityHashMap<>();

  private int shapesCount;

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

  /** Returns the files with these names. All of them have the tensors {@code items}. */
  private interface Files {
    List<SafetensorsWriter> make(List<String> names, List<Item> items);
  }

  /** Creates every file at its final size. */
  public void create(CheckpointWriter writer) {
    make(
        (names, items) ->
            names.get(0).isEmpty()
                ? List.of(writer.single(items, list.metadata()))
                : writer.files(names, items, list.metadata()),
        writer::text);
  }

  /**
   * Opens the files that another process has created.
   *
   * @param content the path of that process's {@link CheckpointWriter#staged}
   */
  public void open(Path content) {
    make(
        (names, items) ->
            names.stream().map(name -> opened(content.resolve(name), items)).toList(),
        (name, text) -> {});
  }

  private SafetensorsWriter opened(Path path, List<Item> items) {
    SafetensorsWriter file = SafetensorsWriter.open(path, items, list.metadata());
    file.dropHeader();
    return file;
  }

  /**
   * Makes the files.
   *
   * @param files returns files of some names; the name is empty if OUT is a single file
   * @param texts receives the name and the content of any other file
   */
  private void make(Files files, BiConsumer<String, CheckpointWriter.Text> texts) {
    Files kept =
        (names, items) -> {
          List<SafetensorsWriter> made = files.make(names, items);
          made.forEach(SafetensorsWriter::dropHeader);
          return made;
        };
    if (request.maxShardBytes.isPresent()) {
      makeIndexed(kept, texts, request.maxShardBytes.getAsLong());
    } else if (isWhole()) {
      byFirst.put(0, kept.make(List.of(""), items(targets)).get(0));
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

  private void makeByRank(Files files, BiConsumer<String, CheckpointWriter.Text> texts) {
    List<Integer> ranks = list.targetRanks();
    for (int first = 0, end; first < ranks.size(); first = end) {
      List<Item> items = items(ranks.get(first));
      end = first + 1;
      while (end < ranks.size() && items.equals(items(ranks.get(end)))) {
        end++;
      }
      List<Integer> alike = ranks.subList(first, end);
      List<SafetensorsWriter> made =
          files.make(alike.stream().map(Checkpoint::rankFile).toList(), items);
      for (int i = 0; i < made.size(); i++) {
        byRank.put(alike.get(i), made.get(i));
      }
    }
    texts.accept(
        LayoutFile.NAME,
        out ->
            LayoutFile.write(
                out,
                targets.stream()
                    .map(
                        target ->
                            Map.entry(
                                target.name(),
                                target.division().entry(target.shapeList(), target.dtype())))));
  }

  private List<Long> localShape(TargetTensor target, int rank) {
    if (shapesCount > MOST_SHAPES) {
      shapes.clear();
      shapesCount = 0;
    }
    return shapes
        .computeIfAbsent(target.division(), key -> new IdentityHashMap<>())
        .computeIfAbsent(target.shape(), key -> new HashMap<>())
        .computeIfAbsent(
            rank,
            key -> {
              shapesCount++;
              return List.of(Arrays.stream(target.held(rank).shape()).boxed().toArray(Long[]::new));
            });
  }

  private long localBytes(TargetTensor target, int rank) {
    long elements = localShape(target, rank).stream().reduce(1L, (a, b) -> a * b);
    return target.dtype().bytesOf(elements);
  }

  /** Returns the tensors of the file with this number. */
  private List<Item> items(int number) {
    List<Item> items = new ArrayList<>();
    for (TargetTensor target : targets) {
      if (target.to().mesh().contains(number)) {
        items.add(new Item(target.name(), target.dtype(), localShape(target, number)));
      }
    }
    return items;
  }

  private void makeIndexed(
      Files files, BiConsumer<String, CheckpointWriter.Text> texts, long limit) {
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
      byFirst.put(firsts.get(i), files.make(List.of(name), items(held)).get(0));
      held.forEach(target -> fileOf.put(target.name(), name));
    }
    byte[] index = new SafetensorsIndex(fileOf).encode(total);
    texts.accept(SafetensorsIndex.NAME, out -> out.write(index));
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
    long sum = 0;
    for (int rank : target.to().mesh().ranks()) {
      sum += localBytes(target, rank);
    }
    return sum;
  }

  /**
   * Describes where a rank's local tensor is written.
   *
   * @param begin the offset of its first byte, in bytes from the end of the file's header
   */
  public record Place(SafetensorsWriter file, long begin) {}

  /**
   * Returns a function that returns, for a target, the place of each rank's tensor. Apply it to all
   * targets, in the order of {@link MoveList#targets}; otherwise it throws IllegalStateException.
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
        for (int rank : target.to().mesh().ranks()) {
          SafetensorsWriter file =
              isWhole() ? byFirst.floorEntry(next).getValue() : byRank.get(rank);
          long size = localBytes(target, rank);
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
