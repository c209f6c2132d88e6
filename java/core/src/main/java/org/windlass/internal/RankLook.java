// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * One look at a rank, from any thread: its state line, then what was recorded of it. The two may be
 * of different moments.
 *
 * @param awaited the rank that it waits for, {@link #NOBODY} or {@link #SEVERAL}
 * @param contested times that a wait found another thread busy on its core
 * @param item the piece of an operation's work that it runs, or null
 * @param recorded its last operations, the newest first
 */
public record RankLook(
    boolean closed, int awaited, int contested, String item, List<Recorded> recorded) {
  public static final int NOBODY = -1;
  public static final int SEVERAL = -2;

  /**
   * One recorded operation. Times are those of {@code wl_clock_ns}.
   *
   * @param sequence of a one-sided operation, that of the last one before
   * @param algorithm which one it was; {@code WL_AUTO} where it has one alone
   * @param text the operation with what it moves
   * @param code {@code WL_RECORD_INSIDE} while it is in progress
   * @param enteredNs 0 if it has not entered yet
   */
  public record Recorded(
      int sequence,
      int operation,
      int algorithm,
      String text,
      long bytes,
      int code,
      long enteredNs,
      long leftNs,
      long waitedNs) {
    public boolean inside() {
      return code == Native.WL_RECORD_INSIDE;
    }

    /** Whether it is the rank's own, or follows a failure, and takes no sequence. */
    public boolean uncounted() {
      return operation == Native.WL_OP_SHRINK
          || (operation >= Native.WL_OP_FIRST_ONE_SIDED
              && operation <= Native.WL_OP_LAST_ONE_SIDED);
    }
  }

  /** A look at every rank. */
  public static List<RankLook> all(Endpoint endpoint) {
    ByteBuffer state = Structs.allocate(Structs.RankState.SIZE);
    ByteBuffer records = Structs.allocate(Structs.Record.SIZE * Native.WL_RECORDS);
    List<RankLook> looks = new ArrayList<>(endpoint.size);
    for (int rank = 0; rank < endpoint.size; rank++) {
      looks.add(look(endpoint.handle, rank, state, records));
    }
    return looks;
  }

  private static RankLook look(long comm, int rank, ByteBuffer state, ByteBuffer records) {
    state.putInt(0, Structs.RankState.SIZE);
    records.putInt(0, Structs.Record.SIZE);
    Native.wl_comm_state(comm, rank, NativeMemory.address(state));
    int count =
        Native.wl_comm_recorded(comm, rank, NativeMemory.address(records), Native.WL_RECORDS);
    List<Recorded> recorded = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      recorded.add(recorded(records, i * Structs.Record.SIZE));
    }
    return new RankLook(
        state.getInt(Structs.RankState.CLOSED) != 0,
        state.getInt(Structs.RankState.AWAITED),
        state.getInt(Structs.RankState.CONTESTED),
        item(state),
        recorded);
  }

  private static String item(ByteBuffer state) {
    int owner = state.getInt(Structs.RankState.ITEM_OWNER);
    return owner < 0
        ? null
        : "item "
            + state.getInt(Structs.RankState.ITEM)
            + " of rank "
            + owner
            + ", phase "
            + state.getInt(Structs.RankState.ITEM_PHASE);
  }

  private static Recorded recorded(ByteBuffer records, int at) {
    return new Recorded(
        records.getInt(at + Structs.Record.SEQUENCE),
        records.getInt(at + Structs.Record.OPERATION),
        records.getInt(at + Structs.Record.ALGORITHM),
        Structs.text(records, at + Structs.Record.TEXT, Native.WL_RECORD_TEXT),
        records.getLong(at + Structs.Record.BYTES),
        records.getInt(at + Structs.Record.CODE),
        records.getLong(at + Structs.Record.ENTERED_NS),
        records.getLong(at + Structs.Record.LEFT_NS),
        records.getLong(at + Structs.Record.WAITED_NS));
  }
}
