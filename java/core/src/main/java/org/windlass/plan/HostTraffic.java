// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;

/**
 * The bytes that plans move between {@link Hosts} and within them. If several ranks of a host need
 * the same data from another host, it counts once between hosts. It crosses once, and the ranks of
 * the host then share it. In mode {@link TransferMode#STAGED} values cross in the wire dtype. In
 * the other modes a rank reads sources in the source dtype.
 *
 * @param between bytes that cross from one host to another, ordered by source, then target
 * @param within wire bytes that the ranks of each host receive from any host, counting every copy;
 *     ordered by host
 */
public record HostTraffic(List<Link> between, List<Within> within) {
  public HostTraffic {
    between = Copies.list(between, "between");
    within = Copies.list(within, "within");
  }

  /**
   * Bytes that cross from one host to another.
   *
   * @param source number of the host that sends
   * @param target number of the host that receives
   * @param bytes number of bytes, counting data for several ranks of the target once
   */
  public record Link(int source, int target, long bytes) {}

  /**
   * Bytes that the ranks of a host receive.
   *
   * @param host number of the host
   * @param bytes number of bytes in the wire dtype, added up over the ranks
   */
  public record Within(int host, long bytes) {}

  /**
   * Returns the bytes that cross between hosts: the sum of {@link #between}.
   *
   * @throws InvalidArgumentException if the sum exceeds 64 bits
   */
  public long crossBytes() {
    return Traffic.sum(between.stream().mapToLong(Link::bytes));
  }
}
