// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.Natives;
import org.windlass.internal.ProcessName;
import org.windlass.internal.store.Waits;

/**
 * Starts one rank by an all-gather that the caller provides. Several ranks may live in one process,
 * each on its own thread. The first of these threads makes the handles of all ranks of the process.
 */
public final class AllGatherStart {
  /**
   * For each starting rank of this process, a future of its {@code wl_comm_t*}, keyed by its member
   * id.
   */
  private static final Map<UUID, CompletableFuture<Long>> STARTING = new ConcurrentHashMap<>();

  /** Marks a rank that has stopped waiting. */
  private static final CompletableFuture<Long> GONE = CompletableFuture.completedFuture(0L);

  private final StartSteps steps;
  private final int rank;
  private final int size;
  private final Start start;
  private final Supplier<long[]> alone;
  private final Deadline until;

  /** Handle of this rank. It is cancelled if the rank has given up. */
  private final CompletableFuture<Long> handle = new CompletableFuture<>();

  /**
   * Prepares the start of one rank.
   *
   * @param size number of all ranks
   * @param alone makes a {@code wl_comm_t*} for each rank if all ranks live in this process
   */
  public AllGatherStart(
      AllGather all, int rank, int size, Start.Config config, Host host, Supplier<long[]> alone,
      Duration deadline) {
    this.rank = rank;
    this.size = size;
    this.alone = alone;
    until = Deadline.of(deadline);
    steps = new StartSteps(all, List.of(rank), size, until);
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
      if (here.get(0) == rank) {
        lead(here, hosts);
      } else if (here.size() < size) {
        Start.steps(hosts).forEach(step -> steps.gather(step, new byte[0]));
      }
      long taken = awaited(here.get(0));
      isTaken = true;
      return taken;
    } finally {
      STARTING.remove(steps.member());
      // Freeing the handle notifies the peers, even if there is no memory to cancel the future.
      if (!isTaken
          && (handle.isDone() || !handle.cancel(false))
          && !handle.isCompletedExceptionally()) {
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

  /** Returns those of the ranks that live in this process. */
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
            "ranks " + before + " and " + each.rank() + " are in one process, but two class"
                + " loaders have loaded windlass for them; load it once for both",
            List.of(before, each.rank()));
      }
    }
  }

  /** Makes the handles of all ranks of this process. */
  private void lead(List<Integer> here, Hosts hosts) {
    List<CompletableFuture<Long>> waiting = new ArrayList<>();
    try {
      for (int other : here) {
        CompletableFuture<Long> its = STARTING.get(steps.member(other));
        waiting.add(its != null ? its : GONE);
      }
      long[] handles = here.size() == size ? alone.get() : start.make(here, hosts);
      for (int i = 0; i < handles.length; i++) {
        if (!waiting.get(i).complete(handles[i])) {
          Native.wl_comm_free(handles[i]); // its rank has given up
        }
      }
    } catch (RuntimeException | Error e) {
      waiting.forEach(its -> its.completeExceptionally(e));
      throw e;
    }
  }

  private long awaited(int leader) {
    RuntimeException failure;
    try {
      return handle.get(until.leftNs(), TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      Throwable cause = Objects.requireNonNull(e.getCause());
      throw new AbortedException(
          "rank " + leader + " of this process did not start: " + cause.getMessage(),
          cause,
          "",
          List.of(leader));
    } catch (TimeoutException e) {
      failure =
          new DeadlineExceededException(
              "rank " + leader + ", which starts for all ranks of this process, had not done so"
                  + " when the deadline of " + Deadline.text(until.deadline())
                  + " passed; give more time",
              List.of(leader));
    } catch (InterruptedException e) {
      failure = Waits.interrupted("the start");
    }
    if (handle.cancel(false)) {
      throw failure;
    }
    return awaited(leader); // it is complete
  }
}
