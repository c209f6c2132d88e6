// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import java.util.BitSet;
import java.util.Optional;
import org.windlass.plan.HostTraffic;
import org.windlass.plan.Hosts;
import org.windlass.plan.LinkSpeeds;

/**
 * What was asked of hosts.
 *
 * @param hosts which ranks live together, where that was said
 * @param speeds from which a time is predicted, where they were given
 */
public record Topology(Optional<Hosts> hosts, Optional<LinkSpeeds> speeds) {
  /** Nothing was. */
  public static final Topology NONE = new Topology(Optional.empty(), Optional.empty());

  /** On how many hosts ranks are. */
  int count(BitSet ranks) {
    return (int) ranks.stream().map(hosts.orElse(Hosts.one())::hostOf).distinct().count();
  }

  /** How long what moves takes at least, where speeds were given. */
  Optional<LinkSpeeds.Prediction> predict(HostTraffic traffic) {
    return speeds.map(table -> table.predict(traffic));
  }
}
