// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.testing.WithoutNatives;

/** Calls of a process that finds no natives. */
@Timeout(120)
class WithoutNativesTest {
  @TempDir Path folder;

  static final class Caller {
    public static void main(String[] arguments) {
      Map<String, Runnable> calls = new LinkedHashMap<>();
      calls.put("Communicator.local", () -> Communicator.local(2).close());
      calls.put(
          "Communicator.meet",
          () ->
              Communicator.meet(
                  Samples.alone(), CommunicatorOptions.defaults(), Duration.ofSeconds(1)));
      calls.put("Tensor.allocate", () -> Tensor.allocate(DType.F32, 4));
      calls.put("Tensor.of", () -> Tensor.of(ByteBuffer.allocateDirect(8), DType.U8, 8));
      calls.put("Tensor.of address", () -> Tensor.of(8, 8, null, DType.U8, 8));
      calls.put("Target.available", Target.SIM::available);
      calls.put("Target.require", Target.CUDA::require);
      calls.put("NativeLibrary.version", NativeLibrary::version);
      calls.put("RunningJob.at", () -> RunningJob.at("1", Map.of(), Duration.ofSeconds(1)));
      WithoutNatives.make(calls);
    }
  }

  @Test
  void eachCallIsRefusedInTheSameWords() throws Exception {
    WithoutNatives.requireRefused(Caller.class, 9, folder);
  }
}
