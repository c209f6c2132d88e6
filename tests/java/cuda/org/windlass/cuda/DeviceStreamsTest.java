// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.Pointer;
import org.junit.jupiter.api.Test;
import org.windlass.LocalGroup;
import org.windlass.error.UnsupportedException;

class DeviceStreamsTest {
  private static final long HANDLE = 0x7f0012345678L;

  /** An address that nobody looks behind. */
  private static final class Handle extends Pointer {
    Handle(long handle) {
      address = handle;
    }
  }

  @Test
  void givesTheHandleAsItIs() {
    try (var group = LocalGroup.of(1)) {
      group.run(
          comm -> {
            var stream = new CUstream_st(new Handle(HANDLE));
            assertThat(DeviceStreams.on(comm, stream).stream()).isEqualTo(HANDLE);
            assertThat(DeviceStreams.on(comm, new CUstream_st()).stream()).isZero();
          });
    }
  }

  @Test
  void refusesWhatHasNoStreams() {
    try (var group = LocalGroup.of(1)) {
      group.run(
          comm -> {
            var ofSim = DeviceStreams.on(comm, new CUstream_st());
            assertThatThrownBy(ofSim::barrier)
                .isInstanceOf(UnsupportedException.class)
                .hasMessageContaining("sim");
            assertThatThrownBy(() -> DeviceStreams.on(comm, null))
                .isInstanceOf(NullPointerException.class)
                .hasMessage("stream");
          });
    }
  }
}
