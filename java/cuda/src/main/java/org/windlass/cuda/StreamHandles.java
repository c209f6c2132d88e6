// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import org.bytedeco.cuda.cudart.CUevent_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.javacpp.Pointer;

/**
 * Streams and events of the presets as the handles that the CUDA driver and its runtime share, and
 * back. A handle owns nothing: who made the stream or event destroys it.
 */
public final class StreamHandles {
  private StreamHandles() {}

  /** A stream's handle; 0, the default stream, for null and for a null pointer. */
  public static long of(CUstream_st stream) {
    return handle(stream);
  }

  /** An event's handle; 0 for null and for a null pointer. */
  public static long of(CUevent_st event) {
    return handle(event);
  }

  /** The stream with that handle; a null pointer for 0, the default stream. */
  public static CUstream_st stream(long handle) {
    return new CUstream_st(new Handle(handle));
  }

  /** The event with that handle; a null pointer for 0. */
  public static CUevent_st event(long handle) {
    return new CUevent_st(new Handle(handle));
  }

  private static long handle(Pointer pointer) {
    return Pointer.isNull(pointer) ? 0 : pointer.address();
  }

  private static final class Handle extends Pointer {
    Handle(long handle) {
      address = handle;
    }
  }
}
