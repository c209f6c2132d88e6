// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.io.IOException;
import java.lang.reflect.Executable;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.MismatchException;
import org.windlass.launch.LaunchEnvironment;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.link.Link;
import org.windlass.plan.Plan;
import org.windlass.testing.PublicApi;
import org.windlass.testing.RandomArguments;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.RandomSessions;
import org.windlass.testing.TestKernels;
import org.windlass.transfer.TransferBuilder;

/** Random calls of the public API of the library. */
class RandomCallsTest extends RandomSessions {
  RandomCallsTest() {
    super(
        PublicApi.calls(Communicator.class).stream().filter(call -> !isLeftOut(call)).toList());
  }

  /**
   * A raw address is taken at its word; a pool takes as much memory as tensors ask for; an exception
   * is its thrower's.
   */
  private static boolean isLeftOut(Executable call) {
    Class<?> type = call.getDeclaringClass();
    return type == Tensor.class && Arrays.asList(call.getParameterTypes()).contains(Object.class)
        || call.getName().equals("memoryPool")
        || Throwable.class.isAssignableFrom(type);
  }

  @RandomSeeds(value = 2 * SESSIONS, seconds = 2)
  void aRandomCallIsAnsweredOrRefusedAsDocumented(long seed) throws IOException {
    run(seed);
  }

  @Override
  protected void session(RandomArguments arguments, Path folder, Runnable calls) {
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(Duration.ofMillis(300));
    try (LocalGroup group = LocalGroup.of(1, options);
        Window window = group.communicator(0).window(1 << 16)) {
      Communicator comm = group.communicator(0);
      arguments.keep(comm);
      arguments.keep(window);
      arguments.keep(window.signals(3));
      arguments.keep(comm.memoryPool(1 << 16));
      arguments.keep(TestKernels.kernel("shift"));
      arguments.keep(TestKernels.kernel("scalars"));
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
      arguments.keep(TransferBuilder.of(comm));
      arguments.keep(LaunchEnvironment.of(Map.of("RANK", "0", "WORLD_SIZE", "1")));
      arguments.keep(Link.open(comm, "link", DeviceMesh.of(1), DeviceMesh.of(1)));
      calls.run();
    } catch (MismatchException e) {
      // What random calls left in the communicator, which close() tells.
    }
  }
}
