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
 * Provides memory that steps reuse one after another, so that it stays in the caches. If the ranks
 * share a process, there is one part for all. Otherwise each rank has its own part, which is its
 * part of a window that every process maps.
 */
final class Arena implements AutoCloseable {
  /** Rank of a piece that may be in any part. */
  static final int ANYWHERE = -1;

  private static final long ALIGNMENT = 64;

  /**
   * Describes memory that a step takes.
   *
   * @param rank the rank whose part holds the piece, if each rank has a part; or {@link #ANYWHERE}
   */
  record Piece(long bytes, int rank) {
    private long rounded() {
      return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
  }

  /**
   * Represents a piece that was taken, aligned for any dtype.
   *
   * @param rank the rank whose part holds the piece; {@link #ANYWHERE} if there is one part for all
   */
  record Taken(Tensor memory, int rank) {}

  private final Team team;
  private final long[] used;
  private long capacity;
  private List<Window> windows = List.of();
  private List<Tensor> parts;

  /** Creates an arena with this number of bytes in total. This is a collective operation. */
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

  /** Returns whether there is room for these pieces, taken in this order. */
  boolean fits(List<Piece> pieces) {
    return most(pieces) <= capacity;
  }

  /** Returns the used size of the fullest part after these pieces are taken. */
  private long most(List<Piece> pieces) {
    long[] after = used.clone();
    for (Piece piece : pieces) {
      after[part(after, piece)] += piece.rounded();
    }
    return Arrays.stream(after).max().orElseThrow();
  }

  /** Returns the part for a piece: the part of its rank, or the emptiest. */
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

  /** Frees all pieces, and ensures room for at least these. This is a collective operation. */
  void reset(List<Piece> pieces) {
    Arrays.fill(used, 0);
    long needed = most(pieces);
    if (needed > capacity) {
      close();
      make(needed);
    }
  }

  /** Takes a piece. The caller has checked that there is room. */
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
