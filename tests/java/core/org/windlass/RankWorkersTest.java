// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;
import org.windlass.internal.store.Log;

/** The threads of a group's ranks, which live as long as the group, and where they run. */
@Timeout(60)
class RankWorkersTest {
  private static final Duration SOON = Duration.ofSeconds(20);

  @Test
  void everyRunHasTheSameThreads() {
    try (LocalGroup group = LocalGroup.of(3)) {
      List<Thread> first = group.call(communicator -> Thread.currentThread());
      assertThat(first)
          .extracting(Thread::getName)
          .containsExactly("windlass-rank-0", "windlass-rank-1", "windlass-rank-2");
      assertThat(first).allMatch(Thread::isDaemon);
      for (int i = 0; i < 20; i++) {
        assertThat(group.call(communicator -> Thread.currentThread())).isEqualTo(first);
      }
    }
  }

  @Test
  void theyEndWithTheGroup() throws InterruptedException {
    List<Thread> threads;
    try (LocalGroup group = LocalGroup.of(2)) {
      threads = group.call(communicator -> Thread.currentThread());
      assertThat(threads).allMatch(Thread::isAlive);
    }
    for (Thread thread : threads) {
      thread.join(SOON.toMillis());
      assertThat(thread.isAlive()).isFalse();
    }
  }

  @Test
  void theyEndWithAGroupThatNobodyCloses() throws InterruptedException {
    List<Thread> threads = ofDroppedGroup();
    long startNs = System.nanoTime();
    while (threads.stream().anyMatch(Thread::isAlive)
        && System.nanoTime() - startNs < SOON.toNanos()) {
      System.gc();
      Thread.sleep(10);
    }
    assertThat(threads).noneMatch(Thread::isAlive);
  }

  private static List<Thread> ofDroppedGroup() {
    return LocalGroup.of(2).call(communicator -> Thread.currentThread());
  }

  @Test
  void aBodyThatThrowsLeavesItsThreadToTheNext() {
    try (LocalGroup group = LocalGroup.of(1)) {
      Thread first = group.call(communicator -> Thread.currentThread()).get(0);
      assertThatThrownBy(
              () ->
                  group.run(
                      communicator -> {
                        throw new IllegalStateException("mine");
                      }))
          .hasMessage("mine");
      assertThat(group.call(communicator -> Thread.currentThread()).get(0)).isSameAs(first);
    }
  }

  /** As where the heap is full as it records a body's failure. */
  @Test
  void aThreadOutlivesWhateverABodyThrows() throws InterruptedException {
    RankWorker worker = new RankWorker(0, -1, false);
    Thread[] threads = new Thread[2];
    worker.begin(
        () -> {
          threads[0] = Thread.currentThread();
          throw new OutOfMemoryError("in a test");
        });
    assertThat(worker.await(SOON.toMillis())).isTrue();
    worker.begin(() -> threads[1] = Thread.currentThread());
    assertThat(worker.await(SOON.toMillis())).isTrue();
    assertThat(threads[1]).isNotNull().isSameAs(threads[0]);
    worker.end();
  }

  /** A close() may come after a run has looked whether the group is closed. */
  @Test
  void aRunThatAClosePassesFailsAndWaitsForNobody() throws InterruptedException {
    LocalGroup group = LocalGroup.of(2);
    List<RankWorker> workers = List.of(new RankWorker(0, -1, false), new RankWorker(1, -1, false));
    RankFunction<Thread, RuntimeException> function = communicator -> Thread.currentThread();
    List<Thread> threads = new RankThreads<>(group.communicators(), workers, function).run();
    workers.forEach(RankWorker::end);
    group.close();
    for (Thread thread : threads) {
      thread.join(SOON.toMillis());
    }
    RankThreads<Thread, RuntimeException> late =
        new RankThreads<>(group.communicators(), workers, function);
    assertTimeoutPreemptively(
        SOON,
        () ->
            assertThatThrownBy(late::run)
                .isInstanceOf(ClosedException.class)
                .hasMessage("run: the group is closed"));
  }

  /** As where one of several threads has ended: those that run end too. */
  @Test
  void aRankThatCannotBeginEndsTheOthers() {
    try (LocalGroup group = LocalGroup.of(2)) {
      List<RankWorker> workers =
          List.of(new RankWorker(0, -1, false), new RankWorker(1, -1, false));
      workers.get(1).end();
      RankFunction<Void, RuntimeException> function =
          communicator -> {
            communicator.barrier();
            return null;
          };
      RankThreads<Void, RuntimeException> run =
          new RankThreads<>(group.communicators(), workers, function);
      assertTimeoutPreemptively(
          SOON, () -> assertThatThrownBy(run::run).isInstanceOf(ClosedException.class));
      workers.forEach(RankWorker::end);
    }
  }

  @Test
  void aThreadThatHasEndedTakesNoBody() throws InterruptedException {
    RankWorker worker = new RankWorker(0, -1, false);
    worker.begin(() -> {});
    assertThat(worker.await(SOON.toMillis())).isTrue();
    worker.end();
    worker.thread().join(SOON.toMillis());
    assertThatThrownBy(() -> worker.begin(() -> {})).isInstanceOf(ClosedException.class);
    assertThat(worker.isBusy()).isFalse();
  }

  /** A run that begins as the group is closed finds threads that have ended. */
  @Test
  @Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void aRunThatBeginsAsTheGroupIsClosedEnds() throws InterruptedException {
    for (int i = 0; i < 500; i++) {
      LocalGroup group = LocalGroup.of(2);
      group.run(communicator -> {});
      Thread closer = new Thread(group::close);
      closer.start();
      assertThatThrownBy(
              () -> {
                while (true) {
                  group.run(communicator -> {});
                }
              })
          .isInstanceOf(ClosedException.class)
          .hasMessage("run: the group is closed");
      closer.join();
    }
  }

  @Test
  void theFirstBodyFindsItTooWhateverItsCallerHas() throws Exception {
    int[] seen = new int[1];
    Thread caller =
        new Thread(
            () -> {
              try (LocalGroup group = LocalGroup.of(1)) {
                group.run(communicator -> seen[0] = Thread.currentThread().getPriority());
              }
            });
    caller.setPriority(Thread.MAX_PRIORITY);
    caller.start();
    caller.join();
    assertThat(seen[0]).isEqualTo(Thread.NORM_PRIORITY);
  }

  @Test
  void aBodyFindsTheThreadsUsualNameAndPriority() {
    try (LocalGroup group = LocalGroup.of(1)) {
      group.run(
          communicator -> {
            Thread.currentThread().setName("mine");
            Thread.currentThread().setPriority(Thread.MIN_PRIORITY);
            Thread.currentThread().setUncaughtExceptionHandler((thread, e) -> {});
          });
      Thread thread = group.call(communicator -> Thread.currentThread()).get(0);
      assertThat(thread.getName()).isEqualTo("windlass-rank-0");
      assertThat(thread.getPriority()).isEqualTo(Thread.NORM_PRIORITY);
      assertThat(thread.getUncaughtExceptionHandler()).isSameAs(thread.getThreadGroup());
    }
  }

  @Test
  void anInterruptEndsWithTheBodyThatItWasMeantFor() {
    try (LocalGroup group = LocalGroup.of(1)) {
      group.run(communicator -> Thread.currentThread().interrupt());
      assertThat(group.call(communicator -> Thread.interrupted())).containsExactly(false);
    }
  }

  @Test
  void aBodyHasTheContextLoaderOfItsCaller() throws IOException {
    Thread caller = Thread.currentThread();
    ClassLoader usual = caller.getContextClassLoader();
    try (LocalGroup group = LocalGroup.of(2);
        URLClassLoader own = new URLClassLoader(new URL[0], usual)) {
      assertThat(loaders(group)).containsOnly(usual);
      caller.setContextClassLoader(own);
      assertThat(loaders(group)).containsOnly(own);
    } finally {
      caller.setContextClassLoader(usual);
    }
  }

  private static List<ClassLoader> loaders(LocalGroup group) {
    return group.call(communicator -> Thread.currentThread().getContextClassLoader());
  }

  /** A group that idles keeps nothing of the body that it ran. */
  @Test
  void aBodyIsCollectedOnceItIsOver() throws InterruptedException {
    try (LocalGroup group = LocalGroup.of(2)) {
      WeakReference<Object> body = run(group);
      long startNs = System.nanoTime();
      while (body.get() != null && System.nanoTime() - startNs < SOON.toNanos()) {
        System.gc();
        Thread.sleep(10);
      }
      assertThat(body.get()).isNull();
    }
  }

  private static WeakReference<Object> run(LocalGroup group) {
    byte[] held = new byte[1 << 10];
    RankBody<RuntimeException> body = communicator -> assertThat(held).hasSize(1 << 10);
    group.run(body);
    return new WeakReference<>(body);
  }

  @Test
  void pinnedThreadsHaveACoreEach() {
    int cores = Native.wl_allowed_cores();
    CommunicatorOptions options = CommunicatorOptions.defaults().withPinnedThreads(true);
    String before = mask();
    try (LocalGroup group = LocalGroup.of(cores, options)) {
      List<String> masks = group.call(communicator -> mask());
      assertThat(masks).doesNotHaveDuplicates().allMatch(mask -> mask.matches("\\d+"));
      assertThat(group.call(communicator -> mask())).isEqualTo(masks);
      assertThat(mask()).isEqualTo(before);
    }
  }

  @Test
  void threadsAreNotPinnedWhereCoresAreFew() {
    int cores = Native.wl_allowed_cores();
    CommunicatorOptions options = CommunicatorOptions.defaults().withPinnedThreads(true);
    for (CommunicatorOptions each : List.of(options, options.withCores(cores + 1))) {
      try (Log log = new Log();
          LocalGroup group = LocalGroup.of(cores + 1, each)) {
        assertThat(group.call(communicator -> mask())).containsOnly(mask());
        assertThat(log.of("threads of ranks are not pinned"))
            .singleElement()
            .asString()
            .contains("this host has " + (cores + 1) + " ranks, and they may use " + cores);
      }
    }
  }

  @Test
  void threadsKeepTheirMasksByDefault() {
    try (LocalGroup group = LocalGroup.of(Native.wl_allowed_cores())) {
      assertThat(group.call(communicator -> mask())).containsOnly(mask());
    }
  }

  @Test
  void theSettingPinsAndIsChecked() {
    assumeTrue(Native.wl_allowed_cores() >= 2, "two cores tell a pinned thread from another");
    try (LocalGroup group = LocalGroup.of(2)) {
      List<Communicator> ranks = group.communicators();
      CommunicatorOptions options = CommunicatorOptions.defaults();
      assertThat(RankCores.pins(options, null)).isFalse();
      assertThat(RankCores.pins(options, "0")).isFalse();
      assertThat(RankCores.pins(options, "")).isFalse();
      assertThat(RankCores.pins(options, "1")).isTrue();
      assertThat(RankCores.pins(options.withPinnedThreads(true), "0")).isTrue();
      assertThatThrownBy(() -> RankCores.workers(ranks, options, "yes"))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessage(
              "WINDLASS_PINNED_THREADS is \"yes\"; give 1, which pins the threads of ranks, or 0");
    }
  }

  /** The calling thread's, as the kernel lists it. */
  private static String mask() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/thread-self/status"))) {
      return lines
          .filter(line -> line.startsWith("Cpus_allowed_list:"))
          .map(line -> line.replaceAll(".*:\\s*", ""))
          .findFirst()
          .orElseThrow();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }
}
