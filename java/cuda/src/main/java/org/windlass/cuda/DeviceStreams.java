// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import java.util.Objects;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.windlass.Collectives;
import org.windlass.StreamCollectives;

/** Streams of the presets, whose class is the same in the driver's and in the runtime's API. */
public final class DeviceStreams {
  private DeviceStreams() {}

  /**
   * A rank's collectives on {@code stream}, as {@link Collectives#onStream(long)} has them. A null
   * pointer is the legacy default stream, as it is for the presets. The stream lives until what is
   * enqueued on it is over.
   */
  public static StreamCollectives on(Collectives comm, CUstream_st stream) {
    return comm.onStream(Objects.requireNonNull(stream, "stream").address());
  }
}
