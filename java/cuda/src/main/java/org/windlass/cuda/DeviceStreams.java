// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import java.util.Objects;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.windlass.Collectives;
import org.windlass.StreamCollectives;

/**
 * Enqueues collectives on streams of the presets. The driver API and the runtime API have the same
 * stream class.
 */
public final class DeviceStreams {
  private DeviceStreams() {}

  /**
   * Returns a rank's collectives on {@code stream}, like {@link Collectives#onStream(long)}. A null
   * pointer is the legacy default stream, as in the presets. The stream must live until the
   * operations enqueued on it are over.
   */
  public static StreamCollectives on(Collectives comm, CUstream_st stream) {
    return comm.onStream(Objects.requireNonNull(stream, "stream").address());
  }
}
