// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.testing.RandomSeeds;

/** The search for common bytes against sets of addresses. */
class SharedBytesTest {
  private static final DType[] DTYPES = {DType.U8, DType.I16, DType.F32};

  @RandomSeeds(3000)
  void agreesWithSetsOfAddresses(long seed) {
    Random random = new Random(seed);
    ByteBuffer memory = ByteBuffer.allocateDirect(1024).order(java.nio.ByteOrder.nativeOrder());
    Tensor a = view(memory, random);
    Tensor b = view(memory, random);
    Set<Long> common = bytes(a);
    common.retainAll(bytes(b));
    assertThat(share(a, b)).as("%s and %s", a, b).isEqualTo(!common.isEmpty());
    assertThat(share(b, a)).isEqualTo(!common.isEmpty());
  }

  private static boolean share(Tensor a, Tensor b) {
    return SharedBytes.between(where(a), where(b));
  }

  private static SharedBytes.View where(Tensor view) {
    return new SharedBytes.View(
        view.address(), view.shape(), view.strides(), view.dtype().bytes());
  }

  private static Tensor view(ByteBuffer memory, Random random) {
    DType dtype = DTYPES[random.nextInt(DTYPES.length)];
    memory.position(dtype.bytes() * random.nextInt(8));
    Tensor tensor =
        Tensor.of(
            memory, dtype, 1 + random.nextInt(6), 1 + random.nextInt(6), 1 + random.nextInt(6));
    for (int dim = 0; dim < 3; dim++) {
      long extent = tensor.shape()[dim];
      long start = random.nextInt((int) extent);
      tensor = tensor.narrow(dim, start, 1 + random.nextInt((int) (extent - start)));
    }
    return tensor.transpose(random.nextInt(3), random.nextInt(3));
  }

  private static Set<Long> bytes(Tensor tensor) {
    Set<Long> bytes = new HashSet<>();
    long[] shape = tensor.shape();
    long[] strides = tensor.strides();
    for (long i = 0; i < shape[0]; i++) {
      for (long j = 0; j < shape[1]; j++) {
        for (long k = 0; k < shape[2]; k++) {
          long element = i * strides[0] + j * strides[1] + k * strides[2];
          for (int b = 0; b < tensor.dtype().bytes(); b++) {
            bytes.add(tensor.address() + element * tensor.dtype().bytes() + b);
          }
        }
      }
    }
    return bytes;
  }

  @Test
  void largeInterleavedViewsAreSettledAtOnce() {
    Tensor fused = Tensor.allocate(DType.BF16, 100_000, 3, 16);
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 3; j++) {
        boolean shared = share(fused.select(1, i), fused.select(1, j));
        assertThat(shared).isEqualTo(i == j);
      }
    }
  }
}
