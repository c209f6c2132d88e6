// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.windlass.error.AbortedException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.Natives;
import org.windlass.internal.ProcessName;

/**
 * Starts one rank by an all-gather that the caller provides. Several ranks may live in one process,
 * each on its own thread. The first of them makes the handles of all ranks of the process, and
 * gives them out before its last step.
 */
public final class AllGatherStart {
  /** The {@code wl_comm_t*} for which each rank of this process waits, by its member. */
  private static final Map<UUID, CompletableFuture<Long>> STARTING = new ConcurrentHashMap<>();

  private final StartSteps steps;
  private final int rank;
  private final int size;
  private final Start start;
  private final Supplier<long[]> alone;

  /** Handle of this rank; cancelled if it has given up. */
  private final CompletableFuture<Long> handle = new CompletableFuture<>();

  /**
   * Prepares the start of one rank.
   *
   * @param alone makes a {@code wl_comm_t*} for each rank if all live in this process
   */
  public AllGatherStart(
      AllGather all, int rank, int size, Start.Config config, Host host, Supplier<long[]> alone,
      Duration deadline) {
    this.rank = rank;
    this.size = size;
    this.alone = alone;
    steps = new StartSteps(all, List.of(rank), size, Deadline.of(deadline));
    start = new Start(steps, size, config, host);
  }

  /**
   * Joins the other ranks.
   *
   * @return a {@code wl_comm_t*}
   * @throws WindlassException Mismatch if ranks have different versions or options, or send
   *     unexpected data. Unsupported if hosts can't reach one another, or one process has ranks of
   *     several class loaders. Also DeadlineExceeded and Resource.
   */
  public long join() {
    STARTING.put(steps.member(), handle);
    boolean isTaken = false;
    try {
      Natives.refusal().ifPresent(this::tellThatNothingLoads);
      Natives.require();
      Hosts hosts = start.arrive(List.of(rank));
      requireLoadedTogether(hosts.all());
      List<Integer> here = here(hosts);
      int leader = here.get(0);
      if (here.size() == size) {
        steps.gather(
            StartSteps.LAST,
            () -> {
              if (leader == rank) {
                give(here, alone.get());
              }
              return steps.forEachRank(new byte[0]);
            });
      } else if (leader == rank) {
        start.make(here, hosts, handles -> give(here, handles));
      } else {
        Start.steps(hosts).forEach(step -> steps.gather(step, new byte[0]));
      }
      if (!handle.isDone()) {
        String why = "rank " + leader + " of this process has started only itself";
        throw new AbortedException(why, null, "", List.of(leader));
      }
      isTaken = true;
      return handle.join();
    } finally {
      STARTING.remove(steps.member());
      // Freeing the handle notifies the peers, even if there is no memory to cancel the future.
      if (!isTaken && (handle.isDone() || !handle.cancel(false))) {
        Native.wl_comm_free(handle.join());
      }
    }
  }

  private void tellThatNothingLoads(String why) {
    try {
      steps.gather(
          "arrive",
          () -> {
            throw new UnsupportedException(why);
          });
    } catch (RuntimeException e) {
      // The caller throws the reason in any case.
    }
  }

  /** Returns the ranks of this process. */
  private List<Integer> here(Hosts hosts) {
    ProcessName process = hosts.all().get(rank).process();
    return hosts.all().stream()
        .filter(each -> each.process().equals(process))
        .filter(each -> hosts.areTogether(each.rank(), rank))
        .map(Arrival::rank)
        .toList();
  }

  private void requireLoadedTogether(List<Arrival> all) {
    Map<ProcessName, Integer> first = new HashMap<>();
    for (Arrival each : all) {
      Integer before = first.putIfAbsent(each.process(), each.rank());
      if (before != null && !steps.areLoadedTogether(before, each.rank())) {
        throw new UnsupportedException(
            "ranks " + before + " and " + each.rank() + " live in one process, in which each has"
                + " loaded windlass by a class loader of its own; have one load it for both",
            List.of(before, each.rank()));
      }
    }
  }

  /** Gives the ranks of this process their handles. Frees those of ranks that have given up. */
  private void give(List<Integer> here, long[] handles) {
    for (int i = 0; i < handles.length; i++) {
      CompletableFuture<Long> its = STARTING.get(steps.member(here.get(i)));
      if (its == null || !its.complete(handles[i])) {
        Native.wl_comm_free(handles[i]);
      }
      handles[i] = 0;
    }
  }
}
