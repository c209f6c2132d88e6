// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import org.windlass.DType;

/**
 * The shares of ranks that hold the same in the sending of it: all that is sent lies on one line,
 * which falls to them in equal stretches. Where a stretch ends within a region, the region is cut,
 * at most once for each sender but one; so shares differ by at most a hundredth as far as rows
 * allow.
 *
 * <p>Where a sender's part of a region is worth a pass, they share {@link Slices}, else {@link
 * Copies}.
 */
abstract sealed class Shares {
  /** Stands for the end of a region, as a cut. */
  static final long END = Long.MAX_VALUE;

  /** Wire bytes, for each sender, of a part that is worth a pass: the more parts, the larger. */
  private static final long LEAST_SLICE = 4L << 10;

  /** What each end of a stretch may miss, as a part of the stretch. */
  private static final double TOLERANCE = 1 / 200.0;

  /** Takes what a sender sends of a demand: some rows, to some copies. */
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
   * Shares of a line.
   *
   * @param total its length: elements times copies
   * @param elements what is sent, once
   * @param cutsSmall whether regions are cut where parts are small
   */
  static Shares of(int senders, double total, long elements, boolean cutsSmall, DType wire) {
    long each = elements / senders;
    // Rounded down to bytes, of which a share of smaller elements need not fill a whole number.
    long bytes = each / 8 * wire.bits() + each % 8 * wire.bits() / 8;
    return bytes >= LEAST_SLICE * senders
        ? new Slices(senders, total, wire)
        : new Copies(senders, total, cutsSmall, wire);
  }

  /** Where the stretch of sender {@code share} begins; past all for the one after the last. */
  final double start(int share) {
    return share < senders ? share * total / senders : Double.POSITIVE_INFINITY;
  }

  /** The sender in whose stretch {@code place} lies. */
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

  /** Calls {@code sink} with what sender {@code share} sends of a demand, in order of the line. */
  abstract void of(int share, Demand demand, Sink sink);

  /** Calls {@code sink} with what each sender sends to copy {@code copy} of a demand. */
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

  /** Where what copy {@code copy} of a demand gets begins on the line. */
  abstract double begin(Demand demand, int copy);

  /** How long on the line that is. */
  abstract double length(Demand demand);

  /**
   * Where the region of a demand is cut.
   *
   * @param into how far past the region's begin on the line the cut is asked for
   * @param width how long one element is on the line
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

  /**
   * Each sender's part of a region goes to all targets of the region, each of which gets such a
   * part from every sender: what targets need alike is read once.
   */
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
   * The copies of a region lie one after the other, and a target gets its copy from one sender, or
   * from two. Those of small tensors are not cut: there a copy falls to whom it begins with.
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

    /** The first copy that is cut at {@code place} no later than at {@code most}. */
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

    /** Where in copy {@code copy} of a demand {@code place} lies. */
    private long cut(double place, Demand demand, int copy) {
      double into = place - begin(demand, copy);
      if (!cuts && into > 0) {
        return END;
      }
      return cut(demand, into, 1);
    }
  }
}
