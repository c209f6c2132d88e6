// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.error.AbortedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.kernel.Target;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;
import org.windlass.testing.SafetensorsBytes;
import org.windlass.testing.TestFile;

/** Resharding from Java: settings, progress, and runs that are ended early. */
@Timeout(120)
class ReshardTest {
  /** Takes several looks of the watch to move, and no room on the disk. */
  private static final long LARGE = 768L << 20;

  @TempDir Path folder;

  private Path in() {
    return folder.resolve("in.safetensors");
  }

  private Path out() {
    return folder.resolve("out");
  }

  private void writeSmall() throws IOException {
    long[] bits = LongStream.range(0, 8).map(i -> i * 0x3f81_0203L).toArray();
    TestFile.write(
        in(), List.of(new TestFile.Tensor("w", DType.F32, new int[] {4, 2}, bits)), Map.of());
  }

  private void writeLarge() throws IOException {
    String header =
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[" + LARGE / 4096 + ",1024],\"data_offsets\":[0," + LARGE
            + "]}}";
    SafetensorsBytes.zeros(in(), header, LARGE);
  }

  private Reshard reshard() {
    return Reshard.from(Layout.parse("1:R")).to("2:S0").in(in()).out(out());
  }

  private void assertNothingIsLeft() {
    try (Stream<Path> left = Files.list(folder)) {
      assertThat(left).containsExactly(in());
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aRunTellsWhatItDid() throws IOException {
    writeSmall();
    List<Long> heard = Collections.synchronizedList(new ArrayList<>());
    ReshardResult result =
        reshard()
            .verify()
            .deadline(Duration.ofSeconds(30))
            .target(Target.SIM)
            .progress(
                (moved, total) -> {
                  assertThat(total).isEqualTo(32);
                  heard.add(moved);
                })
            .run();
    assertThat(result.tensors()).isEqualTo(1);
    assertThat(result.bytesIn()).isEqualTo(32);
    assertThat(result.bytesOut()).isEqualTo(32);
    assertThat(result.verified()).isTrue();
    assertThat(result.casts()).containsExactly(new ReshardResult.Cast(DType.F32, DType.F32, 32));
    assertThat(heard).isSorted().last().isEqualTo(32L);
    TestFile.Tensor whole = TestFile.read(in()).tensors().get(0);
    for (int rank = 0; rank < 2; rank++) {
      // Numbered from 0, since the layout names no ranks.
      Path file = out().resolve("rank-0000" + rank + ".safetensors");
      long[] half = LongStream.of(whole.bits()).skip(4 * rank).limit(4).toArray();
      assertThat(TestFile.read(file).tensors())
          .containsExactly(new TestFile.Tensor("w", DType.F32, new int[] {2, 2}, half));
    }
  }

  @Test
  void aTargetLayoutKeepsItsRanksAndStoredLayoutsAreEnough() throws IOException {
    writeSmall();
    reshard().to(Layout.parse("2:S0")).run();
    assertThat(out()).isDirectoryContaining("glob:**/rank-00000.safetensors");
    Path whole = folder.resolve("whole.safetensors");
    Reshard.fromStoredLayouts()
        .in(out())
        .out(whole)
        .to("1:R")
        .wire(DType.BF16)
        .dtype(DType.F32)
        .mode(TransferMode.STAGED)
        .bucketBytes(8)
        .run();
    assertThat(TestFile.read(whole).tensors()).hasSize(1);
    Reshard.from(Layout.parse("1:R"))
        .in(in())
        .out(out())
        .to("1:R")
        .maxShardBytes(1 << 20)
        .force()
        .run();
    assertThat(out()).isDirectoryContaining("glob:**/model.safetensors.index.json");
  }

  @Test
  void wrongSettingsAreRefusedByName() throws IOException {
    writeSmall();
    assertThatThrownBy(() -> Reshard.from(Layout.parse("1:R")).out(out()).run())
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("in() is missing");
    assertThatThrownBy(() -> Reshard.from(Layout.parse("1:R")).in(in()).out(out()).run())
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("to() is missing");
    assertThatThrownBy(() -> reshard().to("2:S"))
        .isInstanceOf(InvalidArgumentException.class);
    assertThatThrownBy(() -> reshard().wire(DType.I32))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("i32");
    assertThatThrownBy(() -> reshard().mode(TransferMode.GATHER_BROADCAST))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("gather-broadcast");
    assertThatThrownBy(() -> reshard().bucketBytes(0))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("bytes is 0");
    assertThatThrownBy(() -> reshard().deadline(Duration.ZERO))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("deadline");
    assertThatThrownBy(() -> reshard().target(Target.CUDA).run())
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("cuda");
    assertNothingIsLeft();
  }

  @Test
  void aDeadlineMayBeLongerThanALongHolds() throws IOException {
    writeSmall();
    assertThat(reshard().deadline(Duration.ofSeconds(Long.MAX_VALUE)).run().tensors()).isEqualTo(1);
  }

  @Test
  void aSecondRunIsRefused() throws IOException {
    writeSmall();
    Reshard reshard = reshard();
    reshard.run();
    assertThatThrownBy(reshard::run)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("has already run");
  }

  @Test
  void ranksOfAGroupRunOneAfterTheOther() throws IOException {
    Path terms = Files.createDirectory(folder.resolve("terms"));
    for (int rank = 0; rank < 3; rank++) {
      long[] bits = {rank, 10 * rank};
      TestFile.write(
          terms.resolve("rank-0000" + rank + ".safetensors"),
          List.of(new TestFile.Tensor("w", DType.I32, new int[] {2}, bits)),
          Map.of());
    }
    Reshard sum = Reshard.from(Layout.parse("3:P")).to("1:R").in(terms).out(folder.resolve("a"));
    sum.check();
    try (LocalGroup group = LocalGroup.of(3)) {
      assertThat(sum.run(group).bytesOut()).isEqualTo(8);
      assertThat(TestFile.read(folder.resolve("a/rank-00000.safetensors")).tensors().get(0).bits())
          .containsExactly(3, 30);
      Reshard.from(Layout.parse("3:R")).to("3:S0").in(terms).out(folder.resolve("b")).run(group);
      assertThat(group.communicator(0).failure()).isEmpty();
      Reshard wrong = Reshard.from(Layout.parse("2:R")).to("1:R").in(terms).out(folder.resolve("c"));
      assertThatThrownBy(() -> wrong.run(group)).isInstanceOf(InvalidArgumentException.class);
      assertThat(group.communicator(2).failure()).isPresent();
    }
    assertThat(folder.resolve("c")).doesNotExist();
    try (LocalGroup few = LocalGroup.of(2)) {
      Reshard.from(Layout.parse("3:P")).to("1:R").in(terms).out(folder.resolve("c")).run(few);
    }
    assertThat(folder.resolve("c/rank-00000.safetensors"))
        .hasSameBinaryContentAs(folder.resolve("a/rank-00000.safetensors"));
  }

  @Test
  void paddingIsZeroInMemoryThatIsUsedAgain() throws IOException {
    long[] ones = LongStream.generate(() -> 255).limit(256).toArray();
    TestFile.write(
        in(),
        List.of(
            new TestFile.Tensor("a", DType.U8, new int[] {256}, ones),
            new TestFile.Tensor("b", DType.U8, new int[] {5}, new long[] {1, 2, 3, 4, 5})),
        Map.of());
    Path rules = folder.resolve("rules.json");
    Files.writeString(rules, "[{\"match\": \"b\", \"pad_to\": 8}]");
    try (LocalGroup one = LocalGroup.of(1)) {
      reshard().rules(rules).run(one);
    }
    assertThat(TestFile.read(out().resolve("rank-00001.safetensors")).tensors().get(1).bits())
        .containsExactly(5, 0, 0, 0);
  }

  /** Ends a large run in its middle by {@code end}, and returns what it threw. */
  private Throwable endedBy(Reshard reshard, Runnable end) {
    AtomicReference<Long> ended = new AtomicReference<>();
    try {
      reshard
          .progress(
              (moved, total) -> {
                if (moved > 0 && moved < total && ended.compareAndSet(null, moved)) {
                  end.run();
                }
              })
          .run();
    } catch (RuntimeException thrown) {
      assertThat(ended.get()).as("bytes that had moved").isNotNull();
      return thrown;
    }
    throw new AssertionError("it ran to its end");
  }

  @Test
  void aCancelledRunLeavesNothing() throws IOException {
    writeLarge();
    Reshard reshard = reshard();
    AtomicReference<Throwable> atCancel = new AtomicReference<>();
    Throwable thrown =
        endedBy(
            reshard,
            () -> {
              assertThat(work()).hasSize(1);
              reshard.cancel();
              try {
                assertNothingIsLeft();
              } catch (AssertionError left) {
                atCancel.set(left);
              }
            });
    assertThat(thrown)
        .isInstanceOf(AbortedException.class)
        .hasMessage("reshard: was cancelled");
    assertThat(atCancel.get()).isNull();
    assertNothingIsLeft();
  }

  /** What stands beside IN. */
  private List<Path> work() {
    try (Stream<Path> left = Files.list(folder)) {
      return left.filter(path -> !path.equals(in())).toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void anInterruptedRunLeavesNothingAndTheInterruptStands() throws IOException {
    writeLarge();
    Thread self = Thread.currentThread();
    Throwable thrown = endedBy(reshard(), self::interrupt);
    assertThat(Thread.interrupted()).isTrue();
    assertThat(thrown)
        .isInstanceOf(AbortedException.class)
        .hasMessage("reshard: thread \"" + self.getName() + "\" was interrupted");
    assertNothingIsLeft();
  }

  @Test
  void whatAListenerThrowsEndsTheRun() throws IOException {
    writeLarge();
    Throwable thrown =
        endedBy(
            reshard(),
            () -> {
              throw new IllegalStateException("enough");
            });
    assertThat(thrown).isInstanceOf(IllegalStateException.class).hasMessage("enough");
    assertNothingIsLeft();
  }

  @Test
  void anErrorOfAListenerEndsTheRunToo() throws IOException {
    writeLarge();
    Reshard reshard =
        reshard()
            .progress(
                (moved, total) -> {
                  if (moved < total) {
                    throw new AssertionError("enough");
                  }
                });
    assertThatThrownBy(reshard::run).isInstanceOf(AssertionError.class).hasMessage("enough");
    assertNothingIsLeft();
  }

  @Test
  void whateverFailsOnceARunIsCancelledIsItsCancelling() {
    Cancellation cancellation = new Cancellation();
    cancellation.begin();
    WindlassException failure = new InvalidArgumentException("rank-00001.safetensors: no such file");
    assertThat(cancellation.cause(failure)).isSameAs(failure);
    cancellation.cancel();
    assertThat(cancellation.cause(failure))
        .isInstanceOf(AbortedException.class)
        .hasMessage("reshard: was cancelled")
        .hasCause(failure);
  }

  @Test
  void aRunThatWasCancelledBeforeItBeganWritesNothing() throws IOException {
    writeSmall();
    Reshard reshard = reshard();
    reshard.cancel();
    assertThatThrownBy(reshard::run).isInstanceOf(AbortedException.class);
    assertNothingIsLeft();
  }

  @Test
  void aCancelAfterTheEndChangesNothing() throws IOException {
    writeSmall();
    Reshard reshard = reshard();
    reshard.run();
    reshard.cancel();
    assertThat(TestFile.read(out().resolve("rank-00001.safetensors")).tensors()).hasSize(1);
  }

  @Test
  void aRunIsCancelledWhileItIsVerified() throws Exception {
    writeLarge();
    Reshard reshard = reshard().verify();
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    Thread runner = new Thread(() -> thrown.set(caught(reshard::run)));
    runner.start();
    boolean verifying = false;
    while (runner.isAlive() && !verifying) {
      Thread.sleep(5);
      verifying = isVerifying(runner);
    }
    reshard.cancel();
    assertNothingIsLeft();
    runner.join();
    assertThat(verifying).isTrue();
    assertThat(thrown.get()).isInstanceOf(AbortedException.class);
    assertNothingIsLeft();
  }

  private static boolean isVerifying(Thread runner) {
    return Stream.of(runner.getStackTrace())
        .anyMatch(frame -> frame.getClassName().endsWith("verify.SlowCheck"));
  }

  private static Throwable caught(Runnable call) {
    try {
      call.run();
      return null;
    } catch (RuntimeException thrown) {
      return thrown;
    }
  }
}
