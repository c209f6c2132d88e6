// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

/**
 * Records one operation of one rank for JDK Flight Recorder. It is off unless a recording enables
 * it: {@code -XX:StartFlightRecording:+windlass.Collective#enabled=true}. One-sided operations and
 * calls with wrong arguments make no event.
 */
@Name("windlass.Collective")
@Label("Collective")
@Category("Windlass")
@Description("One operation of one rank of a communicator")
@Enabled(false)
@StackTrace(false)
final class CollectiveEvent extends Event {
  private static final CollectiveEvent ANY = new CollectiveEvent();

  @Label("Operation")
  String operation = "";

  @Label("Algorithm")
  @Description("Empty where the operation has one alone")
  String algorithm = "";

  @Label("Rank")
  int rank;

  @Label("Ranks")
  int ranks;

  @Label("Sequence")
  @Description("The same on all ranks of the communicator")
  long sequence;

  @Label("Bytes")
  @Description(
      "Of one part, as windlass bench counts them; what the rank sends, where parts differ in size;"
          + " what a transfer writes to the rank")
  @DataAmount
  long bytes;

  @Label("Wait Time")
  @Description("In waits of more than some microseconds, in which the rank may do others' work")
  @Timespan(Timespan.NANOSECONDS)
  long waitTime;

  @Label("Slowest Peer")
  @Description("The rank that entered last, of those that had entered when this one left")
  int slowestPeer;

  @Label("Result")
  @Description("Ok, or the code of the failure")
  String result = "";

  private transient int before;

  private CollectiveEvent() {}

  static boolean wanted() {
    return ANY.isEnabled();
  }

  static CollectiveEvent begin(long comm) {
    CollectiveEvent event = new CollectiveEvent();
    event.before = lastSequence(comm);
    event.begin();
    return event;
  }

  private static int lastSequence(long comm) {
    try (Scratch scratch = Scratch.take()) {
      Native.wl_comm_state(
          comm, Native.wl_comm_rank(comm), scratch.config(Structs.RankState.SIZE));
      return scratch.configInt(Structs.RankState.SEQUENCE);
    }
  }

  void finish(long comm) {
    end();
    if (!shouldCommit()) {
      return;
    }
    rank = Native.wl_comm_rank(comm);
    try (Scratch scratch = Scratch.take()) {
      int found = Native.wl_comm_recorded(comm, rank, scratch.config(Structs.Record.SIZE), 1);
      int last = scratch.configInt(Structs.Record.SEQUENCE);
      if (found != 1 || last == before) {
        return;
      }
      operation = Native.wl_operation_name(scratch.configInt(Structs.Record.OPERATION));
      int chosen = scratch.configInt(Structs.Record.ALGORITHM);
      algorithm = chosen == Native.WL_AUTO ? "" : Native.wl_algorithm_name(chosen);
      ranks = Native.wl_comm_size(comm);
      sequence = Integer.toUnsignedLong(last);
      bytes = scratch.configLong(Structs.Record.BYTES);
      waitTime = scratch.configLong(Structs.Record.WAITED_NS);
      slowestPeer = Native.wl_comm_last_to_enter(comm, last);
      result = Native.wl_code_name(scratch.configInt(Structs.Record.CODE));
    }
    commit();
  }
}
