// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.request;

import java.util.Collections;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.reshard.tensor.Rule;

/**
 * Represents a target layout, whose ranks are the numbers of the files that they write.
 *
 * @param text the layout as the user wrote it
 * @param firstRank the rank that writes file 0. It is 0 if the text names ranks. Otherwise, ranks
 *     are numbered after the ranks of the source, while files are numbered from 0
 */
record Goal(String text, Layout to, int firstRank) {
  static Goal of(String text, Layout highest) {
    Layout ranks = Layout.parseTarget(text, highest);
    Layout files = Layout.parse(text);
    return new Goal(text, files, ranks.mesh().lowestRank() - files.mesh().lowestRank());
  }

  /**
   * Returns the goal for a rule's layout text {@code own}. If the text names no ranks, this goal's
   * ranks are used.
   */
  Goal of(Rule rule, String own) {
    return new Goal(own, rule.layout("to", own, to), own.indexOf('@') < 0 ? firstRank : 0);
  }

  /** Returns the numbers of the files. */
  Set<Integer> files() {
    return new TreeSet<>(to.mesh().ranks());
  }

  String listed() {
    Set<Integer> files = files();
    int least = Collections.min(files);
    int most = Collections.max(files);
    return most - least + 1 == files.size()
        ? Checkpoint.rankFile(least) + (least == most ? "" : " to " + Checkpoint.rankFile(most))
        : files.stream().map(Checkpoint::rankFile).collect(Collectors.joining(", "));
  }

  /**
   * Returns the numbers of the files that a rule's layout of {@code ranks} ranks writes if it does
   * not name ranks.
   *
   * @param defaultTo the default target layout, whose ranks such a rule uses; if empty, the file
   *     numbers start at 0
   */
  static Set<Integer> plainFiles(int ranks, Optional<Goal> defaultTo) {
    Layout plain = DeviceMesh.of(ranks).layout(Placement.replicate());
    return new TreeSet<>(
        defaultTo.map(base -> Rule.lying(plain, base.to())).orElse(plain).mesh().ranks());
  }
}
