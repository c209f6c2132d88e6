// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.PeerLostException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.VerificationFailedException;
import org.windlass.kernel.Target;

@Timeout(60)
class ExamplesTest {
  static Stream<Arguments> cases() {
    return Examples.all().stream()
        .flatMap(
            example ->
                IntStream.of(1, 2, 3, 4, 8).mapToObj(ranks -> Arguments.of(example.name(), ranks)));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void checksItsOwnResult(String name, int ranks) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    try (var group = LocalGroup.of(ranks)) {
      Examples.find(name).orElseThrow().body().run(group, ranks, out);
    }
    String printed = bytes.toString(StandardCharsets.UTF_8);
    assertThat(printed).startsWith(name + ":").contains("golden").hasLineCount(1);
  }

  /**
   * Beside a thread that takes a core, and in the long form one for each core; one follower is killed
   * in between.
   */
  @Test
  @Timeout(240)
  void jobsStayInStepBesideBusyThreads() throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    AtomicBoolean isOver = new AtomicBoolean();
    boolean isLong = Boolean.getBoolean("windlass.long");
    for (int i = 0; i < (isLong ? Runtime.getRuntime().availableProcessors() : 1); i++) {
      Thread busy = new Thread(() -> spinUntil(isOver));
      busy.setDaemon(true);
      busy.start();
    }
    try {
      Examples.find("weight-sync").orElseThrow().jobs().orElseThrow().run(out, unfinished -> {});
    } finally {
      isOver.set(true);
    }
    String printed = bytes.toString(StandardCharsets.UTF_8);
    assertThat(printed)
        .contains("kill -9 of inference-b")
        .containsPattern("inference-b: lost")
        .containsPattern("inference-a +turns to version 5 after [0-9]+ answers by 4")
        .contains("weight-sync: 5 versions from 2 trainer processes to 2 inference jobs");
  }

  @Test
  @Timeout(240)
  void eachStepOfTheTorchTrainerIsAsTorchCastsIt() {
    ExampleOfProcesses example = ExampleOfProcesses.find("torch-trainer").orElseThrow();
    String lacking = example.lacking().get().orElse("");
    assumeTrue(lacking.isEmpty(), lacking);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    example.jobs().run(out, unfinished -> {});
    String printed = bytes.toString(StandardCharsets.UTF_8);
    assertThat(printed.lines().filter(line -> line.endsWith("4977 values are torch's own")))
        .as(printed)
        .hasSize(10);
    assertThat(printed).contains("every value equals torch's own cast to bf16");
  }

  @Test
  @Timeout(240)
  void aProcessThatASignalEndsIsNamedByItsStatus() throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    AtomicReference<ProcessHandle> killed = new AtomicReference<>();
    Thread killer =
        new Thread(
            () -> {
              while (!bytes.toString(StandardCharsets.UTF_8).contains("is there")) {
                LockSupport.parkNanos(1_000_000);
              }
              killed.set(processOf("inference-a"));
              killed.get().destroy();
            });
    killer.setDaemon(true);
    killer.start();
    PrintStream out = new PrintStream(bytes, true, StandardCharsets.UTF_8);
    Examples.Jobs jobs = Examples.find("weight-sync").orElseThrow().jobs().orElseThrow();
    assertThatThrownBy(() -> jobs.run(out, unfinished -> {}))
        .isInstanceOf(PeerLostException.class)
        .satisfies(
            lost ->
                assertThat(lost.getMessage())
                    .startsWith(
                        "weight-sync: process "
                            + killed.get().pid()
                            + " of inference-a has ended with status 143; the jobs have said: "));
  }

  private static ProcessHandle processOf(String job) {
    return ProcessHandle.current()
        .children()
        .filter(child -> List.of(child.info().arguments().orElse(new String[0])).contains(job))
        .findFirst()
        .orElseThrow();
  }

  private static void spinUntil(AtomicBoolean isOver) {
    while (!isOver.get()) {
      Thread.onSpinWait();
    }
  }

  /** The classes of the examples, by their files. */
  private static List<Class<?>> classes() throws Exception {
    Path sources =
        Path.of(System.getProperty("windlass.root"), "examples/src/main/java/org/windlass/examples");
    List<Class<?>> classes = new ArrayList<>();
    try (Stream<Path> files = Files.list(sources)) {
      for (Path file : files.filter(each -> each.toString().endsWith("Example.java")).toList()) {
        String name = file.getFileName().toString().replace(".java", "");
        classes.add(Class.forName("org.windlass.examples." + name));
      }
    }
    return classes;
  }

  @Test
  void everyExampleHasAMainAndIsListed() throws Exception {
    List<Class<?>> classes = classes();
    assertThat(classes).hasSameSizeAs(Examples.all());
    String[] arguments = {"--target", "sim", "--ranks", "2"};
    for (Class<?> example : classes) {
      example.getMethod("main", String[].class).invoke(null, (Object) arguments);
    }
  }

  @Test
  void wrongArgumentsOfAMainAreRefused() {
    assertThatThrownBy(() -> BroadcastExample.main(new String[] {"--target", "a5"}))
        .isInstanceOf(UnsupportedException.class);
    assertThatThrownBy(() -> BroadcastExample.main(new String[] {"--rank", "3"}))
        .isInstanceOf(InvalidArgumentException.class);
    assertThatThrownBy(() -> BroadcastExample.main(new String[] {"--ranks"}))
        .isInstanceOf(InvalidArgumentException.class);
    assertThatThrownBy(() -> BroadcastExample.main(new String[] {"--ranks", "two"}))
        .isInstanceOf(InvalidArgumentException.class);
  }

  @Test
  void aKernelThatIsNotBuiltIsNamedWithWhatToDo() {
    assertThatThrownBy(() -> OwnKernelExample.library(Target.A5))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageContaining("there is no ")
        .hasMessageContaining(
            "libring_shift-a5.so: build examples/kernels for a5 as docs/how-to/write-a-kernel.md"
                + " says");
  }

  /** A check that lets anything pass checks nothing. */
  @Test
  void goldenValuesAreHeldElementByElement() {
    try (Tensor tensor = Tensor.allocate(DType.F32, 3, 2)) {
      Golden.fill(tensor, i -> i);
      Golden.check(tensor, i -> i);
      Golden.check(tensor, 0.25, i -> i + 0.25);
      assertThatThrownBy(() -> Golden.check(tensor, 0.25, i -> i == 5 ? 5.5 : i))
          .isInstanceOf(VerificationFailedException.class)
          .hasMessageStartingWith("element 5 of ")
          .hasMessageEndingWith("expected 5.5, found 5.0");
      tensor.setDouble(Double.NaN, 2, 0);
      assertThatThrownBy(() -> Golden.check(tensor, 1, i -> i))
          .hasMessageContaining("element 4 ")
          .hasMessageEndingWith("expected 4.0, found NaN");
    }
  }

  @Test
  void namesAreFound() {
    assertThat(Examples.all()).extracting(Examples.Example::name).doesNotHaveDuplicates();
    assertThat(Examples.find("broadcast")).isPresent();
    assertThat(Examples.find("broad")).isEmpty();
  }
}
