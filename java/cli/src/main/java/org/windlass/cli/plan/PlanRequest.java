// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import org.windlass.plan.HostTraffic;
import org.windlass.plan.Hosts;
import org.windlass.plan.LinkSpeeds;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;
import org.windlass.plan.Totals;
import org.windlass.plan.Traffic;

/**
 * Options for the plans to show, and the user's settings for hosts and links.
 *
 * @param hosts grouping of ranks by host, if given
 * @param speeds speeds of links, to predict times, if given
 * @param rank the only rank that is planned; empty for all
 */
public record PlanRequest(
    PlanOptions options,
    Optional<Hosts> hosts,
    Optional<LinkSpeeds> speeds,
    Optional<Integer> rank) {
  int count(BitSet ranks) {
    return (int) ranks.stream().map(hosts.orElse(Hosts.one())::hostOf).distinct().count();
  }

  Optional<LinkSpeeds.Prediction> predict(HostTraffic traffic) {
    return speeds.map(table -> table.predict(traffic));
  }

  Totals totals(List<Plan> plans) {
    return rank.map(one -> Totals.of(plans, one)).orElseGet(() -> Totals.of(plans));
  }

  Traffic traffic(List<Plan> plans) {
    return rank.map(one -> Traffic.ofPlans(plans, one)).orElseGet(() -> Traffic.ofPlans(plans));
  }

  long stagingBytes(List<Plan> plans) {
    return rank.map(one -> Plan.stagingBytes(plans, one))
        .orElseGet(() -> Plan.stagingBytes(plans));
  }
}
