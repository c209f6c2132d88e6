// SPDX-License-Identifier: Apache-2.0
package org.windlass.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.experts.ExpertOptions;
import org.windlass.experts.ExpertParallel;
import org.windlass.experts.ExpertRouting;
import org.windlass.layout.Layout;
import org.windlass.testing.TestKernels;
import org.windlass.transfer.TransferBuilder;

/** Tensors over memory of a device: here none is, so that whoever touched one would crash. */
@Timeout(60)
class DeviceTensorTest {
  /** Where no process has memory. */
  private static final long NOWHERE = 0x1000;

  private static final Layout WHOLE = Layout.parse("1@0:R");

  private static Tensor onDevice(long... shape) {
    return Tensor.ofDevice(NOWHERE, 1 << 16, null, DType.F32, shape);
  }

  @Test
  void isATensorLikeOthersButForItsElements() {
    Tensor tensor = onDevice(8, 16);
    assertThat(tensor.isOnDevice()).isTrue();
    assertThat(tensor.address()).isEqualTo(NOWHERE);
    assertThat(tensor).hasToString("f32[8, 16]");
    Tensor view = tensor.narrow(0, 2, 4).transpose(0, 1);
    assertThat(view.isOnDevice()).isTrue();
    assertThat(view.address()).isEqualTo(NOWHERE + 2 * 16 * 4);
    tensor.close();
    assertThat(Tensor.allocate(DType.F32, 4).isOnDevice()).isFalse();
  }

  @Test
  void whatTheMemoryHasNoRoomForIsRefused() {
    assertThatThrownBy(() -> Tensor.ofDevice(NOWHERE, 15, null, DType.F32, 4))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage("ofDevice: shape [4] of f32 needs 16 bytes, the memory holds 15");
    assertThatThrownBy(() -> Tensor.ofDevice(NOWHERE + 2, 16, null, DType.F32, 4))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("address 0x1002 is not a multiple of 4");
    assertThatThrownBy(() -> Tensor.ofDevice(0, 16, null, DType.F32, 4))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage("ofDevice: address is 0");
    assertThatThrownBy(() -> Tensor.ofDevice(NOWHERE, -1, null, DType.F32, 4))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage("ofDevice: bytes is -1; it must be 0 or more");
    assertThat(Tensor.ofDevice(0, 0, null, DType.F32, 0).numel()).isZero();
  }

  @Test
  void aWindowOnDevicesTakesATargetThatHasThem() {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            assertThatThrownBy(() -> comm.deviceWindow(64))
                .isInstanceOf(UnsupportedException.class)
                .hasMessage(
                    "device window: target sim has no devices on which callers have tensors; windows"
                        + " of the host are made by window");
            assertThatThrownBy(() -> comm.deviceWindow(-1))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessage("deviceWindow: bytes is -1; it must be 0 or more");
            comm.barrier();
          });
    }
  }

  /** A call on rank 0 of one, and what it says of the tensor that it is given. */
  @FunctionalInterface
  private interface Use {
    void of(Communicator comm, Window window, Tensor tensor);
  }

  private static Arguments use(String says, Use use) {
    return arguments(says, use);
  }

  static Stream<Arguments> uses() {
    Tensor host = Tensor.allocate(DType.F32, 4);
    return Stream.of(
        use("fill: the tensor (f32[4])", (c, w, t) -> t.fill(1.0)),
        use("fill: the tensor", (c, w, t) -> t.fill(1)),
        use("getDouble: the tensor", (c, w, t) -> t.getDouble(0)),
        use("setDouble: the tensor", (c, w, t) -> t.setDouble(1, 0)),
        use("copyFrom: the tensor", (c, w, t) -> t.copyFrom(host)),
        use("copyFrom: source (f32[4])", (c, w, t) -> host.copyFrom(t)),
        use("copyFrom: the tensor", (c, w, t) -> t.copyFrom(new float[4])),
        use("copyTo: the tensor", (c, w, t) -> t.copyTo(new float[4])),
        use("asByteBuffer: the tensor", (c, w, t) -> t.asByteBuffer()),
        use(
            "launch of shift on rank 0: argument 0 (f32[4])",
            (c, w, t) -> c.launch(TestKernels.kernel("shift"), t, w.tensor(DType.F32, 4), 0)),
        use("dispatch: tokens (f32[1, 4])", DeviceTensorTest::dispatch));
  }

  private static void dispatch(Communicator comm, Window window, Tensor tensor) {
    try (ExpertParallel experts =
            ExpertParallel.open(comm, ExpertOptions.of(1, 1, 4, 4, DType.F32));
        ExpertRouting routing = experts.routing()) {
      experts.dispatch(routing, tensor.reshape(1, 4), Tensor.allocate(DType.I64, 1, 1), null);
    }
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("uses")
  void whatTakesTheHostsMemoryRefusesADevices(String says, Use use) {
    try (LocalGroup group = LocalGroup.of(1)) {
      group.run(
          comm -> {
            try (Window window = comm.window(1 << 12)) {
              assertThatThrownBy(() -> use.of(comm, window, onDevice(4)))
                  .isInstanceOf(UnsupportedException.class)
                  .hasMessageStartingWith(says)
                  .hasMessageContaining("is in a device's memory")
                  .hasMessageContaining("copy it to a host tensor with the device's own calls");
              comm.barrier();
            }
          });
    }
  }

  static Stream<Arguments> moves() {
    return Stream.of(
        use("allReduce: tensor (f32[4])", (c, w, t) -> c.allReduce(t, ReduceOp.SUM)),
        use("broadcast: tensor (f32[4])", (c, w, t) -> c.broadcast(t, 0)),
        use("put: local (f32[4])", (c, w, t) -> w.put(t, 0, w.tensor(DType.F32, 4))),
        use("get: local (f32[4])", (c, w, t) -> w.get(t, 0, w.tensor(DType.F32, 4))),
        use(
            "accumulate: local (f32[4])",
            (c, w, t) -> w.accumulate(t, 0, w.tensor(DType.F32, 4))),
        use("allToAll: out (f32[4])", (c, w, t) -> c.allToAll(w.tensor(DType.F32, 4), t)),
        use(
            "add: source of tensor 'w' (f32[4])",
            (c, w, t) ->
                TransferBuilder.of(c)
                    .add(
                        "w", new long[] {4}, DType.F32, WHOLE, t, WHOLE,
                        Tensor.allocate(DType.F32, 4))),
        use(
            "allToAllv: in (f32[4])",
            (c, w, t) -> c.allToAllv(t, new long[] {4}, w.tensor(DType.F32, 4), new long[] {4})));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("moves")
  void operationsOfAnotherTargetNameTheirOwnAndTheOneThatTakesIt(String says, Use use) {
    try (LocalGroup group = LocalGroup.of(1)) {
      group.run(
          comm -> {
            try (Window window = comm.window(1 << 12)) {
              assertThatThrownBy(() -> use.of(comm, window, onDevice(4)))
                  .isInstanceOf(UnsupportedException.class)
                  .hasMessage(
                      says + " is in a device's memory, which kernels of target sim can't access;"
                          + " kernels of target cuda can");
              comm.barrier();
            }
          });
    }
  }
}
