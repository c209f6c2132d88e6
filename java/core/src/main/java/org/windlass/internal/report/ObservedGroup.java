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
 * A communicator whose ranks live in several processes, as one sees it that has none of them: a
 * {@code wl_report_t}, which reads its memory and writes nothing. One thread at a time.
 */
public final class ObservedGroup implements AutoCloseable {
  /** Of one process, those that are looked at. */
  private static final int MOST = Native.WL_REPORT_GROUPS;

  /**
   * What it is.
   *
   * @param id tells it from all others of its host
   * @param parent that of the one that it was split or shrunk from; 0 for none
   * @param madeNs when, as {@code wl_clock_ns} has it
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
   * The numbers of memory that a process has open and shares. PeerLost where it has ended,
   * Unsupported where it lives in another pid namespace, Resource where this one may not look.
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
      if (code != Native.WL_OK) {
        throw Failures.of(code, scratch.errorBuffer());
      }
      int[] found = new int[(int) scratch.outValue()];
      numbers.asIntBuffer().get(found);
      return found;
    }
  }

  /**
   * The one whose memory a process has open as {@code number}. InvalidArgument where it is none, or
   * one of another build.
   */
  public static ObservedGroup open(ProcessName process, int number) {
    try (Scratch scratch = Scratch.take()) {
      long owner = process.in(scratch);
      int code = Native.wl_report_open(owner, number, scratch.out(), scratch.error());
      if (code != Native.WL_OK) {
        throw Failures.of(code, scratch.errorBuffer());
      }
      return new ObservedGroup(scratch.outValue());
    }
  }

  public About about() {
    return about;
  }

  /** Where each rank is. */
  public List<RankLook> looks() {
    long report = handle;
    return RankLook.all(
        about.ranks(),
        new RankLook.Source() {
          @Override
          public void state(int rank, long state) {
            Native.wl_report_state(report, rank, state);
          }

          @Override
          public int recorded(int rank, long records, int capacity) {
            return Native.wl_report_recorded(report, rank, records, capacity);
          }
        });
  }

  /** Why it is dead; empty while it lives. */
  public Optional<WindlassException> failure() {
    try (Scratch scratch = Scratch.take()) {
      int code = Native.wl_report_failure(handle, scratch.error());
      return code == Native.WL_OK
          ? Optional.empty()
          : Optional.of(Failures.of(code, scratch.errorBuffer()));
    }
  }

  /** How ranks get at memory outside windows of one another, and why. */
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
