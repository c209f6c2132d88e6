// SPDX-License-Identifier: Apache-2.0
package org.windlass.micrometer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.within;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.job.Followers;
import org.windlass.job.LinkedJob;
import org.windlass.job.Role;
import org.windlass.layout.Layout;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.report.OperationTotals;

/** Meters of communicators, beside what Flight Recorder says of the same run, and of links. */
@Timeout(120)
class WindlassMetricsTest {
  private static final int RANKS = 2;
  private static final Duration SOON = Duration.ofSeconds(40);
  private static final Tag WORLD = Tag.of("communicator", "world");

  private final MeterRegistry registry = new SimpleMeterRegistry();

  @TempDir private Path folder;

  @AfterEach
  void closeRegistry() {
    registry.close();
  }

  private double counted(String name, int rank, String operation) {
    return registry
        .get("windlass." + name)
        .tags("communicator", "world", "rank", String.valueOf(rank), "operation", operation)
        .functionCounter()
        .count();
  }

  private double gauged(String name) {
    return registry.get("windlass." + name).gauge().value();
  }

  private List<RecordedEvent> eventsOf(Runnable body) throws Exception {
    try (Recording recording = new Recording()) {
      recording.enable("windlass.Collective");
      recording.start();
      body.run();
      recording.stop();
      Path file = folder.resolve("run.jfr");
      recording.dump(file);
      return RecordingFile.readAllEvents(file).stream()
          .filter(event -> event.getEventType().getName().equals("windlass.Collective"))
          .toList();
    }
  }

  private static void exchange(Communicator comm) {
    Tensor in = Tensor.allocate(DType.F32, RANKS, 256);
    Tensor out = Tensor.allocate(DType.F32, RANKS, 256);
    for (int i = 0; i < 100; i++) { // more than are recorded one by one
      comm.allToAll(in, out);
      if (i % 10 == comm.rank()) {
        sleep(3); // so that the others wait
      }
      comm.allReduce(in, ReduceOp.SUM);
    }
    comm.broadcast(in, 1);
    comm.barrier();
    if (comm.rank() == 0) {
      catchThrowable(comm.withDeadline(Duration.ofMillis(30))::barrier);
    }
  }

  private static void sleep(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void valuesEqualThoseOfFlightRecorder() throws Exception {
    try (LocalGroup group = LocalGroup.of(RANKS)) {
      for (int rank = 0; rank < RANKS; rank++) {
        WindlassMetrics.of(group.communicator(rank), WORLD).bindTo(registry);
      }
      List<RecordedEvent> events = eventsOf(() -> group.run(WindlassMetricsTest::exchange));
      Map<String, OperationTotals> expected = new TreeMap<>();
      for (RecordedEvent event : events) {
        boolean failed = !event.getString("result").equals("Ok");
        expected.merge(
            event.getInt("rank") + " " + event.getString("operation"),
            new OperationTotals(
                event.getString("operation"), 1, failed ? 1 : 0, event.getLong("bytes"),
                event.getDuration("waitTime")),
            (a, b) ->
                new OperationTotals(
                    a.operation(), a.calls() + b.calls(), a.failures() + b.failures(),
                    a.bytes() + b.bytes(), a.waited().plus(b.waited())));
      }
      assertThat(expected.keySet())
          .containsExactly(
              "0 all-reduce", "0 all-to-all", "0 barrier", "0 broadcast",
              "1 all-reduce", "1 all-to-all", "1 barrier", "1 broadcast");
      expected.forEach(
          (key, totals) -> {
            int rank = key.charAt(0) - '0';
            String operation = totals.operation();
            assertThat(counted("calls", rank, operation)).as(key).isEqualTo(totals.calls());
            assertThat(counted("failures", rank, operation)).as(key).isEqualTo(totals.failures());
            assertThat(counted("bytes", rank, operation)).as(key).isEqualTo(totals.bytes());
            assertThat(counted("wait", rank, operation))
                .as(key)
                .isCloseTo(totals.waited().toNanos() / 1e9, within(1e-9));
          });
      assertThat(counted("calls", 0, "all-to-all")).isEqualTo(100);
      assertThat(counted("failures", 0, "barrier")).isEqualTo(1);
      assertThat(counted("calls", 1, "gather")).isZero();
      assertThat(counted("wait", 0, "all-reduce") + counted("wait", 1, "all-reduce"))
          .isGreaterThan(0.02);
    }
  }

  @Test
  void countersKeepTheirValuesAfterTheCommunicatorIsClosed() {
    LocalGroup group = LocalGroup.of(RANKS);
    try (group) {
      Communicator communicator = group.communicator(0);
      WindlassMetrics metrics =
          WindlassMetrics.of(communicator, Tag.of("communicator", "world"));
      metrics.bindTo(registry);
      group.run(Communicator::barrier);
    }
    assertThat(counted("calls", 0, "barrier")).isEqualTo(1);
  }

  @Test
  void metersOfTheSameNameAndTagsAreRefusedUntilTheFirstAreClosed() {
    try (LocalGroup first = LocalGroup.of(RANKS);
        LocalGroup second = LocalGroup.of(RANKS)) {
      first.run(Communicator::barrier);
      WindlassMetrics of = WindlassMetrics.of(first.communicator(0), WORLD);
      of.bindTo(registry);
      try (WindlassMetrics other = WindlassMetrics.of(second.communicator(0), WORLD)) {
        assertThatThrownBy(() -> other.bindTo(registry))
            .isInstanceOf(InvalidArgumentException.class)
            .hasMessageContaining("close those metrics first");
        assertThat(counted("calls", 0, "barrier")).isEqualTo(1);
        of.close();
        other.bindTo(registry);
        assertThat(counted("calls", 0, "barrier")).isZero();
      }
      assertThat(registry.getMeters()).isEmpty();
    }
  }

  @Test
  void aReceiverAndItsSourceShowHowFarBehindItIs() throws Exception {
    CyclicBarrier step = new CyclicBarrier(2);
    try (LocalGroup trainer = LocalGroup.of(1);
        LocalGroup engine = LocalGroup.of(1)) {
      CompletableFuture<Void> target =
          CompletableFuture.runAsync(() -> engine.run(comm -> receive(comm, step)));
      trainer.run(comm -> send(comm, step));
      target.get();
    }
  }

  private static void await(CyclicBarrier step) {
    try {
      step.await(40, TimeUnit.SECONDS);
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  private static final Layout WHOLE = Layout.parse("1:R");

  private void send(Communicator comm, CyclicBarrier step) {
    Tensor w = Tensor.allocate(DType.F32, 4);
    try (var job = LinkedJob.of("trainer", comm, folder);
        Followers followers =
            job.followers("policy", builder -> builder.add("w", new long[] {4}, w, WHOLE))) {
      followers.await(1, SOON);
      WindlassMetrics.of(followers).bindTo(registry);
      assertThat(gauged("followers.linked")).isEqualTo(1);
      assertThat(gauged("followers.lag")).isZero();
      followers.send(3, SOON);
      assertThat(gauged("followers.lag")).isZero();
      await(step); // the receiver looks
      await(step);
      followers.send(4, Duration.ofMillis(200));
      followers.send(7, Duration.ofMillis(200));
      assertThat(gauged("followers.lag")).isEqualTo(2);
      await(step);
      await(step);
    }
    assertThat(gauged("followers.linked")).isZero();
  }

  private void receive(Communicator comm, CyclicBarrier step) {
    Tensor w = Tensor.allocate(DType.F32, 4);
    try (var job = LinkedJob.of("engine", comm, folder);
        Link link = job.connect("policy", Role.TARGET, SOON);
        LinkTransfer transfer =
            link.transferBuilder().into("w", new long[] {4}, w, WHOLE).register(SOON)) {
      WindlassMetrics.of(transfer).bindTo(registry);
      assertThat(gauged("link.lag")).isNaN();
      transfer.receive(SOON);
      await(step);
      assertThat(gauged("link.version")).isEqualTo(3);
      assertThat(gauged("link.lag")).isZero();
      await(step);
      await(step);
      assertThat(gauged("link.newest")).isEqualTo(7);
      assertThat(gauged("link.lag")).isEqualTo(4);
      await(step);
    }
  }
}
