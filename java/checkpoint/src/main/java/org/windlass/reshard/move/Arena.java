// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.Arrays;
import java.util.List;
import java.util.function.IntToLongFunction;
import java.util.stream.IntStream;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.Window;

/**
 * Memory that steps use one after another, so that it stays in the caches: one part where ranks
 * share a process, else one for each rank, its own of a window, which every process has in its
 * memory.
 */
final class Arena implements AutoCloseable {
  /** Of no rank. */
  static final int ANYWHERE = -1;

  private static final long ALIGNMENT = 64;

  /**
   * Memory that a step takes.
   *
   * @param rank the rank in whose part it lies, where there is one for each; or {@link #ANYWHERE}
   */
  record Piece(long bytes, int rank) {
    private long rounded() {
      return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
  }

  /**
   * A piece that was taken, aligned for any dtype.
   *
   * @param rank the rank in whose part it lies; {@link #ANYWHERE} where there is one part for all
   */
  record Taken(Tensor memory, int rank) {}

  private final Team team;
  private final long[] used;
  private long capacity;
  private List<Window> windows = List.of();
  private List<Tensor> parts;

  /** Collective, of so many bytes in all. */
  Arena(Team team, long bytes) {
    this.team = team;
    this.used = new long[team.isWhole() ? 1 : team.size()];
    make(bytes / used.length);
  }

  private void make(long bytes) {
    capacity = bytes;
    if (team.isWhole()) {
      parts = List.of(Tensor.allocate(DType.U8, bytes));
      return;
    }
    windows = team.window(bytes);
    Window window = windows.get(0);
    IntToLongFunction addresses = window::address;
    parts =
        IntStream.range(0, used.length)
            .mapToObj(
                rank -> Tensor.of(addresses.applyAsLong(rank), bytes, window, DType.U8, bytes))
            .toList();
  }

  /** Whether there is room for these, taken in this order. */
  boolean fits(List<Piece> pieces) {
    return most(pieces) <= capacity;
  }

  /** How much of the fullest part is used once these are taken. */
  private long most(List<Piece> pieces) {
    long[] after = used.clone();
    for (Piece piece : pieces) {
      after[part(after, piece)] += piece.rounded();
    }
    return Arrays.stream(after).max().orElseThrow();
  }

  /** The part of which a piece is taken: that of its rank, or the emptiest. */
  private static int part(long[] used, Piece piece) {
    if (used.length > 1 && piece.rank() != ANYWHERE) {
      return piece.rank();
    }
    int emptiest = 0;
    for (int part = 1; part < used.length; part++) {
      emptiest = used[part] < used[emptiest] ? part : emptiest;
    }
    return emptiest;
  }

  /** Collective: takes everything back, and makes room for at least these. */
  void reset(List<Piece> pieces) {
    Arrays.fill(used, 0);
    long needed = most(pieces);
    if (needed > capacity) {
      close();
      make(needed);
    }
  }

  /** Takes a piece, for which there is room. */
  Taken take(Piece piece) {
    int part = part(used, piece);
    Tensor memory = parts.get(part).narrow(0, used[part], piece.bytes());
    used[part] += piece.rounded();
    return new Taken(memory, team.isWhole() ? ANYWHERE : part);
  }

  @Override
  public void close() {
    parts.forEach(Tensor::close);
    windows.forEach(Window::close);
  }
}
