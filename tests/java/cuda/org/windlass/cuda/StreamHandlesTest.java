// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.junit.jupiter.api.Test;

/** Handles of streams and events, there and back. */
class StreamHandlesTest {
  private static final long HANDLE = 0x55aa_1234_5678L;

  @Test
  void aHandleIsThePointersAddress() {
    assertThat(StreamHandles.of(StreamHandles.stream(HANDLE))).isEqualTo(HANDLE);
    assertThat(StreamHandles.stream(HANDLE).address()).isEqualTo(HANDLE);
    assertThat(StreamHandles.of(StreamHandles.event(HANDLE))).isEqualTo(HANDLE);
    assertThat(StreamHandles.event(HANDLE).address()).isEqualTo(HANDLE);
  }

  @Test
  void nullIsTheDefaultStream() {
    assertThat(StreamHandles.of((CUstream_st) null)).isZero();
    assertThat(StreamHandles.of(new CUstream_st())).isZero();
    assertThat(StreamHandles.stream(0).isNull()).isTrue();
    assertThat(StreamHandles.of((CUevent_st) null)).isZero();
    assertThat(StreamHandles.of(new CUevent_st())).isZero();
    assertThat(StreamHandles.event(0).isNull()).isTrue();
  }
}
