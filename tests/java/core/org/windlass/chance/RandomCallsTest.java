// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CancellationException;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.DeviceMesh;
import org.windlass.Layout;
import org.windlass.LocalGroup;
import org.windlass.MismatchException;
import org.windlass.Placement;
import org.windlass.Plan;
import org.windlass.PublicApi;
import org.windlass.Tensor;
import org.windlass.TensorSpec;
import org.windlass.Window;
import org.windlass.WindlassException;
import org.windlass.testing.RandomSeeds;

/**
 * Random calls of the whole public API with random arguments, most of them wrong: each ends soon,
 * with a result or a documented exception, and leaves nothing.
 */
class RandomCallsTest {
  private static final int CALLS_A_SESSION = 400;
  private static final int WARM_UP_SESSIONS = 10;
  private static final Duration LONGEST_CALL = Duration.ofSeconds(20);

  /** A raw address is taken at its word; an exception is its thrower's. */
  private static boolean isLeftOut(Executable call) {
    Class<?> type = call.getDeclaringClass();
    return type == Tensor.class && Arrays.asList(call.getParameterTypes()).contains(Object.class)
        || Throwable.class.isAssignableFrom(type);
  }

  @TempDir private Path folder;

  /** Calls that gave a result, and those that were refused; by name, so that all are seen. */
  private final Set<String> answered = new TreeSet<>();

  private final Set<String> tried = new TreeSet<>();

  private List<Executable> calls;
  private int sessions;
  private Resources before;

  @BeforeEach
  void findCalls() {
    calls = PublicApi.calls().stream().filter(call -> !isLeftOut(call)).toList();
  }

  @RandomSeeds(value = 2 * WARM_UP_SESSIONS, seconds = 20)
  void aRandomCallIsAnsweredOrRefusedAsDocumented(long seed) throws IOException {
    if (sessions++ == WARM_UP_SESSIONS) {
      before = Resources.settled();
    }
    session(seed);
  }

  @AfterEach
  void nothingIsLeftAndMostWereAnswered() {
    System.out.printf(
        "%d random calls; %d of %d methods tried, %d answered%n",
        sessions * CALLS_A_SESSION, tried.size(), calls.size(), answered.size());
    if (before != null) {
      before.requireNoMoreIn(Resources.settled());
      // Else arguments are so wrong that nothing behind the first check is ever reached.
      assertThat(tried.size()).isGreaterThan(calls.size() * 3 / 4);
      assertThat(answered.size()).isGreaterThan(calls.size() / 2);
    }
  }

  private void session(long seed) throws IOException {
    Random random = new Random(seed);
    RandomArguments arguments = new RandomArguments(random, folder);
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(Duration.ofMillis(300));
    try (LocalGroup group = Communicator.local(1, options);
        Window window = group.communicator(0).window(1 << 16)) {
      Communicator comm = group.communicator(0);
      arguments.keep(comm);
      arguments.keep(window);
      arguments.keep(window.signals(3));
      for (DType dtype : List.of(DType.F32, DType.BF16, DType.I32, DType.BOOL)) {
        arguments.keep(window.tensor(dtype, 2, 3, 4));
        arguments.keep(Tensor.allocate(dtype, 4));
      }
      Layout layout = Layout.parse("1:S0");
      arguments.keep(layout);
      arguments.keep(DeviceMesh.of(2, 2));
      arguments.keep(Placement.shard(0));
      TensorSpec spec = TensorSpec.of("w", DType.F32, layout, 4);
      arguments.keep(spec);
      arguments.keep(Plan.of(layout, layout, new long[] {4}, DType.F32));
      arguments.keep(comm.batch());
      arguments.keep(comm.link("link", DeviceMesh.of(1), DeviceMesh.of(1)));
      for (int i = 0; i < CALLS_A_SESSION; i++) {
        call(i, calls.get(random.nextInt(calls.size())), arguments);
      }
    } catch (MismatchException e) {
      // What random calls left in the communicator, which close() tells.
    }
    arguments.close();
    Thread.interrupted();
    try (Stream<Path> left = Files.walk(folder)) {
      left.sorted(Comparator.reverseOrder()).filter(p -> !p.equals(folder)).forEach(this::delete);
    }
  }

  private void delete(Path path) {
    try {
      Files.delete(path);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void call(int number, Executable call, RandomArguments arguments) {
    boolean isStatic = Modifier.isStatic(call.getModifiers());
    Object on = null;
    if (call instanceof Method && !isStatic) {
      on = arguments.instance(call.getDeclaringClass());
      if (on == null) {
        return;
      }
    }
    Object[] given =
        Arrays.stream(call.getGenericParameterTypes()).map(arguments::of).toArray(Object[]::new);
    String what =
        "call %d: %s on %s with %s".formatted(number, call, on, Arrays.deepToString(given));
    tried.add(call.toString());
    long start = System.nanoTime();
    try {
      Object result =
          call instanceof Constructor<?> constructor
              ? constructor.newInstance(given)
              : ((Method) call).invoke(on, given);
      answered.add(call.toString());
      arguments.keep(result);
    } catch (InvocationTargetException e) {
      requireDocumented(what, call, e.getCause());
    } catch (ReflectiveOperationException | IllegalArgumentException e) {
      throw new AssertionError(what + ": could not be called", e);
    }
    Duration took = Duration.ofNanos(System.nanoTime() - start);
    if (took.compareTo(LONGEST_CALL) > 0) {
      throw new AssertionError(what + ": took " + took);
    }
  }

  private static void requireDocumented(String what, Executable call, Throwable failure) {
    boolean documented =
        failure instanceof WindlassException
            || failure instanceof CancellationException
            || failure instanceof NullPointerException && names(call, failure.getMessage());
    String said = failure.getMessage();
    if (!documented || said == null && !(failure instanceof CancellationException)) {
      throw new AssertionError(what + ": " + failure, failure);
    }
    if (failure instanceof WindlassException && failure.getClass().getSimpleName().startsWith("Internal")) {
      throw new AssertionError(what + ": " + failure, failure);
    }
  }

  /** Whether a NullPointerException is the documented one, which names the argument. */
  private static boolean names(Executable call, String message) {
    return message != null
        && Arrays.stream(call.getParameters())
            .map(Parameter::getName)
            .anyMatch(name -> message.matches("\\Q" + name + "\\E([\\[ ].*)?"));
  }
}
