// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Executable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.MismatchException;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;
import org.windlass.redistribute.Batch;
import org.windlass.redistribute.Link;
import org.windlass.testing.PublicApi;
import org.windlass.testing.RandomArguments;
import org.windlass.testing.RandomCalls;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Resources;

/**
 * Random calls of the whole public API with random arguments, most of them wrong: each ends soon,
 * with a result or a documented exception, and leaves nothing.
 */
class RandomCallsTest {
  private static final int CALLS_A_SESSION = 400;
  private static final int WARM_UP_SESSIONS = 10;

  /** A raw address is taken at its word; an exception is its thrower's. */
  private static boolean isLeftOut(Executable call) {
    Class<?> type = call.getDeclaringClass();
    return type == Tensor.class && Arrays.asList(call.getParameterTypes()).contains(Object.class)
        || Throwable.class.isAssignableFrom(type);
  }

  @TempDir private Path folder;

  private final RandomCalls calls =
      new RandomCalls(
          PublicApi.calls(Communicator.class).stream().filter(call -> !isLeftOut(call)).toList());

  private int sessions;
  private Resources before;

  @RandomSeeds(value = 2 * WARM_UP_SESSIONS, seconds = 10)
  void aRandomCallIsAnsweredOrRefusedAsDocumented(long seed) throws IOException {
    if (sessions++ == WARM_UP_SESSIONS) {
      before = Resources.settled();
    }
    session(seed);
  }

  @AfterEach
  void nothingIsLeftAndMostWereAnswered() {
    if (before != null) {
      before.requireNoMoreIn(Resources.settled());
      calls.requireMostAnswered(sessions * CALLS_A_SESSION);
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
      arguments.keep(Batch.of(comm));
      arguments.keep(Link.open(comm, "link", DeviceMesh.of(1), DeviceMesh.of(1)));
      for (int i = 0; i < CALLS_A_SESSION; i++) {
        calls.next(i, arguments);
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
}
