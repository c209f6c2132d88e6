// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.windlass.job.JobEnd.ALONE;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobEnd.SHAPE;
import static org.windlass.job.JobEnd.allocate;
import static org.windlass.job.JobEnd.part;
import static org.windlass.job.JobEnd.requirePart;
import static org.windlass.job.JobThreads.SOON;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.function.ToIntFunction;
import java.util.stream.Stream;
import org.windlass.Tensor;
import org.windlass.job.Job;
import org.windlass.job.JobThreads;
import org.windlass.job.Role;
import org.windlass.layout.Layout;

/** Jobs that are connected by links, each with one transfer over all of its links. */
final class LinkGraph {
  private LinkGraph() {}

  /** What a rank of a job does with its transfer. */
  @FunctionalInterface
  interface Body {
    void run(String job, End end) throws Exception;
  }

  /** One rank's transfer over all links of its job, with one tensor of each link's name. */
  static final class End implements AutoCloseable {
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

    /** Returns the transfer over the first link alone. */
    LinkPart first() {
      return TakenBack.part(transfer);
    }

    boolean hasEnded(String name) {
      return Objects.requireNonNull(links.get(name)).communicator().failure().isPresent();
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
   * Runs jobs until all have ended.
   *
   * @param graph links as SOURCE>NAME>TARGET
   * @param ranks number of ranks of a job
   */
  static void run(JobThreads jobs, String graph, ToIntFunction<String> ranks, Body body)
      throws Exception {
    Map<String, TreeSet<String>> sources = new TreeMap<>();
    Map<String, TreeSet<String>> targets = new TreeMap<>();
    for (String each : graph.split(" ")) {
      String[] names = each.split(">");
      sources.computeIfAbsent(names[0], any -> new TreeSet<>()).add(names[1]);
      targets.computeIfAbsent(names[2], any -> new TreeSet<>()).add(names[1]);
    }
    int all =
        Stream.of(sources, targets).flatMap(side -> side.keySet().stream()).mapToInt(ranks).sum();
    CountDownLatch done = new CountDownLatch(all);
    List<FutureTask<Void>> tasks = new ArrayList<>();
    for (var side : List.of(sources, targets)) {
      side.forEach(
          (name, links) ->
              tasks.add(
                  jobs.start(
                      name,
                      ranks.applyAsInt(name),
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
}
