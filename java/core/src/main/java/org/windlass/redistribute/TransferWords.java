// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.windlass.ResourceException;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Steps;
import org.windlass.internal.Structs;

/** The words of a bound plan; windlass.h says of {@code wl_transfer_config_t} what they mean. */
final class TransferWords implements Steps {
  private final Words sources = new Words();
  private final Words targets = new Words();
  private final Words stages = new Words();
  private final Words chunks = new Words();
  private final ByteBuffer config = Structs.allocate(Structs.TransferConfig.SIZE);
  private int sourceCount;
  private int targetCount;
  private long stageCount;
  private long chunkCount;

  /** A view in the allocation of {@code bytes} bytes at {@code low}. */
  record Binding(
      int dtype, long address, long low, long bytes, long[] shape, long[] strides) {}

  void fingerprint(long value) {
    config.putLong(Structs.TransferConfig.FINGERPRINT, value);
  }

  void source(Binding view) {
    sourceCount++;
    sources.binding(view);
  }

  void target(Binding view) {
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

  /** Address of the configuration, valid as long as this object is reachable. */
  long config() {
    config.putInt(0, Structs.TransferConfig.SIZE);
    config.putInt(Structs.TransferConfig.SOURCE_BINDING_COUNT, sourceCount);
    config.putInt(Structs.TransferConfig.TARGET_BINDING_COUNT, targetCount);
    config.putLong(Structs.TransferConfig.SOURCE_BINDINGS, sources.address());
    config.putLong(Structs.TransferConfig.SOURCE_BINDING_WORDS, sources.size);
    config.putLong(Structs.TransferConfig.TARGET_BINDINGS, targets.address());
    config.putLong(Structs.TransferConfig.TARGET_BINDING_WORDS, targets.size);
    config.putLong(Structs.TransferConfig.CHUNKS, chunks.address());
    config.putLong(Structs.TransferConfig.CHUNK_WORDS, chunks.size);
    config.putLong(Structs.TransferConfig.CHUNK_COUNT, chunkCount);
    config.putLong(Structs.TransferConfig.STAGES, stages.address());
    config.putLong(Structs.TransferConfig.STAGE_WORDS, stages.size);
    config.putLong(Structs.TransferConfig.STAGE_COUNT, stageCount);
    return NativeMemory.address(config);
  }

  /** A growing array of words that ends up in native memory. */
  private static final class Words {
    private static final int MOST = Integer.MAX_VALUE / Long.BYTES - 1;

    private long[] words = new long[64];
    private int size;
    private ByteBuffer buffer;

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
      if (more > MOST - size) {
        throw new ResourceException(
            "register: this rank's part of the plan exceeds " + MOST + " words; split the batch");
      }
      if (size + more > words.length) {
        words =
            Arrays.copyOf(words, (int) Math.min(MOST, Math.max(2L * words.length, size + more)));
      }
    }

    long address() {
      buffer = Structs.allocate(Math.max(1, size) * Long.BYTES);
      buffer.asLongBuffer().put(words, 0, size);
      return NativeMemory.address(buffer);
    }
  }
}
