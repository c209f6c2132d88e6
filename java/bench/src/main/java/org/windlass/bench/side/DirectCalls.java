// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.function.IntConsumer;

/**
 * Runs one rank's part of collectives that move each byte once, from inputs to outputs. The ranks
 * share the work equally between two barriers. Outputs are written only after the first barrier.
 * Inputs may be rewritten only after the second barrier. Data for several outputs is read once and
 * written one block at a time.
 */
final class DirectCalls {
  private static final int LINE = 64;
  private static final int BLOCK = 32 << 10;
  private static final int CHUNK = 2 << 10;

  private final int rank;
  private final int ranks;
  private final SpinBarrier barrier;
  private final ByteBuffer[] inputs;
  private final ByteBuffer[] outputs;
  private final FloatBuffer[] terms;
  private final FloatBuffer[] sums;
  private final int row;
  private final float[] sum = new float[CHUNK];
  private final float[] term = new float[CHUNK];

  DirectCalls(
      int rank, SpinBarrier barrier, ByteBuffer[] inputs, ByteBuffer[] outputs, int row) {
    this.rank = rank;
    this.ranks = inputs.length;
    this.barrier = barrier;
    this.inputs = inputs;
    this.outputs = outputs;
    this.terms = floats(inputs);
    this.sums = floats(outputs);
    this.row = row;
  }

  private static FloatBuffer[] floats(ByteBuffer[] buffers) {
    return Arrays.stream(buffers).map(ByteBuffer::asFloatBuffer).toArray(FloatBuffer[]::new);
  }

  IntConsumer of(Operation operation) {
    IntConsumer share =
        switch (operation) {
          case ALL_TO_ALL -> root -> allToAll();
          case BROADCAST -> this::broadcast;
          case ALL_GATHER -> root -> allGather();
          case REDUCE_SCATTER -> root -> reduceScatter();
          case ALL_REDUCE -> root -> allReduce();
        };
    return root -> {
      barrier.await(rank);
      share.accept(root);
      barrier.await(rank);
    };
  }

  private void allToAll() {
    for (int step = 0; step < ranks; step++) {
      int peer = (rank + step) % ranks;
      outputs[peer].put(rank * row, inputs[rank], peer * row, row);
    }
  }

  private void broadcast(int root) {
    int end = cut(row, rank + 1);
    for (int at = cut(row, rank); at < end; at += BLOCK) {
      int length = Math.min(BLOCK, end - at);
      for (int peer = 0; peer < ranks; peer++) {
        if (peer != root) {
          outputs[peer].put(at, inputs[root], at, length);
        }
      }
    }
  }

  private void allGather() {
    for (int at = 0; at < row; at += BLOCK) {
      int length = Math.min(BLOCK, row - at);
      for (int step = 0; step < ranks; step++) {
        outputs[(rank + step) % ranks].put(rank * row + at, inputs[rank], at, length);
      }
    }
  }

  private void reduceScatter() {
    int count = row / Float.BYTES;
    for (int at = 0; at < count; at += CHUNK) {
      int length = Math.min(CHUNK, count - at);
      addUp(rank * count + at, length);
      sums[rank].put(at, sum, 0, length);
    }
  }

  private void allReduce() {
    int end = cut(row, rank + 1) / Float.BYTES;
    for (int at = cut(row, rank) / Float.BYTES; at < end; at += CHUNK) {
      int length = Math.min(CHUNK, end - at);
      addUp(at, length);
      for (FloatBuffer each : sums) {
        each.put(at, sum, 0, length);
      }
    }
  }

  private void addUp(int first, int length) {
    terms[0].get(first, sum, 0, length);
    for (int peer = 1; peer < ranks; peer++) {
      terms[peer].get(first, term, 0, length);
      for (int i = 0; i < length; i++) {
        sum[i] += term[i];
      }
    }
  }

  /**
   * Returns the byte offset at which the share of rank {@code part} starts. It is on a cache line.
   */
  private int cut(int bytes, int part) {
    long lines = (bytes + LINE - 1) / LINE;
    return (int) Math.min(bytes, lines * part / ranks * LINE);
  }
}
