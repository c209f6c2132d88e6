// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.side;

import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.function.IntConsumer;

/**
 * Runs collectives of small inputs. Each rank copies its input to a shared array, enters one
 * barrier, and reads the other arrays. Each rank has two such arrays, used in turn. A rank refills
 * an array only after a barrier that all readers of the array have entered.
 */
final class StagedCalls {
  private static final int STAGED = 0;

  private final int ranks;
  private final SpinBarrier barrier;
  private final byte[][][] bytes;
  private final float[][][] floats;

  /**
   * Word 0: the last broadcast that the root has staged. Word 1 + r: the last broadcast that rank r
   * has read.
   */
  private final SpinWords turns;

  StagedCalls(int ranks, boolean coreForEach, SpinBarrier barrier) {
    this.ranks = ranks;
    this.barrier = barrier;
    this.bytes = new byte[2][ranks][];
    this.floats = new float[2][ranks][];
    this.turns = new SpinWords(1 + ranks, coreForEach);
  }

  /**
   * Allocates the arrays of {@code rank} and returns its operation, whose argument is the root.
   * Every rank has to call this before the first operation.
   *
   * @param row bytes of a row; see {@link Operation}
   */
  IntConsumer open(int rank, Operation operation, ByteBuffer in, ByteBuffer out, int row) {
    for (int half = 0; half < 2; half++) {
      if (operation.sums()) {
        floats[half][rank] = new float[in.capacity() / Float.BYTES];
      } else {
        bytes[half][rank] = new byte[in.capacity()];
      }
    }
    return switch (operation) {
      case ALL_TO_ALL -> move(rank, in, out, row, rank * row);
      case ALL_GATHER -> move(rank, in, out, row, 0);
      case BROADCAST -> broadcast(rank, in);
      case REDUCE_SCATTER ->
          sum(rank, in.asFloatBuffer(), out.asFloatBuffer(), rank * (row / Float.BYTES));
      case ALL_REDUCE -> sum(rank, in.asFloatBuffer(), out.asFloatBuffer(), 0);
    };
  }

  /**
   * Returns an operation that copies one row from every rank's input to the output.
   *
   * @param from byte offset of the row in each input
   */
  private IntConsumer move(int rank, ByteBuffer in, ByteBuffer out, int row, int from) {
    int[] half = {0};
    return root -> {
      byte[][] staged = bytes[half[0] ^= 1];
      in.get(0, staged[rank], 0, in.limit());
      barrier.await(rank);
      for (int peer = 0; peer < ranks; peer++) {
        out.put(peer * row, staged[peer], from, row);
      }
    };
  }

  /** Returns an operation that adds all ranks' inputs from element {@code first} on. */
  private IntConsumer sum(int rank, FloatBuffer in, FloatBuffer out, int first) {
    float[] sums = new float[out.limit()];
    int[] half = {0};
    return root -> {
      float[][] staged = floats[half[0] ^= 1];
      in.get(0, staged[rank], 0, in.limit());
      barrier.await(rank);
      System.arraycopy(staged[0], first, sums, 0, sums.length);
      for (int peer = 1; peer < ranks; peer++) {
        float[] terms = staged[peer];
        for (int i = 0; i < sums.length; i++) {
          sums[i] += terms[first + i];
        }
      }
      out.put(0, sums, 0, sums.length);
    };
  }

  /**
   * Returns the broadcast of the root's buffer. A reader waits only for the root. A root waits for
   * readers of the array that it overwrites.
   */
  private IntConsumer broadcast(int rank, ByteBuffer buffer) {
    int[] last = {0};
    return root -> {
      int turn = ++last[0];
      byte[] staged = bytes[turn & 1][0];
      if (rank == root) {
        for (int peer = 0; peer < ranks; peer++) {
          turns.await(1 + peer, turn - 2);
        }
        buffer.get(0, staged, 0, buffer.limit());
        turns.publish(STAGED, turn);
      } else {
        turns.await(STAGED, turn);
        buffer.put(0, staged, 0, buffer.limit());
      }
      turns.publish(1 + rank, turn);
    };
  }
}
