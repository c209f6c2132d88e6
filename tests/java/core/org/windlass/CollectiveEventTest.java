// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/** Operations as events of JDK Flight Recorder. */
@Timeout(60)
class CollectiveEventTest {
  private static final String NAME = "windlass.Collective";

  @TempDir private Path folder;

  @FunctionalInterface
  private interface Body {
    void run() throws Exception;
  }

  /** The events of {@code body}, by rank, then by sequence. */
  private List<RecordedEvent> record(boolean enabled, Body body) throws Exception {
    try (Recording recording = new Recording()) {
      if (enabled) {
        recording.enable(NAME);
      }
      recording.start();
      body.run();
      recording.stop();
      return events(recording);
    }
  }

  private List<RecordedEvent> events(Recording recording) throws IOException {
    Path file = Files.createTempFile(folder, "recording", ".jfr");
    recording.dump(file);
    return RecordingFile.readAllEvents(file).stream()
        .filter(event -> event.getEventType().getName().equals(NAME))
        .sorted(
            (a, b) ->
                a.getInt("rank") != b.getInt("rank")
                    ? a.getInt("rank") - b.getInt("rank")
                    : Long.compare(a.getLong("sequence"), b.getLong("sequence")))
        .toList();
  }

  @Test
  void everyOperationOfEveryRankMakesOne() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Body body =
          () ->
              group.run(
                  communicator -> {
                    Tensor in = Tensor.allocate(DType.F32, 2, 256);
                    Tensor out = Tensor.allocate(DType.F32, 2, 256);
                    communicator.barrier();
                    communicator.allToAll(in, out, Algorithm.PULL);
                    communicator.allReduce(in, ReduceOp.SUM);
                    try (Window window = communicator.window(64)) {
                      communicator.broadcast(window.tensor(DType.I64, 8), 1);
                    }
                    Layout from = Layout.parse("2:S0");
                    Layout to = Layout.parse("2@0:S1");
                    Tensor rows = Tensor.allocate(DType.F32, 2, 4);
                    Tensor columns = Tensor.allocate(DType.F32, 4, 2);
                    try (Transfer transfer =
                        TransferBuilder.of(communicator)
                            .add(
                                TensorSpec.of("t", DType.F32, from, 4, 4),
                                rows,
                                TensorSpec.of("t", DType.F32, to, 4, 4),
                                columns)
                            .register()) {
                      transfer.run();
                    }
                  });
      List<RecordedEvent> events = record(true, body);
      assertThat(events).hasSize(16);
      for (int rank = 0; rank < 2; rank++) {
        List<RecordedEvent> own = events.subList(8 * rank, 8 * rank + 8);
        assertThat(own)
            .extracting(event -> event.getString("operation"))
            .containsExactly(
                "barrier",
                "all-to-all",
                "all-reduce",
                "window creation",
                "broadcast",
                "register", // which compares transfers
                "register",
                "transfer");
        assertThat(own)
            .extracting(event -> event.getString("algorithm"))
            .containsExactly("", "pull", "two-phase", "", "staged", "", "", "");
        assertThat(own)
            .extracting(event -> event.getLong("bytes"))
            .containsExactly(0L, 1024L, 2048L, 0L, 64L, 8L, 0L, 32L);
        List<Long> sequences = own.stream().map(event -> event.getLong("sequence")).toList();
        assertThat(sequences).startsWith(1L, 2L, 3L, 4L, 5L).isSorted();
        // A registration takes several, of which its event has the last.
        assertThat(sequences.get(7)).isEqualTo(sequences.get(6) + 1);
        for (RecordedEvent event : own) {
          assertThat(event.getInt("rank")).isEqualTo(rank);
          assertThat(event.getInt("ranks")).isEqualTo(2);
          assertThat(event.getString("result")).isEqualTo("Ok");
          assertThat(event.getDuration("waitTime")).isLessThanOrEqualTo(event.getDuration());
        }
      }
    }
  }

  @Test
  void theSlowestPeerAndTheWaitForItAreNamed() throws Exception {
    try (LocalGroup group = LocalGroup.of(3)) {
      List<RecordedEvent> events =
          record(
              true,
              () ->
                  group.run(
                      communicator -> {
                        if (communicator.rank() == 1) {
                          awaitOthers(communicator);
                          Thread.sleep(200);
                        }
                        communicator.barrier();
                      }));
      assertThat(events).hasSize(3);
      assertThat(events).allMatch(event -> event.getInt("slowestPeer") == 1);
      for (int rank : new int[] {0, 2}) {
        assertThat(events.get(rank).getDuration("waitTime")).isGreaterThan(Duration.ofMillis(190));
        assertThat(events.get(rank).getDuration()).isGreaterThan(Duration.ofMillis(190));
      }
      assertThat(events.get(1).getDuration("waitTime"))
          .isLessThan(events.get(0).getDuration("waitTime"));
    }
  }

  /** Until all other ranks wait for this one. */
  private static void awaitOthers(Communicator communicator) throws InterruptedException {
    long start = System.nanoTime();
    while (communicator.report().ranks().stream()
        .anyMatch(
            rank ->
                rank.rank() != communicator.rank()
                    && !rank.waitsFor().contains(communicator.rank()))) {
      assertThat(System.nanoTime() - start).isLessThan(30_000_000_000L);
      Thread.sleep(5);
    }
  }

  @Test
  void aFailureIsAnEventAndARefusalIsNone() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      Communicator first = group.communicator(0);
      group.run(Communicator::barrier);
      List<RecordedEvent> events =
          record(
              true,
              () -> {
                Tensor closed = Tensor.allocate(DType.F32, 4);
                closed.close();
                catchThrowable(() -> first.broadcast(closed, 0));
                catchThrowable(first.withDeadline(Duration.ofMillis(30))::barrier);
                catchThrowable(first::barrier); // dead by now: takes part in nothing
              });
      assertThat(events).singleElement();
      RecordedEvent event = events.get(0);
      assertThat(event.getString("result")).isEqualTo("DeadlineExceeded");
      assertThat(event.getLong("sequence")).isEqualTo(2);
      assertThat(event.getInt("slowestPeer")).isZero();
    }
  }

  @Test
  void aRecordingThatDoesNotEnableItGetsNone() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      assertThat(record(false, () -> group.run(Communicator::barrier))).isEmpty();
    }
  }
}
