// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import java.util.Objects;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.windlass.Collectives;
import org.windlass.StreamCollectives;

/**
 * Enqueues collectives on CUDA streams of Bytedeco's classes, the presets {@code
 * org.bytedeco:cuda}. In these classes, {@link CUstream_st} is a stream of the driver API ({@code
 * CUstream}) and also of the runtime API ({@code cudaStream_t}).
 */
public final class DeviceStreams {
  private DeviceStreams() {}

  /**
   * Returns a rank's collectives on {@code stream}, like {@link Collectives#onStream(long)}. A null
   * pointer is the legacy default stream. The stream must exist until all operations enqueued on it
   * are over.
   */
  public static StreamCollectives on(Collectives comm, CUstream_st stream) {
    return comm.onStream(Objects.requireNonNull(stream, "stream").address());
  }
}
