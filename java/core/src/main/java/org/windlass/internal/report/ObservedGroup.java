// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.report;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import org.windlass.error.WindlassException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.PeerMemory;
import org.windlass.internal.ProcessName;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

/**
 * A communicator of several processes, as seen by a process that has none of its ranks. It reads
 * the communicator's memory and writes nothing. Only one thread at a time may use it.
 */
public final class ObservedGroup implements AutoCloseable {
  private static final int MOST = Native.WL_REPORT_GROUPS;

  /**
   * Properties of the communicator.
   *
   * @param ranks number of ranks
   * @param id number that distinguishes it from all other communicators on its host
   * @param parent id of the communicator that it was split or shrunk from; 0 for none
   * @param madeNs time of its creation, in nanoseconds on the clock of {@code wl_clock_ns}
   */
  public record About(int ranks, long id, long parent, long madeNs) {}

  private final About about;
  private long handle;

  private ObservedGroup(long handle) {
    this.handle = handle;
    try (Scratch scratch = Scratch.take()) {
      Native.wl_report_about(handle, scratch.config(Structs.ReportGroup.SIZE));
      about =
          new About(
              scratch.configInt(Structs.ReportGroup.RANKS),
              scratch.configLong(Structs.ReportGroup.ID),
              scratch.configLong(Structs.ReportGroup.PARENT),
              scratch.configLong(Structs.ReportGroup.MADE_NS));
    }
  }

  /**
   * Finds the communicators whose memory a process has open. Returns a number for each, to pass to
   * {@link #open}.
   *
   * @throws WindlassException PeerLost if the process has ended; Unsupported if it lives in another
   *     pid namespace; Resource if this process may not read the memory of that process
   */
  public static int[] find(ProcessName process) {
    ByteBuffer numbers = Structs.allocate(Integer.BYTES * MOST);
    try (Scratch scratch = Scratch.take()) {
      int code =
          Native.wl_report_find(
              process.in(scratch),
              NativeMemory.address(numbers),
              MOST,
              scratch.out(),
              scratch.error());
      Failures.check(code, scratch);
      int[] found = new int[(int) scratch.outValue()];
      numbers.asIntBuffer().get(found);
      return found;
    }
  }

  /**
   * Opens a communicator that {@link #find} has found.
   *
   * @throws WindlassException InvalidArgument if the process has no communicator of that number, or
   *     another build of Windlass made it
   */
  public static ObservedGroup open(ProcessName process, int number) {
    try (Scratch scratch = Scratch.take()) {
      long owner = process.in(scratch);
      int code = Native.wl_report_open(owner, number, scratch.out(), scratch.error());
      Failures.check(code, scratch);
      return new ObservedGroup(scratch.outValue());
    }
  }

  public About about() {
    return about;
  }

  public List<RankLook> looks() {
    long report = handle;
    return RankLook.all(
        about.ranks(),
        (rank, state) -> Native.wl_report_state(report, rank, state),
        (rank, records) ->
            Native.wl_report_recorded(report, rank, records, Native.WL_RECORDS));
  }

  /** Returns the reason why the communicator failed. Empty if it has not failed. */
  public Optional<WindlassException> failure() {
    try (Scratch scratch = Scratch.take()) {
      int code = Native.wl_report_failure(handle, scratch.error());
      return code == Native.WL_OK
          ? Optional.empty()
          : Optional.of(Failures.of(code, scratch.errorBuffer()));
    }
  }

  public String peerMemory() {
    long report = handle;
    return PeerMemory.of(
        (memory, error) -> Native.wl_report_peer_memory(report, memory, error));
  }

  @Override
  public void close() {
    if (handle != 0) {
      Native.wl_report_close(handle);
      handle = 0;
    }
  }
}
