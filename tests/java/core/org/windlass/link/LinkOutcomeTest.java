// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobThreads.SOON;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.windlass.Communicator;
import org.windlass.error.AbortedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.job.JobEnd;
import org.windlass.job.JobThreads;
import org.windlass.job.Role;
import org.windlass.report.Report;

/** What the ranks of a source get where a version fails on one of them alone. */
@Timeout(120)
class LinkOutcomeTest {
  @RegisterExtension final JobThreads jobs = JobThreads.byFile();

  /** Rank 1 says so once the move is over on all other ranks. */
  @Test
  void aVersionThatFailsOnOneSenderFailsOnAll() throws Exception {
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, Role.SOURCE, ROWS)) {
                end.send(1, SOON);
                end.tensor().copyFrom(JobEnd.part(ROWS, end.rank(), 2));
                if (end.rank() == 0) {
                  assertThatThrownBy(() -> end.transfer().trySend(2, SOON))
                      .isInstanceOf(AbortedException.class)
                      .hasMessageContaining("ranks [1] have not sent it");
                } else {
                  LinkPart part = TakenBack.part(end.transfer());
                  Deadline soon = Deadline.of(SOON);
                  Deadline moving = Tickets.take(List.of(part), 0, 2, soon).until();
                  part.transfer(1).move(0, 2, new long[1], moving.leftNs());
                  end.link().handover().moved(false, 0, moving);
                }
              }
            });
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, Role.TARGET, ROWS)) {
                assertThat(end.receive(SOON)).isEqualTo(1);
                assertThat(end.receive(SOON)).isEqualTo(2);
                assertThatThrownBy(() -> end.transfer().tryReceive(SOON))
                    .isInstanceOf(WindlassException.class);
                end.requireHas(2);
              }
            });
    JobThreads.end(source, target);
  }

  /** The receive that is in progress waits for the next one. */
  @Test
  void aVersionThatASideTakesBackIsOfferedAgain() throws Exception {
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, Role.SOURCE, ROWS)) {
                TakenBack.takeBack(end.transfer(), SOON);
                end.send(1, SOON);
                end.send(2, SOON);
              }
            });
    var target =
        jobs.start(
            "inference",
            2,
            job -> {
              try (JobEnd end = new JobEnd(job, Role.TARGET, ROWS)) {
                assertThat(end.transfer().version()).isEmpty();
                assertThat(end.receive(SOON)).isEqualTo(1);
                assertThat(end.receive(SOON)).isEqualTo(2);
              }
            });
    JobThreads.end(source, target);
  }

  /** The move of all ranks, and the end of it among the ranks of a job. */
  @Test
  void aVersionTakesTwoOperations() throws Exception {
    JobThreads.Body body =
        job -> {
          boolean isSource = job.name().equals("trainer");
          try (JobEnd end = new JobEnd(job, isSource ? Role.SOURCE : Role.TARGET, ROWS)) {
            Communicator side = end.link().handover().side().communicator();
            for (long version = 1; version <= 3; version++) {
              int moves = operations(end.link().communicator());
              int ends = operations(side);
              if (isSource) {
                end.send(version, SOON);
              } else {
                end.receive(SOON);
              }
              assertThat(operations(end.link().communicator())).isEqualTo(moves + 1);
              assertThat(operations(side)).isEqualTo(ends + 1);
            }
          }
        };
    JobThreads.end(jobs.start("trainer", 2, body), jobs.start("inference", 2, body));
  }

  /** The last one that all ranks take part in. */
  private static int operations(Communicator communicator) {
    return communicator.report().ranks().get(communicator.rank()).recent().stream()
        .mapToInt(Report.Call::sequence)
        .max()
        .orElse(0);
  }
}
