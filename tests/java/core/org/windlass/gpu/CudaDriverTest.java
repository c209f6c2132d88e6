// SPDX-License-Identifier: Apache-2.0
package org.windlass.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.kernel.Target;

/** NVIDIA's driver as this machine has it, or hasn't. */
class CudaDriverTest {
  @Test
  void withoutADriverEachCallHasTheReason() {
    Assumptions.assumeTrue(CudaDriver.problem().isPresent(), "there is a driver");
    String reason = CudaDriver.problem().orElseThrow();
    assertThat(reason).startsWith("NVIDIA's driver");
    assertThatThrownBy(CudaDriver::deviceCount)
        .isInstanceOf(UnsupportedException.class)
        .hasMessage(reason);
    assertThatThrownBy(() -> CudaDriver.device(0)).hasMessage(reason);
    assertThatThrownBy(() -> CudaDriver.reaches(0, 0)).hasMessage(reason);
    assertThat(Target.CUDA.available()).isFalse();
    assertThat(Target.CUDA.whyNot()).endsWith(reason);
    assertThatThrownBy(Target.CUDA::require)
        .isInstanceOf(UnsupportedException.class)
        .hasMessageStartingWith("target cuda is not available here: ")
        .hasMessageEndingWith(reason);
  }

  @Test
  void aNegativeNumberIsNoGpus() {
    List<ThrowingCallable> calls =
        List.of(
            () -> CudaDriver.device(-1),
            () -> CudaDriver.reaches(-1, 0),
            () -> CudaDriver.reaches(0, -1),
            () -> CudaGrids.cores(-1),
            () -> CudaGrids.rows(-1));
    for (ThrowingCallable call : calls) {
      assertThatThrownBy(call)
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessage("there is no device -1: they are numbered from 0");
    }
  }

  @Test
  void aDriverTellsOfEachGpu() {
    Assumptions.assumeTrue(
        CudaDriver.problem().isEmpty(), () -> CudaDriver.problem().orElseThrow());
    int count = CudaDriver.deviceCount();
    assertThat(count).isPositive();
    for (int gpu = 0; gpu < count; gpu++) {
      CudaDriver.Device device = CudaDriver.device(gpu);
      assertThat(device.name()).isNotEmpty();
      assertThat(device.major()).isPositive();
      assertThat(device.multiprocessors()).isPositive();
      assertThat(device.freeBytes()).isBetween(1L, device.totalBytes());
      assertThat(CudaDriver.reaches(gpu, gpu)).isTrue();
    }
    assertThatThrownBy(() -> CudaDriver.device(count))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("there is no device " + count);
  }
}
