// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.util.Arrays;

/** Where the ranks of a test live: the one table that tests of operations go over. */
public enum Launch {
  /** All in this process. */
  THREADS("threads") {
    @Override
    boolean takes(int ranks) {
      return true;
    }

    @Override
    int processes(int ranks) {
      return 1;
    }
  },
  /** Each in one of its own. */
  PROCESSES("processes") {
    @Override
    boolean takes(int ranks) {
      return ranks > 1 && ranks <= RankJvms.MOST;
    }

    @Override
    public int most() {
      return RankJvms.MOST;
    }

    @Override
    int processes(int ranks) {
      return ranks;
    }
  },
  /** As threads of two processes. */
  BOTH("threads of two processes") {
    @Override
    boolean takes(int ranks) {
      return ranks > 2 && ranks % 2 == 0;
    }

    @Override
    int processes(int ranks) {
      return 2;
    }
  },
  /** Each in one of its own, on two hosts by turns. */
  HOSTS("processes of two hosts") {
    @Override
    boolean takes(int ranks) {
      return PROCESSES.takes(ranks) && Ucx.isThere();
    }

    @Override
    public int most() {
      return PROCESSES.most();
    }

    @Override
    int processes(int ranks) {
      return ranks;
    }

    @Override
    String host(int process) {
      return process % 2 == 0 ? "even" : "odd";
    }
  };

  /** As many ranks as more than threads are made of, where a test goes over several numbers. */
  static final int FEW = 4;

  private final String text;

  Launch(String text) {
    this.text = text;
  }

  /** Whether that many ranks can live like that, otherwise than in another launch. */
  abstract boolean takes(int ranks);

  /** Each with as many of the ranks as the others. */
  abstract int processes(int ranks);

  /** What the host of that process is called; empty where nobody says. */
  String host(int process) {
    return "";
  }

  /** Ranks that it takes at most. */
  public int most() {
    return Integer.MAX_VALUE;
  }

  /** Whether a test takes all its numbers of ranks here: as threads, and in the long form. */
  boolean isWhole() {
    return this == THREADS || Boolean.getBoolean(SeedRunner.LONG);
  }

  /** Those of {@code counts} that a test takes here: few, but in the long form, of processes. */
  int[] of(int... counts) {
    int[] taken = Arrays.stream(counts).filter(this::takes).toArray();
    if (isWhole()) {
      return taken;
    }
    int least = Arrays.stream(taken).min().orElse(0);
    return Arrays.stream(taken).filter(count -> count <= Math.max(FEW, least)).toArray();
  }

  @Override
  public String toString() {
    return text;
  }
}
