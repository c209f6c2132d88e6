// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * Compares Windlass, with one kind of buffers, with the best peer and the floor at one cell. All
 * times are medians in microseconds.
 *
 * @param floor the lower bound of the time; NaN if the operation moves no bytes
 */
record Verdict(
    Cell cell, Contender ours, double median, Contender best, double peer, double floor) {
  private static final double OF_PEER = 1.05;
  private static final double NEAR_FLOOR = 1.5;
  private static final double OF_LARGER = 1.15;
  private static final long SMALL_BYTES = 4 << 10;

  /** Returns a verdict for each row of Windlass whose cell a peer has measured too. */
  static List<Verdict> of(List<Row> rows) {
    return rows.stream()
        .filter(row -> Contender.OURS.contains(row.contender()) && row.note().isEmpty())
        .flatMap(row -> against(row, rows).stream())
        .toList();
  }

  private static Optional<Verdict> against(Row ours, List<Row> rows) {
    return rows.stream()
        .filter(row -> row.cell().equals(ours.cell()) && row.note().isEmpty())
        .filter(row -> !Contender.OURS.contains(row.contender()))
        .filter(row -> row.contender() != Contender.WAIT)
        .min(Comparator.comparingDouble(row -> row.times().median()))
        .map(
            best ->
                new Verdict(
                    ours.cell(),
                    ours.contender(),
                    ours.times().median(),
                    best.contender(),
                    best.times().median(),
                    ours.times().floor()));
  }

  double ofPeer() {
    return median / peer;
  }

  double ofFloor() {
    return median / floor;
  }

  /**
   * Returns true if Windlass takes at most 1.05 times the best peer's time. If the best peer takes
   * at most 1.5 times the floor, the limit is 1.15 times the larger of the peer's time and the
   * floor.
   */
  boolean holds() {
    return median <= OF_PEER * peer
        || peer <= NEAR_FLOOR * floor && median <= OF_LARGER * Math.max(peer, floor);
  }

  /** Returns true for 2 ranks and less than 4 KiB. A barrier has 0 bytes. */
  boolean isSmall() {
    return cell.ranks() == 2 && cell.bytes() < SMALL_BYTES;
  }
}
