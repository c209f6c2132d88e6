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
 * Represents a target layout. Ranks that it names have the files of their numbers. If it names no
 * ranks, they follow the ranks of the source, and their files are numbered from 0.
 *
 * @param text the text that the user wrote
 * @param files the numbers of the files
 */
record Goal(String text, Layout to, int firstFile, Set<Integer> files) {
  static Goal of(String text, Layout highest) {
    int first = highest.mesh().highestRank() + 1;
    return of(text, Layout.parseTarget(text, highest), first);
  }

  /**
   * Returns the goal of a text in a rule. If it names no ranks, it uses the ranks of this default
   * goal.
   */
  Goal of(Rule rule, String own) {
    return of(own, rule.layout("to", own, to), firstFile);
  }

  private static Goal of(String text, Layout to, int firstFile) {
    int first = text.indexOf('@') < 0 ? firstFile : 0;
    Set<Integer> files = new TreeSet<>();
    to.mesh().ranks().forEach(rank -> files.add(rank - first));
    return new Goal(text, to, first, files);
  }

  /** Returns the list of files for a warning. */
  String listed() {
    int least = Collections.min(files);
    int most = Collections.max(files);
    return most - least + 1 == files.size()
        ? Checkpoint.rankFile(least) + (least == most ? "" : " to " + Checkpoint.rankFile(most))
        : files.stream().map(Checkpoint::rankFile).collect(Collectors.joining(", "));
  }

  /**
   * Returns the numbers of the files that a rule without ranks writes for {@code ranks} ranks.
   *
   * @param defaultTo the target layout whose ranks such rules use; without one, files count from 0
   */
  static Set<Integer> plainFiles(int ranks, Optional<Goal> defaultTo) {
    Layout plain = DeviceMesh.of(ranks).layout(Placement.replicate());
    return defaultTo
        .map(base -> Goal.of(ranks + ":R", Rule.lying(plain, base.to()), base.firstFile()).files())
        .orElseGet(() -> new TreeSet<>(plain.mesh().ranks()));
  }
}
