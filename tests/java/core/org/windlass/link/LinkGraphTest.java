// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.job.JobEnd.ALONE;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobEnd.SHAPE;
import static org.windlass.job.JobEnd.allocate;
import static org.windlass.job.JobEnd.part;
import static org.windlass.job.JobEnd.requirePart;
import static org.windlass.job.JobThreads.SOON;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.job.Job;
import org.windlass.job.JobThreads;
import org.windlass.job.Role;
import org.windlass.layout.Layout;

/** Jobs of which several send to several others, each by one transfer over all its links. */
@Timeout(120)
class LinkGraphTest {
  private static final long VERSIONS = 100;
  private static final Duration MOMENT = Duration.ofNanos(300_000);

  @RegisterExtension private final JobThreads jobs = JobThreads.byFile();

  /** What a rank of a job does with its transfer. */
  @FunctionalInterface
  private interface Body {
    void run(String job, End end) throws Exception;
  }

  /** One rank's transfer over all links of its job, with one tensor of each link's name. */
  private static final class End implements AutoCloseable {
    final Map<String, Link> links = new TreeMap<>();
    final Map<String, Tensor> own = new TreeMap<>();
    final boolean sends;
    final int rank;
    final Layout layout;
    final LinkTransfer transfer;

    End(Job job, boolean sends, TreeSet<String> names) {
      this.sends = sends;
      rank = job.communicator().rank();
      layout = job.communicator().size() == 1 ? ALONE : ROWS;
      names.forEach(
          name -> links.put(name, job.connect(name, sends ? Role.SOURCE : Role.TARGET, SOON)));
      LinkTransferBuilder builder = links.values().iterator().next().transferBuilder();
      links.forEach(
          (name, link) -> {
            Tensor tensor = allocate(layout, rank);
            own.put(name, tensor);
            builder.and(link);
            if (sends) {
              builder.add(name, SHAPE, tensor, layout);
            } else {
              builder.into(name, SHAPE, tensor, layout);
            }
          });
      transfer = builder.register(SOON);
    }

    void fill(long version) {
      own.values().forEach(tensor -> tensor.copyFrom(part(layout, rank, version)));
    }

    void requireHas(long version) {
      links.keySet().forEach(
          name -> requirePart(transfer.tensor(name), layout, rank, version));
    }

    @Override
    public void close() {
      links.values().forEach(Link::close);
    }
  }

  /**
   * Runs jobs that are connected by {@code graph}.
   *
   * @param graph links as SOURCE>NAME>TARGET
   */
  private void run(String graph, int ranks, Body body) throws Exception {
    Map<String, TreeSet<String>> sources = new TreeMap<>();
    Map<String, TreeSet<String>> targets = new TreeMap<>();
    for (String each : graph.split(" ")) {
      String[] names = each.split(">");
      sources.computeIfAbsent(names[0], any -> new TreeSet<>()).add(names[1]);
      targets.computeIfAbsent(names[2], any -> new TreeSet<>()).add(names[1]);
    }
    CountDownLatch done = new CountDownLatch(ranks * (sources.size() + targets.size()));
    List<FutureTask<Void>> tasks = new ArrayList<>();
    for (var side : List.of(sources, targets)) {
      side.forEach(
          (name, links) ->
              tasks.add(
                  jobs.start(
                      name,
                      ranks,
                      job -> {
                        try (End end = new End(job, side == sources, links)) {
                          body.run(name, end);
                          done.countDown();
                          done.await();
                        }
                      })));
    }
    for (FutureTask<Void> each : tasks) {
      JobThreads.end(each);
    }
  }

  /**
   * Every version moves over all links of every transfer, and no link ends. Targets whose names
   * begin with Q poll. They withdraw their first request for each version once it is offered.
   */
  @ParameterizedTest
  @CsvSource({
    "S>a>Q1 S>b>Q2 S>c>R, 1",
    "S>a>R S>b>R S>c>Q, 1",
    "S1>a>R S2>b>R S2>c>Q, 1",
    "S1>b>R S2>a>R S2>c>Q, 2",
    "S1>a>R S2>b>R S3>c>R S2>d>Q1 S3>e>Q2, 1",
    "S1>a>P S1>b>R S2>c>R S2>d>Q, 1",
    "S1>a>Q1 S1>b>R S2>c>R S2>d>Q2, 1",
    "S1>d>Q1 S1>c>R S2>b>R S2>a>Q2, 1",
    "S1>a>R1 S1>b>R2 S2>c>R1 S2>d>R2 S2>e>Q, 1"
  })
  void noLinkEnds(String graph, int ranks) throws Exception {
    run(
        graph,
        ranks,
        (job, end) -> {
          boolean polls = job.startsWith("Q");
          for (long version = 1; version <= VERSIONS; version++) {
            if (end.sends) {
              end.fill(version);
              end.transfer.send(version, SOON);
              continue;
            }
            if (polls && end.rank == 0) {
              Handover handover = TakenBack.part(end.transfer).handover();
              requestOne(handover);
              handover.settle(false);
            }
            OptionalLong received = OptionalLong.empty();
            while (received.isEmpty()) {
              received = end.transfer.tryReceive(polls ? MOMENT : SOON);
            }
            assertThat(received).hasValue(version);
            end.requireHas(version);
          }
          end.links.values().forEach(link -> assertThat(link.communicator().failure()).isEmpty());
        });
  }

  private static void requestOne(Handover handover) {
    handover.ask();
    while (!handover.isOffered()) {
      Thread.yield();
    }
  }

  /** A target closes its link after it was offered a version. Only that link ends. */
  @Test
  void aTargetThatClosesEndsItsOwnLinkOnly() throws Exception {
    run(
        "S1>a>R S2>b>R S2>c>Q",
        1,
        (job, end) -> {
          Duration limit = Duration.ofSeconds(2);
          switch (job) {
            case "S1" -> assertThat(end.transfer.trySend(1, limit)).isFalse();
            case "R" -> assertThat(end.transfer.tryReceive(limit)).isEmpty();
            case "S2" ->
                assertThatThrownBy(() -> end.transfer.send(1, limit))
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("on link 'c'");
            default -> {
              requestOne(TakenBack.part(end.transfer).handover());
              end.links.get("c").close();
            }
          }
          end.links.forEach(
              (name, link) ->
                  assertThat(link.communicator().failure().isPresent()).isEqualTo(name.equals("c")));
        });
  }
}
