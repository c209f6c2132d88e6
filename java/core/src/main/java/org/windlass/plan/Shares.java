// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import org.windlass.DType;

/**
 * Divides the sending of data among the ranks that hold it. The data is laid out as a line, which
 * is divided into equal shares, one for each sender. If a sender's share ends inside a region, the
 * region is cut. With n senders there are at most n - 1 cuts. Shares differ by at most one
 * hundredth, unless a single row of a region is larger than that.
 *
 * <p>If each sender's part of a region is large enough to be worth a read of its own, the senders
 * use {@link Slices}. Otherwise they use {@link Copies}.
 */
abstract sealed class Shares {
  /** Value that means the end of a region, in place of the number of a row. */
  static final long END = Long.MAX_VALUE;

  /** {@link Slices} have at least this many wire bytes, times the number of senders. */
  private static final long LEAST_SLICE = 4L << 10;

  /** Largest error of each end of a share, as a fraction of the share. */
  private static final double TOLERANCE = 1 / 200.0;

  /**
   * Receives what a sender sends of a {@link Demand}: rows {@code from} to {@code to}, excluded, of
   * copies {@code lowCopy} to {@code highCopy}, excluded.
   */
  interface Sink {
    void add(int share, int lowCopy, int highCopy, long from, long to);
  }

  final int senders;
  private final double total;
  private final double tolerance;
  private final int bits;

  private Shares(int senders, double total, DType wire) {
    this.senders = senders;
    this.total = total;
    this.tolerance = total / senders * TOLERANCE;
    this.bits = wire.bits();
  }

  /**
   * Divides a line, on which the data to send is laid out, into one share for each sender.
   *
   * @param total length of the line: elements times copies
   * @param elements number of elements, counting each once
   * @param cutsSmall true if {@link Copies} may cut regions
   */
  static Shares of(int senders, double total, long elements, boolean cutsSmall, DType wire) {
    long each = elements / senders;
    // Rounded down to whole bytes, which smaller elements need not fill.
    long bytes = each / 8 * wire.bits() + each % 8 * wire.bits() / 8;
    return bytes >= LEAST_SLICE * senders
        ? new Slices(senders, total, wire)
        : new Copies(senders, total, cutsSmall, wire);
  }

  /** Returns the distance on the line at which a share begins; infinity after the last one. */
  final double start(int share) {
    return share < senders ? share * total / senders : Double.POSITIVE_INFINITY;
  }

  final int at(double place) {
    int share = (int) Math.min(senders - 1, place * senders / total);
    while (share > 0 && start(share) > place) {
      share--;
    }
    while (start(share + 1) <= place) {
      share++;
    }
    return share;
  }

  /** Calls {@code sink} with what sender {@code share} sends of a demand, in the line's order. */
  abstract void of(int share, Demand demand, Sink sink);

  /** Calls {@code sink} with what all senders send of a demand to copy {@code copy}. */
  final void into(Demand demand, int copy, Sink sink) {
    double start = begin(demand, copy);
    double end = start + length(demand);
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

  /** Returns the distance from the line's start at which the data for a copy of a demand begins. */
  abstract double begin(Demand demand, int copy);

  abstract double length(Demand demand);

  /**
   * Returns the row at which the region of a demand is cut: 0 or {@link #END} for no cut.
   *
   * @param into distance on the line from the start of the region to the exact cut
   * @param width length of one element on the line
   */
  final long cut(Demand demand, double into, double width) {
    double length = demand.size * width;
    if (into <= 0) {
      return 0;
    }
    if (into >= length || length - into <= tolerance) {
      return END;
    }
    return into <= tolerance ? 0 : demand.cut(into / length, tolerance / width, bits);
  }

  /** Cuts a region into one part for each sender. Each part goes to all targets of the region. */
  private static final class Slices extends Shares {
    Slices(int senders, double total, DType wire) {
      super(senders, total, wire);
    }

    @Override
    double begin(Demand demand, int copy) {
      return demand.start;
    }

    @Override
    double length(Demand demand) {
      return (double) demand.size * demand.copies;
    }

    @Override
    void of(int share, Demand demand, Sink sink) {
      long from = cut(demand, start(share) - demand.start, demand.copies);
      long to = cut(demand, start(share + 1) - demand.start, demand.copies);
      if (from < END && to > 0) {
        sink.add(share, 0, demand.copies, from, to);
      }
    }
  }

  /**
   * Lays out the copies of a region one after the other on the line. A target gets its copy from
   * one sender or from two. Copies of small tensors are not cut: the sender in whose share a copy
   * begins sends all of it.
   */
  private static final class Copies extends Shares {
    private final boolean cuts;

    Copies(int senders, double total, boolean cuts, DType wire) {
      super(senders, total, wire);
      this.cuts = cuts;
    }

    @Override
    double begin(Demand demand, int copy) {
      return demand.start + (double) demand.size * copy;
    }

    @Override
    double length(Demand demand) {
      return demand.size;
    }

    @Override
    void of(int share, Demand demand, Sink sink) {
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
        sink.add(share, low, high, from, to);
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

    /** Returns the first copy whose {@link #cut} at {@code place} is row {@code most} or less. */
    private int first(double place, Demand demand, long most) {
      double guess = (place - demand.start) / demand.size;
      int copy = (int) Math.max(0, Math.min(demand.copies, guess));
      while (copy > 0 && cut(place, demand, copy - 1) <= most) {
        copy--;
      }
      while (copy < demand.copies && cut(place, demand, copy) > most) {
        copy++;
      }
      return copy;
    }

    /** Returns the row at which distance {@code place} on the line cuts a copy. */
    private long cut(double place, Demand demand, int copy) {
      double into = place - begin(demand, copy);
      if (!cuts && into > 0) {
        return END;
      }
      return cut(demand, into, 1);
    }
  }
}
