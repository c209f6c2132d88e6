// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.WindlassException;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;
import org.windlass.kernel.Kernel;
import org.windlass.launch.Rendezvous;
import org.windlass.testing.TestKernels;

/** What a rank whose heap is full does to its peers, in a JVM that may end so. */
@Timeout(180)
class ShortMemoryTest {
  // The peer may lack memory for the text of its failure, too, but doesn't wait for its deadline.

  @Test
  void aCommunicatorThatCannotBeWrappedIsLeft() throws Exception {
    assertThat(run("split"))
        .contains("rank 0: java.lang.OutOfMemoryError")
        .containsPattern("rank 1: (org.windlass.error.AbortedException|java.lang.OutOfMemoryError)");
  }

  @Test
  void aRankLeavesWithoutMemoryToSaySo() throws Exception {
    assertThat(run("close"))
        .containsPattern("rank 0: (java.lang.OutOfMemoryError|null)") // its peer's garbage may do
        .containsPattern(
            "rank 1: (org.windlass.error.AbortedException: rank 0 closed the communicator"
                + "|java.lang.OutOfMemoryError)");
  }

  @Test
  void theWatcherOutlivesAFullHeap() throws Exception {
    assertThat(run("watch")).contains("interrupted: org.windlass.error.AbortedException");
  }

  /** Its arguments are written to direct memory, of which there is no more. */
  @Test
  void aRankIsInNoCallAfterALaunchWithoutMemory() throws Exception {
    assertThat(run("launch"))
        .contains("launch: java.lang.OutOfMemoryError")
        .contains("barrier: null");
  }

  @Test
  void aRunLastsAsLongAsItsBodies() throws Exception {
    assertThat(run("look")).contains("run: null, over: true");
  }

  @Test
  void aRankThatCannotBeWrappedAsAllHaveMetIsLeft() throws Exception {
    assertThat(run("meet"))
        .containsPattern("turns rank 0: null\n.*turns rank 1: null\n")
        .contains("turns rank 1: java.lang.OutOfMemoryError")
        .contains("turns rank 0: org.windlass.error.AbortedException: rank 1 closed the communicator")
        .doesNotContain("DeadlineExceeded");
  }

  /** Also where they wait in a communicator that came from the group's. */
  @Test
  void thePeersOfARankThatFailedOnAFullHeapDoNotWait() throws Exception {
    assertThat(run("abort")).contains("abort: full, in time: true");
  }

  private static String run(String what) throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx32m",
                "-XX:MaxDirectMemorySize=2m",
                "-XX:+UseSerialGC",
                "-Dwindlass.root=" + System.getProperty("windlass.root"),
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
    private static final List<ByteBuffer> DIRECT = new ArrayList<>();
    private static Object[] ballast;

    private ShortMemory() {}

    public static void main(String[] arguments) throws Exception {
      CommunicatorOptions options =
          CommunicatorOptions.defaults().withDeadline(Duration.ofSeconds(30));
      try (LocalGroup group = LocalGroup.of(2, options)) {
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
        if (arguments[0].equals("launch")) {
          launch();
          return;
        }
        if (arguments[0].equals("look")) {
          look(group);
          return;
        }
        if (arguments[0].equals("abort")) {
          abort(group);
          return;
        }
        if (arguments[0].equals("meet")) {
          meet(options);
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

    private static void launch() {
      Object[] many = new Object[10_000];
      Arrays.fill(many, 1L);
      Kernel kernel = TestKernels.kernel("shift");
      try (LocalGroup alone = LocalGroup.of(1)) {
        Communicator own = alone.communicator(0);
        own.barrier();
        fillDirectMemory();
        System.out.println("launch: " + end(() -> own.launch(kernel, many)));
        System.out.println("barrier: " + end(own::barrier));
      }
    }

    /** A run in which one body has returned, and the other ends later. */
    private static void look(LocalGroup group) {
      fillDirectMemory();
      boolean[] isOver = new boolean[1];
      RankBody<InterruptedException> body =
          communicator -> {
            if (communicator.rank() == 0) {
              Thread.sleep(1_000);
              isOver[0] = true;
            }
          };
      Throwable end =
          end(
              () -> {
                try {
                  group.run(body);
                } catch (InterruptedException e) {
                  throw new AssertionError(e);
                }
              });
      System.out.println("run: " + end + ", over: " + isOver[0]);
    }

    private static void abort(LocalGroup group) throws InterruptedException {
      IllegalStateException full = new IllegalStateException("full");
      CountDownLatch isFull = new CountDownLatch(1);
      Thread release =
          new Thread(
              () -> {
                try {
                  isFull.await();
                  long startNs = System.nanoTime();
                  while (System.nanoTime() - startNs < 2_000_000_000L) {
                    fillHeap(); // what others have given back
                  }
                } catch (InterruptedException e) {
                  throw new AssertionError(e);
                } finally {
                  ballast = null;
                }
              });
      release.start();
      RankBody<RuntimeException> body =
          communicator -> {
            Communicator pair = communicator.split(0, 0);
            if (communicator.rank() == 0) {
              takeScratch();
              fillHeap();
              isFull.countDown();
              throw full;
            }
            pair.barrier();
          };
      long startNs = System.nanoTime();
      Throwable end = end(() -> group.run(body));
      long seconds = (System.nanoTime() - startNs) / 1_000_000_000;
      release.join();
      System.out.println("abort: " + end.getMessage() + ", in time: " + (seconds < 20));
    }

    /** Two ranks, of which the second has no memory once the first has met it. */
    private static void meet(CommunicatorOptions options) throws Exception {
      List<byte[]> turns = new ArrayList<>();
      meet(options, Integer.MAX_VALUE, turns);
      int last = turns.size();
      // What is full may have room again, as when the JVM's own caches go.
      for (int i = 0; i < 20 && meet(options, last, turns) == null; i++) {
        turns.clear();
      }
    }

    /**
     * @param last the turn after which the second rank has no memory
     * @param told gets what the first one has said
     * @return what the second one's part has ended with
     */
    private static Throwable meet(CommunicatorOptions options, int last, List<byte[]> told)
        throws Exception {
      CyclicBarrier turn = new CyclicBarrier(2);
      List<List<byte[]>> turns = List.of(new ArrayList<>(), new ArrayList<>());
      CompletableFuture<Communicator> first = new CompletableFuture<>();
      AtomicReference<Throwable> end = new AtomicReference<>();
      Thread peer =
          new Thread(
              () -> {
                Rendezvous late = new Turns(1, turn, turns, first, last);
                end.set(
                    end(
                        () -> {
                          try (Communicator met =
                              Communicator.meet(late, options, Duration.ofSeconds(60))) {
                            met.barrier();
                          }
                        }));
                ballast = null;
              });
      peer.start();
      Rendezvous own = new Turns(0, turn, turns, first, Integer.MAX_VALUE);
      Throwable own0;
      try (Communicator met = Communicator.meet(own, options, Duration.ofSeconds(60))) {
        first.complete(met);
        own0 = end(met::barrier);
        peer.join();
      }
      System.out.println("after " + turns.get(0).size() + " turns rank 0: " + own0);
      System.out.println("after " + turns.get(0).size() + " turns rank 1: " + end);
      told.addAll(turns.get(0));
      return end.get();
    }

    /**
     * Exchanges bytes between two threads.
     *
     * @param met what the other rank has when it has met this one
     * @param last the turn after which this one waits for that, and has no memory then
     */
    private record Turns(
        int rank,
        CyclicBarrier turn,
        List<List<byte[]>> turns,
        CompletableFuture<Communicator> met,
        int last)
        implements Rendezvous {
      @Override
      public int size() {
        return 2;
      }

      @Override
      public List<byte[]> allGather(byte[] own, Duration deadline) throws Exception {
        turns.get(rank).add(own);
        turn.await();
        int here = turns.get(rank).size() - 1;
        List<byte[]> all = List.of(turns.get(0).get(here), turns.get(1).get(here));
        if (here + 1 == last) {
          met.get(60, TimeUnit.SECONDS);
          fillHeap();
        }
        return all;
      }
    }

    /** Such that nothing is kept for the next one either. */
    private static void fillDirectMemory() {
      takeScratch();
      for (int bytes = 1 << 20; bytes > 0; bytes /= 32) { // the JVM looks for a while each time
        try {
          while (true) {
            DIRECT.add(ByteBuffer.allocateDirect(bytes));
          }
        } catch (OutOfMemoryError e) {
          // Smaller ones may find room.
        }
      }
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
      takeScratch();
      fillHeap();
      communicator.close();
    }

    /** More than are kept for the next one. */
    private static void takeScratch() {
      for (int i = 0; i < 64; i++) {
        Scratch.take();
      }
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
