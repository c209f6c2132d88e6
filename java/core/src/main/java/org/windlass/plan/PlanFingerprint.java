// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import org.windlass.internal.Fingerprint;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

final class PlanFingerprint {
  private PlanFingerprint() {}

  static long of(Plan plan) {
    Fingerprint fingerprint = new Fingerprint().add(Plan.VERSION);
    long[] shape = plan.shape();
    PlanOptions options = plan.options();
    addLayout(fingerprint, plan.from());
    addLayout(fingerprint, plan.to());
    fingerprint.add(shape.length);
    for (long extent : shape) {
      fingerprint.add(extent);
    }
    fingerprint
        .add(plan.dtype().toString())
        .add(plan.wire().toString())
        .add(plan.targetDtype().toString())
        .add(options.mode().toString())
        .add(options.bucketBytes())
        .add(options.turn());
    Hosts hosts = options.hosts();
    if (hosts.areSeveral()) {
      hosts.ranksPerHost().ifPresent(fingerprint::add);
      hosts.numbers().ifPresent(numbers -> add(fingerprint, numbers));
    }
    if (plan.source().isPadded() || plan.target().isPadded()) {
      plan.source().paddedShape().forEach(fingerprint::add);
      plan.target().paddedShape().forEach(fingerprint::add);
    }
    return fingerprint.value();
  }

  /**
   * Adds a list of ranks to a hash. The negated length comes first. Since no rank is negative, it
   * marks the start of a list, and two sequences of different lists have different hash inputs.
   */
  private static void add(Fingerprint fingerprint, List<Integer> numbers) {
    fingerprint.add(-numbers.size());
    numbers.forEach(fingerprint::add);
  }

  private static void addLayout(Fingerprint fingerprint, Layout layout) {
    fingerprint.add(fingerprint(layout.mesh()));
    for (Placement placement : layout.placements()) {
      fingerprint.add(placement.toString());
    }
  }

  private static long fingerprint(DeviceMesh mesh) {
    Fingerprint fingerprint = new Fingerprint().add(mesh.ndim());
    for (int m = 0; m < mesh.ndim(); m++) {
      fingerprint.add(mesh.size(m));
    }
    fingerprint.add(mesh.rankAtPlace(0));
    if (!isConsecutive(mesh)) {
      mesh.ranks().forEach(fingerprint::add);
    }
    return fingerprint.value();
  }

  private static boolean isConsecutive(DeviceMesh mesh) {
    int first = mesh.rankAtPlace(0);
    return first <= DeviceMesh.MAX_RANKS - mesh.size() && mesh.equals(mesh.at(first));
  }
}
