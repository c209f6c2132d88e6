// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import org.windlass.DType;

/**
 * Divides the sending of data among the ranks that hold the data. The data is laid out as a line,
 * which is divided into equal shares, one for each sender. If a sender's share ends inside a
 * region, the region is cut at that point. With n senders there are at most n - 1 cuts. Shares
 * differ by at most one hundredth, unless a single row of a region is larger.
 *
 * <p>Usually the copies of a region lie one after the other on the line. A target gets its copy
 * from one sender or from two. Copies of small tensors are not cut: the sender in whose share a
 * copy begins sends all of it. If each sender's part of a region is large enough for a separate
 * read, all copies of the region lie side by side instead. Each part then goes to all targets of
 * the region.
 */
final class Shares {
  /** Row number that means the end of a region. */
  static final long END = Long.MAX_VALUE;

  /**
   * Copies lie side by side if a region has at least this number of wire bytes, times the number of
   * senders.
   */
  private static final long LEAST_SLICE = 4L << 10;

  /** Largest error of each end of a share, as a fraction of the share. */
  private static final double TOLERANCE = 1 / 200.0;

  /**
   * Receives the part of a {@link Demand} that one sender sends: rows {@code from} to {@code to},
   * excluded, of copies {@code lowCopy} to {@code highCopy}, excluded.
   */
  interface Sink {
    void add(int share, int lowCopy, int highCopy, long from, long to);
  }

  final int senders;
  private final double total;
  private final double tolerance;
  private final int bits;
  private final boolean isSideBySide;
  private final boolean cuts;

  /**
   * Divides a line, on which the data to send is laid out, into one share for each sender.
   *
   * @param total length of the line: elements times copies
   * @param elements number of elements, counting each once
   * @param cutsSmall true if copies that lie one after the other may be cut
   */
  Shares(int senders, double total, long elements, boolean cutsSmall, DType wire) {
    this.senders = senders;
    this.total = total;
    this.tolerance = total / senders * TOLERANCE;
    this.bits = wire.bits();
    long each = elements / senders;
    // This rounds down to whole bytes. Elements smaller than a byte need not fill the last byte.
    long bytes = each / 8 * wire.bits() + each % 8 * wire.bits() / 8;
    this.isSideBySide = bytes >= LEAST_SLICE * senders;
    this.cuts = cutsSmall || isSideBySide;
  }

  /** Returns the distance on the line at which a share begins; infinity after the last one. */
  double start(int share) {
    return share < senders ? share * total / senders : Double.POSITIVE_INFINITY;
  }

  int at(double place) {
    int share = (int) Math.min(senders - 1, place * senders / total);
    while (share > 0 && start(share) > place) {
      share--;
    }
    while (start(share + 1) <= place) {
      share++;
    }
    return share;
  }

  /** Calls {@code sink} for each part that any sender sends of copy {@code copy} of a demand. */
  void into(Demand demand, int copy, Sink sink) {
    int block = copy / width(demand);
    double start = begin(demand, block);
    double end = start + (double) demand.size * width(demand);
    Sink ofCopy =
        (share, low, high, from, to) -> {
          if (low <= copy && copy < high) {
            sink.add(share, low, high, from, to);
          }
        };
    int share = at(start);
    do {
      of(share, demand, ofCopy);
    } while (start(++share) < end);
  }

  /**
   * Calls {@code sink} for each part of a demand that the sender with number {@code share} sends,
   * in ascending order.
   */
  void of(int share, Demand demand, Sink sink) {
    int width = width(demand);
    double start = start(share);
    double end = start(share + 1);
    int low = first(start, demand, END - 1);
    int high = first(end, demand, 0);
    if (low >= high) {
      return;
    }
    long from = cut(start, demand, low);
    long to = cut(end, demand, high - 1);
    if (low == high - 1) {
      sink.add(share, low * width, high * width, from, to);
      return;
    }
    if (from > 0) {
      sink.add(share, low, ++low, from, END);
    }
    int whole = to == END ? high : high - 1;
    if (low < whole) {
      sink.add(share, low, whole, 0, END);
    }
    if (whole < high) {
      sink.add(share, whole, high, 0, to);
    }
  }

  /** Returns the number of copies that lie side by side and form one block of the line. */
  private int width(Demand demand) {
    return isSideBySide ? Math.max(1, demand.copies) : 1;
  }

  /** Returns the distance from the line's start at which a block of a demand begins. */
  private double begin(Demand demand, int block) {
    return demand.start + (double) demand.size * width(demand) * block;
  }

  /** Returns the first block with a {@link #cut} at {@code place} of at most {@code most} rows. */
  private int first(double place, Demand demand, long most) {
    int blocks = demand.copies / width(demand);
    double guess = (place - demand.start) / ((double) demand.size * width(demand));
    int block = (int) Math.max(0, Math.min(blocks, guess));
    while (block > 0 && cut(place, demand, block - 1) <= most) {
      block--;
    }
    while (block < blocks && cut(place, demand, block) > most) {
      block++;
    }
    return block;
  }

  /**
   * Returns the row at which a block of a demand is cut: 0 or {@link #END} for no cut.
   *
   * @param place distance from the line's start to the exact cut
   */
  private long cut(double place, Demand demand, int block) {
    double into = place - begin(demand, block);
    double width = width(demand);
    double length = demand.size * width;
    if (into <= 0) {
      return 0;
    }
    if (!cuts || into >= length || length - into <= tolerance) {
      return END;
    }
    return into <= tolerance ? 0 : demand.cut(into / length, tolerance / width, bits);
  }
}
