// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The bytes that plans move between {@link Hosts} and within them. Data that several ranks of a
 * host get by one route, or read to reduce it, counts once between hosts. It has to cross once, and
 * the ranks of the host then share it. In mode {@link TransferMode#STAGED} values cross in the wire
 * dtype. In the other modes a rank reads sources in the source dtype.
 *
 * @param between bytes that have to cross from one host to another, by source, then target
 * @param within wire bytes that the ranks of a host get from any host, counting every copy, by host
 */
public record HostTraffic(List<Link> between, List<Within> within) {
  public HostTraffic {
    between = Copies.list(between, "between");
    within = Copies.list(within, "within");
  }

  /**
   * Bytes from one host to another.
   *
   * @param source number of the host that sends
   * @param target number of the host that receives
   * @param bytes number of bytes, counting each element once
   */
  public record Link(int source, int target, long bytes) {}

  /**
   * Bytes that the ranks of a host get.
   *
   * @param host number of the host
   * @param bytes number of bytes in the wire dtype, added up over the ranks
   */
  public record Within(int host, long bytes) {}

  /**
   * Returns the bytes that have to cross between hosts.
   *
   * @return the sum of {@link #between}
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
