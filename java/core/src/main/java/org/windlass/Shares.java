// SPDX-License-Identifier: Apache-2.0
package org.windlass;

/**
 * How ranks that hold the same share the sending of it: all that is sent lies on one line, which
 * falls to them in equal stretches. Where a stretch ends within a region, the region is cut, at
 * most once for each sender but one; so shares differ by at most a hundredth as far as rows allow.
 *
 * <p>Where a sender's part of a region is worth a pass, it goes to all targets of the region, each
 * of which gets such a part from every sender: what targets need alike is read once. Else the
 * copies lie one after the other, and a target gets its copy from one sender, or from two. Small
 * tensors are not cut into less than that: there a copy falls to whom it begins with.
 */
final class Shares {
  /** Stands for the end of a region, as a cut. */
  static final long END = Long.MAX_VALUE;

  /** Wire bytes, for each sender, of a part that is worth a pass: the more parts, the larger. */
  private static final long LEAST_SLICE = 4L << 10;

  /** What each end of a stretch may miss, as a part of the stretch. */
  private static final double TOLERANCE = 1 / 200.0;

  /** Takes what a sender sends of a demand: some rows, to some copies. */
  interface Sink {
    void add(int lowCopy, int highCopy, long from, long to);
  }

  final int senders;
  private final double total;
  private final double tolerance;
  private final boolean slices;
  private final boolean cuts;
  private final int bits;

  /**
   * Shares of a line.
   *
   * @param total its length: elements times copies
   * @param elements what is sent, once
   * @param cutsSmall whether regions are cut where parts are small
   */
  Shares(int senders, double total, long elements, boolean cutsSmall, DType wire) {
    this.senders = senders;
    this.total = total;
    this.tolerance = total / senders * TOLERANCE;
    long each = elements / senders;
    // Rounded down to bytes, of which a share of smaller elements need not fill a whole number.
    long bytes = each / 8 * wire.bits() + each % 8 * wire.bits() / 8;
    this.slices = bytes >= LEAST_SLICE * senders;
    this.cuts = slices || cutsSmall;
    this.bits = wire.bits();
  }

  /** Where the stretch of sender {@code share} begins. */
  double start(int share) {
    return share * total / senders;
  }

  /** The sender in whose stretch {@code place} lies. */
  int at(double place) {
    int share = (int) Math.min(senders - 1, place * senders / total);
    while (share > 0 && start(share) > place) {
      share--;
    }
    while (share + 1 < senders && start(share + 1) <= place) {
      share++;
    }
    return share;
  }

  /** What sender {@code share} sends of a demand, in the order of the line. */
  void of(int share, Demand demand, Sink sink) {
    int units = slices ? 1 : demand.copies;
    int low = firstUnit(share, demand, units, END - 1);
    int high = firstUnit(share + 1, demand, units, 0);
    if (low >= high) {
      return;
    }
    long from = cut(share, demand, low);
    long to = cut(share + 1, demand, high - 1);
    if (slices) {
      sink.add(0, demand.copies, from, to);
      return;
    }
    if (low == high - 1) {
      sink.add(low, high, from, to);
      return;
    }
    if (from > 0) {
      sink.add(low, ++low, from, END);
    }
    int whole = to == END ? high : high - 1;
    if (low < whole) {
      sink.add(low, whole, 0, END);
    }
    if (whole < high) {
      sink.add(whole, high, 0, to);
    }
  }

  /** Calls {@code sink} with what each sender sends to copy {@code copy} of a demand. */
  void into(Demand demand, int copy, ShareSink sink) {
    double start = demand.start + (slices ? 0 : (double) demand.size * copy);
    double end = start + (double) demand.size * (slices ? demand.copies : 1);
    int first = at(start);
    for (int share = first; share < senders; share++) {
      if (share > first && start(share) >= end) {
        return;
      }
      int sender = share;
      of(
          share,
          demand,
          (low, high, from, to) -> {
            if (low <= copy && copy < high) {
              sink.add(sender, low, high, from, to);
            }
          });
    }
  }

  /** {@link Sink} for several senders. */
  interface ShareSink {
    void add(int share, int lowCopy, int highCopy, long from, long to);
  }

  /** The first unit in which the stretch of {@code share} begins no later than {@code most}. */
  private int firstUnit(int share, Demand demand, int units, long most) {
    double length = (double) demand.size * (slices ? demand.copies : 1);
    double guess = share >= senders ? units : (start(share) - demand.start) / length;
    int unit = (int) Math.max(0, Math.min(units, guess));
    while (unit > 0 && cut(share, demand, unit - 1) <= most) {
      unit--;
    }
    while (unit < units && cut(share, demand, unit) > most) {
      unit++;
    }
    return unit;
  }

  /** Where in unit {@code unit} of a demand the stretch of {@code share} begins. */
  private long cut(int share, Demand demand, int unit) {
    if (share >= senders) {
      return END;
    }
    double width = slices ? demand.copies : 1;
    double length = demand.size * width;
    double into = start(share) - (demand.start + length * unit);
    if (into <= 0) {
      return 0;
    }
    if (!cuts || into >= length || length - into <= tolerance) {
      return END;
    }
    return into <= tolerance ? 0 : demand.cut(into / length, tolerance / width, bits);
  }
}
