// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.memory.Lifetime;
import org.windlass.internal.memory.Memory;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.link.LinkTransferBuilder;

/**
 * When memory goes: pins, deferred releases, leak reports, garbage collection in the middle of
 * calls.
 */
@Timeout(120)
class LifetimeTest {
  /** Memory of a direct buffer whose release is seen. */
  private static final class Watched {
    final AtomicInteger released = new AtomicInteger();
    private final ByteBuffer buffer;

    Watched(int bytes) {
      buffer = ByteBuffer.allocateDirect(bytes);
    }

    Memory memory() {
      long address = org.windlass.internal.NativeMemory.address(buffer);
      return Memory.of(address, buffer.capacity(), false, null, released::incrementAndGet);
    }
  }

  private static void await(BooleanSupplier done) throws InterruptedException {
    long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
    while (!done.getAsBoolean() && System.nanoTime() < end) {
      System.gc();
      Thread.sleep(20);
    }
    assertThat(done.getAsBoolean()).isTrue();
  }

  @Test
  void theLastPinReleasesWhatHasEnded() {
    AtomicInteger released = new AtomicInteger();
    Lifetime lifetime =
        new Lifetime() {
          @Override
          protected void release() {
            released.incrementAndGet();
          }
        };
    assertThat(lifetime.pin()).isTrue();
    assertThat(lifetime.pin()).isTrue();
    lifetime.end();
    lifetime.end();
    assertThat(lifetime.pin()).isFalse();
    lifetime.unpin();
    assertThat(released).hasValue(0);
    lifetime.unpin();
    assertThat(released).hasValue(1);
  }

  @Test
  void manyThreadsReleaseOnce() throws Exception {
    for (int round = 0; round < 500; round++) {
      AtomicInteger released = new AtomicInteger();
      AtomicBoolean usedAfterRelease = new AtomicBoolean();
      Lifetime lifetime =
          new Lifetime() {
            @Override
            protected void release() {
              released.incrementAndGet();
            }
          };
      Thread[] threads = new Thread[4];
      for (int t = 0; t < threads.length; t++) {
        boolean ends = t == 0;
        threads[t] =
            new Thread(
                () -> {
                  for (int i = 0; i < 50; i++) {
                    if (lifetime.pin()) {
                      if (released.get() != 0) {
                        usedAfterRelease.set(true);
                      }
                      lifetime.unpin();
                    }
                  }
                  if (ends) {
                    lifetime.end();
                  }
                });
        threads[t].start();
      }
      for (Thread thread : threads) {
        thread.join();
      }
      assertThat(released).hasValue(1);
      assertThat(usedAfterRelease).isFalse();
    }
  }

  private static Tensor view(Memory memory, long offset, long bytes) {
    return Tensor.of(memory.address + offset, bytes, memory, DType.U8, bytes);
  }

  @Test
  void closeDuringACallDefersTheRelease() throws Exception {
    Watched watched = new Watched(64);
    Memory memory = watched.memory();
    Tensor in = view(memory, 0, 32);
    Tensor out = view(memory, 32, 32);
    try (LocalGroup group = LocalGroup.of(2)) {
      Thread rank0 = new Thread(() -> group.communicator(0).allToAll(in, out));
      rank0.start();
      Thread.sleep(50);
      memory.end();
      assertThat(watched.released).hasValue(0);
      Communicator rank1 = group.communicator(1);
      assertThatThrownBy(() -> rank1.allToAll(in, out)).isInstanceOf(ClosedException.class);
      rank1.allToAll(Tensor.allocate(DType.U8, 32), Tensor.allocate(DType.U8, 32));
      rank0.join();
      assertThat(watched.released).hasValue(1);
    }
  }

  @Test
  void aFailedCallKeepsItsPinUntilNobodyCanTouchTheMemory() throws Exception {
    Watched watched = new Watched(64);
    Memory memory = watched.memory();
    Tensor in = view(memory, 0, 32);
    Tensor out = view(memory, 32, 32);
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(Duration.ofMillis(100));
    try (LocalGroup group = LocalGroup.of(2, options)) {
      Throwable failure = catchThrowable(() -> group.communicator(0).allToAll(in, out));
      assertThat(failure).isInstanceOf(DeadlineExceededException.class);
      memory.end();
      await(() -> watched.released.get() == 1);
    }
  }

  @Test
  void aClosedWindowsTensorsAreRefused() {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          communicator -> {
            Window window = communicator.window(1 << 16);
            DistributedTensor tensor = window.tensor(DType.F32, 8);
            assertThat(tensor.window()).isSameAs(window);
            assertThat(tensor.narrow(0, 2, 2).offset()).isEqualTo(8);
            tensor.close(); // does nothing
            tensor.fill(1);
            window.close();
            window.close();
            assertThatThrownBy(() -> tensor.getDouble(0)).isInstanceOf(ClosedException.class);
            communicator.barrier();
          });
    }
  }

  @Test
  void windowTensorsAreAlignedAndCounted() {
    try (LocalGroup group = LocalGroup.of(1);
        Window window = group.communicator(0).window(1000)) {
      assertThat(window.tensor(DType.U8, 3).offset()).isZero();
      DistributedTensor second = window.tensor(DType.F64, 2);
      assertThat(second.offset()).isEqualTo(64);
      assertThat(window.used()).isEqualTo(80);
      assertThat(second.address() % 64).isZero();
      assertThat(window.tensorAt(8, DType.F64, 2).offset()).isEqualTo(8);
      assertThat(window.used()).isEqualTo(80);
    }
  }

  @Test
  void aBufferKeepsMemoryThatWasClosed() throws Exception {
    Watched watched = new Watched(64);
    Memory memory = watched.memory();
    ByteBuffer buffer = view(memory, 0, 64).asByteBuffer();
    ByteBuffer derived = buffer.slice().asReadOnlyBuffer();
    memory.end();
    buffer = null;
    for (int i = 0; i < 5; i++) {
      System.gc();
      Thread.sleep(10);
    }
    assertThat(watched.released).hasValue(0);
    assertThat(derived.get(0)).isZero();
    derived = null;
    await(() -> watched.released.get() == 1);
  }

  @Test
  void unreachableTensorsAreFreed() throws Exception {
    Watched watched = new Watched(64);
    WeakReference<Tensor> tensor =
        new WeakReference<>(view(watched.memory(), 0, 64));
    await(() -> tensor.get() == null && watched.released.get() == 1);
  }

  @Test
  void garbageCollectionDuringCallsIsHarmless() throws Exception {
    AtomicBoolean stop = new AtomicBoolean();
    Thread collector =
        new Thread(
            () -> {
              while (!stop.get()) {
                System.gc();
              }
            });
    collector.start();
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          communicator -> {
            for (int round = 0; round < 100; round++) {
              Tensor out = Tensor.allocate(DType.I32, 2, 500);
              communicator.allToAll(Tensor.allocate(DType.I32, 2, 500).fill(round), out);
              assertThat(out.getLong(1, 499)).isEqualTo(round);
            }
          });
    } finally {
      stop.set(true);
      collector.join();
    }
  }

  /** What the logger {@code org.windlass} got while {@code body} ran. */
  private static List<LogRecord> logged(Runnable body, BooleanSupplier seen) throws Exception {
    Logger logger = Logger.getLogger("org.windlass");
    List<LogRecord> records = new CopyOnWriteArrayList<>();
    Handler handler =
        new Handler() {
          @Override
          public void publish(LogRecord record) {
            records.add(record);
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        };
    boolean parents = logger.getUseParentHandlers();
    logger.setUseParentHandlers(false);
    logger.addHandler(handler);
    try {
      body.run();
      long end = System.nanoTime() + Duration.ofSeconds(20).toNanos();
      while (System.nanoTime() < end && (records.isEmpty() || !seen.getAsBoolean())) {
        System.gc();
        Thread.sleep(20);
      }
    } finally {
      logger.removeHandler(handler);
      logger.setUseParentHandlers(parents);
    }
    return records;
  }

  private static LogRecord leak(List<LogRecord> records, String what) {
    return records.stream()
        .filter(record -> record.getMessage().startsWith(what))
        .findFirst()
        .orElseThrow(() -> new AssertionError("no report of a " + what));
  }

  @Test
  void aDroppedWindowIsReportedWithAHint() throws Exception {
    try (LocalGroup group = LocalGroup.of(1)) {
      List<LogRecord> records = logged(() -> group.communicator(0).window(12345), () -> true);
      LogRecord record = leak(records, "Window of 12345 bytes of rank 0");
      assertThat(record.getMessage())
          .contains("without close()")
          .contains("-Dorg.windlass.leaks=full");
      assertThat(record.getThrown()).isNull();
    }
  }

  @Test
  void aDroppedGroupIsReportedWithItsOrigin() throws Exception {
    System.setProperty(Leaks.PROPERTY, "full");
    try {
      List<LogRecord> records =
          logged(() -> LocalGroup.of(3).run(Communicator::barrier), () -> true);
      LogRecord record = leak(records, "LocalGroup of 3 ranks");
      assertThat(record.getThrown().getStackTrace())
          .anySatisfy(frame -> assertThat(frame.getMethodName()).contains("aDroppedGroup"));
    } finally {
      System.clearProperty(Leaks.PROPERTY);
    }
  }

  @Test
  void whatWasClosedIsNotReported() throws Exception {
    AtomicReference<WeakReference<LocalGroup>> closed = new AtomicReference<>();
    List<LogRecord> records =
        logged(
            () -> {
              LocalGroup group = LocalGroup.of(2);
              group.run(communicator -> communicator.window(64).close());
              group.close();
              closed.set(new WeakReference<>(group));
              group = null;
              LocalGroup.of(1); // dropped, so that there is a report to wait for
            },
            () -> closed.get().get() == null);
    assertThat(records).noneMatch(record -> record.getMessage().startsWith("LocalGroup of 2"));
    assertThat(records).noneMatch(record -> record.getMessage().startsWith("Window"));
  }

  /** The link closes it, so that nobody else has to, and nothing says when it goes. */
  @Test
  void aTransferOfALinkThatIsDroppedIsNotReported() throws Exception {
    DeviceMesh all = DeviceMesh.of(1);
    Layout whole = new Layout(all, List.of(Placement.replicate()));
    AtomicReference<WeakReference<LinkTransfer>> dropped = new AtomicReference<>();
    AtomicInteger looks = new AtomicInteger(); // each after a collection of garbage
    try (LocalGroup group = LocalGroup.of(1);
        Link link = Link.open(group.communicator(0), "policy", all, all)) {
      List<LogRecord> records =
          logged(
              () -> {
                Tensor source = Tensor.allocate(DType.F32, 4);
                Tensor target = Tensor.allocate(DType.F32, 4);
                LinkTransferBuilder builder =
                    link.transferBuilder().add("w", new long[] {4}, source, whole);
                LinkTransfer transfer =
                    builder.into("w", new long[] {4}, target, whole).register();
                transfer.send(1);
                dropped.set(new WeakReference<>(transfer));
                LocalGroup.of(1); // dropped, so that there is a report to wait for
              },
              () -> dropped.get().get() == null && looks.incrementAndGet() > 10);
      assertThat(records).noneMatch(record -> record.getMessage().startsWith("Transfer"));
      leak(records, "LocalGroup of 1 rank");
    }
  }

  /** And neither are its communicators, which nobody but the link has made. */
  @Test
  void aLinkThatIsDroppedIsReportedOnceByItsName() throws Exception {
    AtomicReference<WeakReference<Link>> dropped = new AtomicReference<>();
    AtomicInteger looks = new AtomicInteger(); // each after a collection of garbage
    try (LocalGroup group = LocalGroup.of(2)) {
      DeviceMesh one = DeviceMesh.of(1);
      List<LogRecord> records =
          logged(
              () ->
                  group.run(
                      communicator -> {
                        Link link = Link.open(communicator, "policy", one, one.at(1));
                        if (communicator.rank() == 0) {
                          dropped.set(new WeakReference<>(link));
                        } else {
                          link.close();
                        }
                      }),
              () -> dropped.get().get() == null && looks.incrementAndGet() > 10);
      leak(records, "Link 'policy' of rank 0");
      assertThat(records).noneMatch(record -> record.getMessage().startsWith("Communicator"));
      assertThat(records).noneMatch(record -> record.getMessage().startsWith("Link 'policy' of rank 1"));
    }
  }

  @Test
  void aClosedGroupRunsNothing() {
    LocalGroup group = LocalGroup.of(2);
    group.close();
    assertThatThrownBy(() -> group.run(communicator -> {}))
        .isInstanceOf(ClosedException.class)
        .hasMessage("run: the group is closed");
  }

  /** One whose end waits for a network holds up no other's. */
  @Test
  void whatIsDroppedIsFreedWhileAnotherWaits() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    CountDownLatch waits = new CountDownLatch(1);
    AtomicBoolean isFree = new AtomicBoolean();
    Leaks.watch(
        new Object(),
        new Leaks.Resource(null) {
          @Override
          protected boolean mayWait() {
            return true;
          }

          @Override
          protected void free() {
            waits.countDown();
            try {
              end.await();
            } catch (InterruptedException e) {
              throw new AssertionError(e);
            }
          }
        });
    await(() -> waits.getCount() == 0);
    Leaks.watch(new Object(), null, () -> isFree.set(true));
    await(isFree::get);
    end.countDown();
  }

  /** A rank that nothing ends, such as a kernel whose phase loops, and one that has failed. */
  @Test
  void aRunThatWaitsForARankAfterAFailureSaysSo() throws Exception {
    AtomicBoolean stop = new AtomicBoolean();
    List<LogRecord> records;
    try (LocalGroup group = LocalGroup.of(3)) {
      Thread run =
          new Thread(
              () ->
                  assertThatThrownBy(
                          () ->
                              group.run(
                                  communicator -> {
                                    while (communicator.rank() == 1 && !stop.get()) {
                                      Thread.onSpinWait();
                                    }
                                    if (communicator.rank() == 2) {
                                      throw new IllegalStateException("disk on fire");
                                    }
                                  }))
                      .hasMessage("disk on fire"));
      records = logged(run::start, () -> true);
      stop.set(true);
      run.join();
    }
    LogRecord record = leak(records, "A run has failed, but waits for ranks whose code still runs: rank 1");
    assertThat(record.getMessage())
        .contains("Failed so far: java.lang.IllegalStateException: disk on fire")
        .doesNotContain("rank 0", "rank 2 at");
  }

  @Test
  void aFailureThatNobodyAwaitsIsReported() throws Exception {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator communicator = group.communicator(0);
      List<LogRecord> records =
          logged(
              () -> {
                communicator.runAsync(c -> c.broadcast((Tensor) null, 0));
                communicator.barrier();
              },
              () -> true);
      LogRecord record = leak(records, "An operation of rank 0 failed and nobody awaited it");
      assertThat(record.getThrown())
          .isInstanceOf(NullPointerException.class)
          .hasMessage("tensor");
    }
  }

  @Test
  void aFailureThatSomebodyLearnsOfIsNotReported() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Communicator communicator = group.communicator(0);
      AtomicReference<WeakReference<Operation<Void>>> last = new AtomicReference<>();
      List<LogRecord> records =
          logged(
              () -> {
                Operation<Void> awaited = communicator.runAsync(c -> c.broadcast((Tensor) null, 0));
                assertThatThrownBy(awaited::await).isInstanceOf(NullPointerException.class);
                communicator.runAsync(c -> c.broadcast((Tensor) null, 0)).toCompletableFuture();
                communicator.runAsync(Collectives::barrier);
                last.set(new WeakReference<>(communicator.runAsync(Collectives::barrier)));
                communicator.abort("over"); // which every later call says
                LocalGroup.of(1); // dropped, so that there is a report to wait for
              },
              () -> last.get().get() == null);
      assertThat(records).noneMatch(record -> record.getMessage().startsWith("An operation"));
    }
  }

  @Test
  void theWatcherEndsWithTheLastCommunicator() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(Communicator::barrier);
      assertThat(watchers()).isEqualTo(1);
    }
    await(() -> watchers() == 0);
  }

  @Test
  void aCallOnAClosedCommunicatorLeavesNothingBehind() throws Exception {
    Tensor in = Tensor.allocate(DType.F32, 4);
    Tensor out = Tensor.allocate(DType.F32, 4);
    LocalGroup group = LocalGroup.of(1);
    Communicator communicator = group.communicator(0);
    group.close();
    assertThatThrownBy(() -> communicator.allToAll(in, out)).isInstanceOf(ClosedException.class);
    await(() -> watchers() == 0);
  }

  private static long watchers() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("windlass-watcher"))
        .count();
  }
}
