// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The bytes of plans by the {@link Hosts} of their {@link PlanOptions}. What several ranks of a
 * host get by one route, or read to reduce it, counts once on its way there: it has to cross once,
 * and is shared inside. In mode {@link TransferMode#STAGED} values cross in the wire dtype; in the
 * others what a rank reads of sources does so in theirs.
 *
 * @param between bytes that have to cross from one host to another, by source, then target
 * @param within wire bytes that ranks of a host get, from wherever, all their copies, by host
 */
public record HostTraffic(List<Link> between, List<Within> within) {
  /** Checks the components. */
  public HostTraffic {
    between = Copies.list(between, "between");
    within = Copies.list(within, "within");
  }

  /**
   * Bytes from one host to another.
   *
   * @param source the number of the host that sends
   * @param target the number of the host that gets
   * @param bytes each element once
   */
  public record Link(int source, int target, long bytes) {}

  /**
   * Bytes that the ranks of a host get.
   *
   * @param host its number
   * @param bytes in the wire dtype, for each rank
   */
  public record Within(int host, long bytes) {}

  /**
   * Bytes that have to cross between hosts.
   *
   * @throws InvalidArgumentException if the sum exceeds 64 bits
   */
  public long crossBytes() {
    long sum = 0;
    try {
      for (Link link : between) {
        sum = Math.addExact(sum, link.bytes);
      }
    } catch (ArithmeticException e) {
      throw Traffic.overflow(e);
    }
    return sum;
  }
}
