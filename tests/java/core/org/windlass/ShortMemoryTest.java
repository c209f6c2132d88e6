// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;

/** What a rank whose heap is full does to its peers, in a JVM that may end so. */
@Timeout(180)
class ShortMemoryTest {
  // The peer may lack memory for the text of its failure, too, but doesn't wait for its deadline.

  @Test
  void aCommunicatorThatCannotBeWrappedIsLeft() throws Exception {
    assertThat(run("split"))
        .contains("rank 0: java.lang.OutOfMemoryError")
        .containsPattern("rank 1: (org.windlass.AbortedException|java.lang.OutOfMemoryError)");
  }

  @Test
  void aRankLeavesWithoutMemoryToSaySo() throws Exception {
    assertThat(run("close"))
        .containsPattern("rank 0: (java.lang.OutOfMemoryError|null)") // its peer's garbage may do
        .containsPattern(
            "rank 1: (org.windlass.AbortedException: rank 0 closed the communicator"
                + "|java.lang.OutOfMemoryError)");
  }

  @Test
  void theWatcherOutlivesAFullHeap() throws Exception {
    assertThat(run("watch")).contains("interrupted: org.windlass.AbortedException");
  }

  private static String run(String what) throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx32m",
                "-XX:+UseSerialGC",
                "-Dorg.windlass.library.path=" + System.getProperty("org.windlass.library.path"),
                "-cp",
                System.getProperty("java.class.path"),
                ShortMemory.class.getName(),
                what)
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    process.waitFor();
    return output;
  }

  /** Rank 0 on the main thread, rank 1 on another one that waits for it. */
  static final class ShortMemory {
    private static Object[] ballast;

    private ShortMemory() {}

    public static void main(String[] arguments) throws Exception {
      CommunicatorOptions options =
          CommunicatorOptions.defaults().withDeadline(Duration.ofSeconds(30));
      try (LocalGroup group = Communicator.local(2, options)) {
        group.run( // so that classes are there
            communicator -> {
              try (Communicator pair = communicator.split(0, 0)) {
                pair.barrier();
              }
            });
        if (arguments[0].equals("watch")) {
          watch(group.communicator(0));
          return;
        }
        boolean splits = arguments[0].equals("split");
        Communicator own = group.communicator(0);
        Communicator other = group.communicator(1);
        Throwable[] ends = new Throwable[2];
        Thread peer =
            new Thread(() -> ends[1] = end(() -> meet(splits ? other.split(0, 0) : other)));
        peer.start();
        Thread.sleep(200);
        ends[0] = end(splits ? () -> split(own) : () -> close(own));
        ballast = null; // a peer that still waits can say so
        peer.join();
        for (int rank = 0; rank < ends.length; rank++) {
          System.out.println("rank " + rank + ": " + ends[rank]);
        }
      } catch (WindlassException e) {
        System.out.println("closed: " + e);
      }
    }

    /** Keeps the heap full for several looks of the watcher, then interrupts a call. */
    private static void watch(Communicator communicator) throws Exception {
      fillHeap();
      long end = System.nanoTime() + 400_000_000L;
      while (System.nanoTime() < end) {
        fillHeap();
      }
      ballast = null;
      String[] told = new String[1];
      Thread caller =
          new Thread(
              () -> {
                try {
                  communicator.barrier();
                } catch (WindlassException e) {
                  told[0] = e.toString();
                }
              });
      caller.start();
      Thread.sleep(100);
      caller.interrupt();
      caller.join();
      System.out.println("interrupted: " + told[0]);
    }

    /** What the body threw, kept as it is: the heap may be full. */
    private static Throwable end(Runnable body) {
      try {
        body.run();
        return null;
      } catch (Throwable e) {
        return e;
      }
    }

    private static void meet(Communicator communicator) {
      communicator.barrier();
    }

    private static void split(Communicator communicator) {
      communicator.join(
          "from split",
          (out, error) -> {
            int code =
                Native.wl_comm_split(communicator.endpoint.handle, 0, 0, 0, out, error);
            fillHeap();
            return code;
          });
    }

    private static void close(Communicator communicator) {
      for (int i = 0; i < 64; i++) {
        Scratch.take(); // more than are kept for the next one
      }
      fillHeap();
      communicator.close();
    }

    private static void fillHeap() {
      for (int size = 1 << 20; size > 0; size /= 2) {
        try {
          while (true) {
            Object[] more = new Object[size];
            more[0] = ballast;
            ballast = more;
          }
        } catch (OutOfMemoryError e) {
          // Smaller ones may find room.
        }
      }
    }
  }
}
