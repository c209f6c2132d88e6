// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.cli.Cli;

/**
 * A job of three processes, of which the last is stopped, and what {@code windlass report} says of
 * it.
 */
final class RunningJobs implements AutoCloseable {
  private static final int SEQUENCE = 41;

  private final Sandbox sandbox;
  private Process job;
  private long rank0;

  RunningJobs(Sandbox sandbox) {
    this.sandbox = sandbox;
  }

  /** A rank: barriers, and then an all-reduce that the last rank doesn't come to. */
  static final class Rank {
    private Rank() {}

    public static void main(String[] arguments) throws InterruptedException {
      try (var comm = Communicator.fromEnvironment();
          var window = comm.window(1 << 20)) {
        for (int i = 0; i < SEQUENCE; i++) {
          comm.barrier();
        }
        System.out.println(comm.rank() + " " + ProcessHandle.current().pid());
        if (comm.rank() == 2) {
          TimeUnit.SECONDS.sleep(60);
        }
        comm.allReduce(window.tensor(DType.F32, 4096), ReduceOp.SUM);
      }
    }
  }

  String table() throws Exception {
    start();
    return told();
  }

  String json() throws Exception {
    start();
    return told("--json");
  }

  private String told(String... options) {
    Object[] arguments = new Object[options.length + 2];
    arguments[0] = "report";
    arguments[1] = rank0;
    System.arraycopy(options, 0, arguments, 2, options.length);
    Cli told = Cli.run(arguments);
    assertThat(told.status()).as(told.err()).isZero();
    return told.out();
  }

  private void start() throws Exception {
    if (job != null) {
      return;
    }
    job =
        sandbox
            .process(
                List.of(
                    "bash", "-c", "exec windlass run -n 3 -- java '" + Rank.class.getName() + "'"))
            .redirectErrorStream(true)
            .start();
    try (var lines = job.inputReader()) {
      long stopped = 0;
      for (int rank = 0; rank < 3; rank++) {
        String line = lines.readLine();
        assertThat(line).matches("\\[\\d] \\d \\d+");
        String[] words = line.split(" ");
        rank0 = words[1].equals("0") ? Long.parseLong(words[2]) : rank0;
        stopped = words[1].equals("2") ? Long.parseLong(words[2]) : stopped;
      }
      assertThat(new ProcessBuilder("kill", "-STOP", "" + stopped).start().waitFor()).isZero();
    }
    long start = System.nanoTime();
    while (told().split("in all-reduce", -1).length != 3 || !told().contains(" stopped ")) {
      assertThat(System.nanoTime() - start).as(told()).isLessThan(30_000_000_000L);
      Thread.sleep(10);
    }
  }

  @Override
  public void close() {
    Optional.ofNullable(job)
        .ifPresent(
            process -> {
              process.descendants().forEach(ProcessHandle::destroyForcibly);
              process.destroyForcibly();
            });
  }
}
