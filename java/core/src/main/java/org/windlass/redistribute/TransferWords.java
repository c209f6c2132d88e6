// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.List;
import org.windlass.ResourceException;
import org.windlass.internal.Access;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.Steps;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;

/**
 * What one rank does in a transfer, as words: its views of all tensors, the boxes that it stages, the
 * boxes that it writes; windlass.h says of {@code wl_transfer_config_t} what they mean. Whoever knows
 * the plans, and where that rank's views lie, can make them, for itself or for another process to
 * hand over.
 *
 * <p>First stand a fingerprint and, for sources, targets, chunks and stages, how many they are and of
 * how many words; then the words of each.
 */
final class TransferWords implements Steps {
  private final Words sources = new Words();
  private final Words targets = new Words();
  private final Words chunks = new Words();
  private final Words stages = new Words();
  private int sourceCount;
  private int targetCount;
  private long chunkCount;
  private long stageCount;

  /** A view in the allocation of {@code bytes} bytes at {@code low}. */
  record Binding(
      int dtype, long address, long low, long bytes, long[] shape, long[] strides) {}

  /** A tensor that moves, and where one rank has its parts of it. */
  record Bound(TensorSpec from, Binding source, TensorSpec to, Binding target, Plan plan) {}

  private TransferWords() {}

  static long[] of(List<Bound> tensors, int rank) {
    TransferWords words = new TransferWords();
    Fingerprint fingerprint = new Fingerprint();
    for (Bound tensor : tensors) {
      fingerprint.add(tensor.from().name());
      fingerprint.add(tensor.to().name());
      fingerprint.add(tensor.plan().fingerprint());
      words.source(tensor.source());
      words.target(tensor.target());
    }
    if (!tensors.isEmpty()) {
      List<Plan> plans = tensors.stream().map(Bound::plan).toList();
      Access.SCHEDULING.of(plans.get(0)).of(plans, rank, words);
    }
    return words.flat(fingerprint.value());
  }

  private long[] flat(long fingerprint) {
    long[] header = {
      fingerprint,
      sourceCount,
      sources.size,
      targetCount,
      targets.size,
      chunkCount,
      chunks.size,
      stageCount,
      stages.size
    };
    List<Words> sections = List.of(sources, targets, chunks, stages);
    long size = header.length + sections.stream().mapToLong(section -> section.size).sum();
    LongBuffer all = LongBuffer.allocate(Words.checked(size)).put(header);
    sections.forEach(section -> all.put(section.words, 0, section.size));
    return all.array();
  }

  private void source(Binding view) {
    sourceCount++;
    sources.binding(view);
  }

  private void target(Binding view) {
    targetCount++;
    targets.binding(view);
  }

  /** A box that this rank stages for {@code readers}. */
  @Override
  public void stage(int phase, int dtype, long[] shape, long offset, List<Integer> readers) {
    stageCount++;
    stages.add(phase);
    stages.add(dtype);
    stages.add(shape.length);
    stages.add(offset);
    stages.add(readers.size());
    stages.add(shape);
    readers.forEach(stages::add);
  }

  /** A box of a target view or stage, made of boxes of source views or stages. */
  @Override
  public void write(
      int phase,
      Place target,
      long[] length,
      List<Integer> ranks,
      Place source,
      int wire,
      int op) {
    chunkCount++;
    chunks.add(phase);
    chunks.add(target.view());
    chunks.add(wire);
    chunks.add(op);
    chunks.add(length.length);
    chunks.add(ranks.size());
    chunks.add(length);
    chunks.add(target.start());
    for (int rank : ranks) {
      chunks.add(rank);
      chunks.add(source.view());
      chunks.add(source.start());
    }
  }

  /** A growing array of words. */
  private static final class Words {
    private static final int MOST = Integer.MAX_VALUE / Long.BYTES - 1;

    private long[] words = new long[64];
    private int size;

    void add(long word) {
      reserve(1);
      words[size++] = word;
    }

    void add(long[] more) {
      reserve(more.length);
      System.arraycopy(more, 0, words, size, more.length);
      size += more.length;
    }

    void binding(Binding view) {
      add(view.dtype());
      add(view.shape().length);
      add(view.address());
      add(view.low());
      add(view.bytes());
      add(view.shape());
      add(view.strides());
    }

    private void reserve(int more) {
      int needed = checked((long) size + more);
      if (needed > words.length) {
        words = Arrays.copyOf(words, (int) Math.min(MOST, Math.max(2L * words.length, needed)));
      }
    }

    static int checked(long size) {
      if (size > MOST) {
        throw new ResourceException(
            "register: this rank's part of the plan exceeds " + MOST + " words; split the batch");
      }
      return (int) size;
    }
  }
}
