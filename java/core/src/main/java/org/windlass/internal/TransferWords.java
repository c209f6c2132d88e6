// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.windlass.ResourceException;

/** A bound plan as the words of {@code wl_transfer_config_t}; windlass.h says what they mean. */
public final class TransferWords {
  private final Words sources = new Words();
  private final Words targets = new Words();
  private final Words chunks = new Words();
  private final ByteBuffer config = Structs.allocate(Structs.TransferConfig.SIZE);
  private int sourceCount;
  private int targetCount;
  private long chunkCount;

  public void fingerprint(long value) {
    config.putLong(Structs.TransferConfig.FINGERPRINT, value);
  }

  public void source(int dtype, long address, long low, long bytes, long[] shape, long[] strides) {
    sourceCount++;
    sources.binding(dtype, address, low, bytes, shape, strides);
  }

  /** Its index among the targets. */
  public int target(int dtype, long address, long low, long bytes, long[] shape, long[] strides) {
    targets.binding(dtype, address, low, bytes, shape, strides);
    return targetCount++;
  }

  /**
   * A box of a target view, made of boxes of the source views {@code sourceBinding} of {@code
   * ranks}, all at {@code sourceStart}.
   */
  public void chunk(
      int targetBinding,
      int wire,
      int op,
      long[] length,
      long[] targetStart,
      int[] ranks,
      int sourceBinding,
      long[] sourceStart) {
    chunkCount++;
    chunks.add(targetBinding);
    chunks.add(wire);
    chunks.add(op);
    chunks.add(length.length);
    chunks.add(ranks.length);
    chunks.add(length);
    chunks.add(targetStart);
    for (int rank : ranks) {
      chunks.add(rank);
      chunks.add(sourceBinding);
      chunks.add(sourceStart);
    }
  }

  /** Address of the configuration, valid as long as this object is reachable. */
  public long config() {
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

    void binding(int dtype, long address, long low, long bytes, long[] shape, long[] strides) {
      add(dtype);
      add(shape.length);
      add(address);
      add(low);
      add(bytes);
      add(shape);
      add(strides);
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
