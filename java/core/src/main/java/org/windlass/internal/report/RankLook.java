// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.report;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.ToIntBiFunction;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.ProcessName;
import org.windlass.internal.Structs;
import org.windlass.internal.call.Endpoint;

/**
 * The state of a rank, as any thread can read it: its current state and its last operations. These
 * two parts may be from different moments.
 *
 * @param closed true if the rank has closed its communicator
 * @param awaited the rank that it waits for, {@link #NOBODY} or {@link #SEVERAL}
 * @param contested number of times that a wait of this rank found another thread busy on the rank's
 *     core
 * @param item the piece of an operation's work that the rank runs now, or null
 * @param recorded its last operations, newest first
 * @param process process of the rank; null if all ranks live in one process or it has not joined
 *     yet
 * @param processState the {@code wl_process_state} of {@code process}
 * @param former its rank in the communicator from which this one was made; -1 for none
 * @param host number of its host
 * @param elsewhere true if it is on another host than the observer
 */
public record RankLook(
    boolean closed,
    int awaited,
    int contested,
    @Nullable String item,
    List<Recorded> recorded,
    @Nullable ProcessName process,
    int processState,
    int former,
    int host,
    boolean elsewhere) {
  public static final int NOBODY = -1;
  public static final int SEVERAL = -2;

  /**
   * One recorded operation. Times are in nanoseconds on the clock of {@code wl_clock_ns}.
   *
   * @param sequence its sequence number; an uncounted operation has the number of the counted
   *     operation before it
   * @param algorithm a {@code wl_algorithm}; {@code WL_AUTO} if the operation has only one
   * @param text the operation and its tensors
   * @param code the operation's {@code wl_code}; {@code WL_RECORD_INSIDE} while it is in progress,
   *     {@code WL_RECORD_ENTERED} for a rank on another host
   * @param enteredNs time at which the rank entered it; 0 if it has not entered yet
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

    /** Returns true for an operation without a sequence number: a one-sided one, or a shrink. */
    public boolean uncounted() {
      return operation == Native.WL_OP_SHRINK
          || (operation >= Native.WL_OP_FIRST_ONE_SIDED
              && operation <= Native.WL_OP_LAST_ONE_SIDED);
    }
  }

  /** Returns the state of every rank, as the endpoint's rank sees it. */
  public static List<RankLook> all(Endpoint endpoint) {
    long comm = endpoint.handle;
    return all(
        endpoint.size,
        (rank, state) -> Native.wl_comm_state(comm, rank, state),
        (rank, records) -> Native.wl_comm_recorded(comm, rank, records, Native.WL_RECORDS));
  }

  /**
   * Returns the rank that this rank waits for, {@link #NOBODY} or {@link #SEVERAL}. Writes a {@code
   * wl_rank_state_t} to the buffer {@code state}.
   */
  public static int awaited(Endpoint endpoint, ByteBuffer state) {
    state.putInt(0, Structs.RankState.SIZE);
    Native.wl_comm_state(endpoint.handle, endpoint.rank, NativeMemory.address(state));
    return state.getInt(Structs.RankState.AWAITED);
  }

  /**
   * Returns, for each rank in order, its rank in the communicator from which this one was made.
   * Empty if this communicator was not made from another one.
   */
  public static List<Integer> former(Endpoint endpoint) {
    return Arrays.stream(of(endpoint, Structs.RankState.FORMER))
        .filter(former -> former >= 0)
        .boxed()
        .toList();
  }

  /** Returns the number of each rank's host, in rank order. */
  public static int[] hosts(Endpoint endpoint) {
    return of(endpoint, Structs.RankState.HOST);
  }

  private static int[] of(Endpoint endpoint, int offset) {
    ByteBuffer state = Structs.allocate(Structs.RankState.SIZE);
    int[] values = new int[endpoint.size];
    for (int rank = 0; rank < endpoint.size; rank++) {
      state.putInt(0, Structs.RankState.SIZE);
      Native.wl_comm_state(endpoint.handle, rank, NativeMemory.address(state));
      values[rank] = state.getInt(offset);
    }
    return values;
  }

  /**
   * Returns the state of each of {@code ranks} ranks.
   *
   * @param fillState gets a rank and an address, and writes the rank's {@code wl_rank_state_t}
   *     there
   * @param fillRecords gets a rank and an address, writes at most {@code WL_RECORDS} records of the
   *     rank ({@code wl_record_t}) there, and returns their number
   */
  static List<RankLook> all(
      int ranks,
      BiConsumer<Integer, Long> fillState,
      ToIntBiFunction<Integer, Long> fillRecords) {
    ByteBuffer state = Structs.allocate(Structs.RankState.SIZE);
    ByteBuffer records = Structs.allocate(Structs.Record.SIZE * Native.WL_RECORDS);
    List<RankLook> looks = new ArrayList<>(ranks);
    Map<ProcessName, Integer> states = new HashMap<>();
    for (int rank = 0; rank < ranks; rank++) {
      state.putInt(0, Structs.RankState.SIZE);
      records.putInt(0, Structs.Record.SIZE);
      fillState.accept(rank, NativeMemory.address(state));
      int count = fillRecords.applyAsInt(rank, NativeMemory.address(records));
      looks.add(look(state, records, count, states));
    }
    return looks;
  }

  private static RankLook look(
      ByteBuffer state, ByteBuffer records, int count, Map<ProcessName, Integer> states) {
    ProcessName process =
        state.getInt(Structs.RankState.PID) <= 0
            ? null
            : new ProcessName(
                state.getInt(Structs.RankState.PID),
                state.getLong(Structs.RankState.STARTED),
                state.getLong(Structs.RankState.PID_NAMESPACE));
    List<Recorded> recorded = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      recorded.add(recorded(records, i * Structs.Record.SIZE));
    }
    boolean elsewhere = state.getInt(Structs.RankState.ELSEWHERE) != 0;
    return new RankLook(
        state.getInt(Structs.RankState.CLOSED) != 0,
        state.getInt(Structs.RankState.AWAITED),
        state.getInt(Structs.RankState.CONTESTED),
        item(state),
        recorded,
        process,
        elsewhere || process == null
            ? toldOf(state)
            : states.computeIfAbsent(process, ProcessName::look),
        state.getInt(Structs.RankState.FORMER),
        state.getInt(Structs.RankState.HOST),
        elsewhere);
  }

  private static int toldOf(ByteBuffer state) {
    return state.getInt(Structs.RankState.LOST) == 0
        ? Native.WL_PROCESS_UNKNOWN
        : Native.WL_PROCESS_ENDED;
  }

  private static @Nullable String item(ByteBuffer state) {
    int owner = state.getInt(Structs.RankState.ITEM_OWNER);
    return owner < 0
        ? null
        : "item " + state.getInt(Structs.RankState.ITEM) + " of rank " + owner + ", phase "
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
