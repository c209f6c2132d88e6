// SPDX-License-Identifier: Apache-2.0
package org.windlass.report;

import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;
import org.windlass.internal.Copies;
import org.windlass.internal.Ranges;

/**
 * Reports the state of the ranks in a job's communicators, as {@link RunningJob} sees them from
 * outside the job. {@link #toString} has a table for each communicator.
 *
 * @param communicators the job's communicators, the oldest one first; empty if the job has not
 *     begun
 * @param isOver true if all ranks on this host are closed, or their processes have ended, and the
 *     job has made no new communicator since
 */
public record JobReport(List<Group> communicators, boolean isOver) {
  public JobReport {
    communicators = Copies.list(communicators, "communicators");
  }

  /**
   * A communicator of the job.
   *
   * @param id distinguishes it from all other communicators of this host
   * @param parent the id of the communicator from which it was split or shrunk; empty if there is
   *     none
   * @param former for each of its ranks in order, that rank's number in the parent; empty without a
   *     parent
   * @param age time since it was made
   * @param report the state of its ranks
   */
  public record Group(
      String id, Optional<String> parent, List<Integer> former, Duration age, Report report) {
    public Group {
      Objects.requireNonNull(id, "id");
      Objects.requireNonNull(parent, "parent");
      former = Copies.list(former, "former");
      Objects.requireNonNull(age, "age");
      Objects.requireNonNull(report, "report");
    }

    /**
     * Returns the ranks whose processes ended before they closed the communicator. A rank on
     * another host is included once this host knows that its process has ended.
     */
    public List<Integer> lost() {
      return report.ranks().stream()
          .filter(rank -> rank.isGone() && !rank.closed())
          .map(Report.Rank::rank)
          .toList();
    }

    @Override
    public String toString() {
      int ranks = report.ranks().size();
      String ofParent = ", ranks " + Ranges.text(former, " ") + " of ";
      String origin = parent.map(id -> ofParent + id).orElse("");
      double seconds = age.getSeconds() + age.getNano() / 1e9;
      return String.format(
          Locale.ROOT, "communicator %s: %d %s, made %.1f s ago%s%n%s",
          id, ranks, ranks == 1 ? "rank" : "ranks", seconds, origin, report);
    }
  }

  @Override
  public String toString() {
    return communicators.isEmpty()
        ? "no communicator yet"
        : communicators.stream().map(Group::toString).collect(Collectors.joining("\n\n"));
  }
}
