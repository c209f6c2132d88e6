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
 * Represents a target layout and the numbers of the files that its ranks write. If the text names
 * ranks, they are the file numbers. Otherwise the ranks are numbered after those of the source, and
 * the files from 0.
 *
 * @param text the layout as the user wrote it
 * @param firstFile the number to subtract from a rank to get its file number
 * @param files the file numbers
 */
record Goal(String text, Layout to, int firstFile, Set<Integer> files) {
  static Goal of(String text, Layout highest) {
    int first = highest.mesh().highestRank() + 1;
    return of(text, Layout.parseTarget(text, highest), first);
  }

  /**
   * Returns the goal for a rule's layout text {@code own}. If the text names no ranks, this goal's
   * ranks are used.
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

  String listed() {
    int least = Collections.min(files);
    int most = Collections.max(files);
    return most - least + 1 == files.size()
        ? Checkpoint.rankFile(least) + (least == most ? "" : " to " + Checkpoint.rankFile(most))
        : files.stream().map(Checkpoint::rankFile).collect(Collectors.joining(", "));
  }

  /**
   * Returns the file numbers of a rule's layout for {@code ranks} ranks that it does not name.
   *
   * @param defaultTo the default target layout, whose ranks such a rule uses; if empty, the file
   *     numbers start at 0
   */
  static Set<Integer> plainFiles(int ranks, Optional<Goal> defaultTo) {
    Layout plain = DeviceMesh.of(ranks).layout(Placement.replicate());
    return defaultTo
        .map(base -> Goal.of(ranks + ":R", Rule.lying(plain, base.to()), base.firstFile()).files())
        .orElseGet(() -> new TreeSet<>(plain.mesh().ranks()));
  }
}
