// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import java.util.BitSet;
import java.util.Optional;
import org.windlass.plan.HostTraffic;
import org.windlass.plan.Hosts;
import org.windlass.plan.LinkSpeeds;

/**
 * The hosts and speeds that the user gave.
 *
 * @param hosts grouping of ranks by host, if given
 * @param speeds speeds for the prediction of a time, if given
 */
public record Topology(Optional<Hosts> hosts, Optional<LinkSpeeds> speeds) {
  /** Topology without hosts or speeds. */
  public static final Topology NONE = new Topology(Optional.empty(), Optional.empty());

  /** Returns the number of hosts on which these ranks run. */
  int count(BitSet ranks) {
    return (int) ranks.stream().map(hosts.orElse(Hosts.one())::hostOf).distinct().count();
  }

  /** Returns the predicted least time of the traffic, if speeds were given. */
  Optional<LinkSpeeds.Prediction> predict(HostTraffic traffic) {
    return speeds.map(table -> table.predict(traffic));
  }
}
