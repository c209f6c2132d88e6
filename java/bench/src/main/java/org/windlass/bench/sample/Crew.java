// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.Window;

/**
 * The ranks of this process that a sampler drives. A crew exchanges decisions and time stamps with
 * the samplers of other processes, whose ranks run the same workload. If there are no other
 * processes, the crew exchanges nothing.
 */
final class Crew implements AutoCloseable {
  /** Number of iterations whose time stamps a rank sends at once. */
  private static final int CHUNK = 1024;

  private final LocalGroup group;
  private final int ranks;
  private final Duration limit;
  private final List<Talk> talks = new ArrayList<>();

  /**
   * Opens the crew. The call is collective over all processes.
   *
   * @param limit how long the process of rank 0 may keep the others waiting for a decision
   */
  Crew(LocalGroup group, Duration limit) {
    this.group = group;
    this.ranks = group.communicators().get(0).size();
    this.limit = limit;
    if (!isWhole()) {
      talks.addAll(group.call(Talk::new));
    }
  }

  private static final class Talk {
    final Window window;
    final Tensor decision;
    final Tensor own;
    final Tensor all;

    Talk(Communicator comm) {
      int ranks = comm.size();
      long[] chunk = {CHUNK, 2};
      window = comm.window(64 + (1L + ranks) * 2 * CHUNK * Long.BYTES);
      decision = window.tensor(DType.I64, 1);
      own = window.tensor(DType.I64, chunk);
      all = window.tensor(DType.I64, ranks, chunk[0], chunk[1]);
    }
  }

  private boolean isWhole() {
    return group.size() == ranks;
  }

  /** Returns true if this process has rank 0. It decides for all, and gets all time stamps. */
  boolean isFirst() {
    return group.communicators().get(0).rank() == 0;
  }

  private Talk talk(Communicator own) {
    return talks.get(own.rank() - group.communicators().get(0).rank());
  }

  /** Returns the {@code value} of the process of rank 0, once all processes have called this. */
  long decided(long value) {
    if (isWhole()) {
      return value;
    }
    return group
        .call(
            comm -> {
              Tensor decision = talk(comm).decision;
              decision.copyFrom(new long[] {value});
              comm.withDeadline(limit).broadcast(decision, 0);
              long[] told = new long[1];
              decision.copyTo(told);
              return told[0];
            })
        .get(0);
  }

  /** Sends the time stamps of all ranks to the process of rank 0. The call is collective. */
  void gather(Stamps stamps) {
    if (isWhole()) {
      return;
    }
    group.run(
        comm -> {
          for (int first = 0; first < stamps.iterations(); first += CHUNK) {
            gather(comm, stamps, first, Math.min(CHUNK, stamps.iterations() - first));
          }
        });
  }

  private void gather(Communicator comm, Stamps stamps, int first, int count) {
    Talk talk = talk(comm);
    long[] own = new long[2 * CHUNK];
    for (int i = 0; i < count; i++) {
      own[2 * i] = stamps.ready(comm.rank(), first + i);
      own[2 * i + 1] = stamps.leave(comm.rank(), first + i);
    }
    talk.own.copyFrom(own);
    comm.gather(talk.own, talk.all, 0);
    if (comm.rank() == 0) {
      long[] all = new long[ranks * 2 * CHUNK];
      talk.all.copyTo(all);
      for (int rank = 0; rank < ranks; rank++) {
        for (int i = 0; i < count; i++) {
          int at = 2 * (rank * CHUNK + i);
          stamps.set(rank, first + i, all[at], all[at + 1]);
        }
      }
    }
  }

  @Override
  public void close() {
    talks.forEach(talk -> talk.window.close());
  }
}
