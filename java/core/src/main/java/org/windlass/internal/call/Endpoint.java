// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Reference;
import java.util.List;
import java.util.function.Supplier;
import jdk.jfr.FlightRecorder;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;
import org.windlass.internal.memory.Lifetime;

/**
 * One rank's native communicator and what a call on it needs: the right to be the one call in
 * progress, its arguments, and an error record. Calls that don't run on their caller go to {@link
 * OwnThreads}. It doesn't reach the public object, so that the cleaner may free it.
 *
 * <p>A call is {@link #begin}, the native function with {@link #error}, then {@link #end} after
 * success or {@link #settle} after anything else.
 */
public final class Endpoint {
  private static final VarHandle CALLER;
  private static final VarHandle CALLS;

  /** Whether this JDK image has what events are made of. */
  private static final boolean EVENTS = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  /** Of one wait for what is enqueued. */
  private static final long LOOK_NS = 1_000_000_000L;

  static {
    try {
      var lookup = MethodHandles.lookup();
      CALLER = lookup.findVarHandle(Endpoint.class, "caller", Thread.class);
      CALLS = lookup.findVarHandle(Endpoint.class, "calls", long.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** The {@code wl_comm_t*}. Valid while this object is retained, closed or not. */
  public final long handle;

  /** The {@code wl_error_t*} of the call in progress. */
  public final long error;

  public final int rank;
  public final int size;

  /** Arguments of the call in progress, its error record among them. */
  public final Scratch scratch = Scratch.take();

  /** Where the one caller states its collective. */
  public final CallStruct call = new CallStruct();

  private final CommHandle comm;
  private final LeftPins pins;
  private final OwnThreads threads;

  /** The thread whose call is in progress. */
  private volatile Thread caller;

  /** Calls begun so far; written by the caller alone. */
  private long calls;

  /** Of the call in progress, when a recording wants it; the caller's alone. */
  private CollectiveEvent event;

  /** The value of {@link #calls} at the watcher's last look, or -1. */
  private long watchedCalls = -1;

  private volatile boolean closed;

  private volatile boolean isOwned;

  /** What an abort that a user asks for ends too, or null. */
  private volatile Endpoint abortedToo;

  /** Made on first use. */
  private volatile RankLists lists;

  /** Made on first use; the caller's alone. */
  private CallWords words;

  /**
   * Takes over a native handle.
   *
   * @param handle a {@code wl_comm_t*}
   */
  public Endpoint(long handle) {
    this.handle = handle;
    this.rank = Native.wl_comm_rank(handle);
    this.size = Native.wl_comm_size(handle);
    this.error = scratch.error();
    this.comm = new CommHandle(handle);
    this.pins = new LeftPins(comm);
    this.threads = new OwnThreads(rank);
    Watcher.add(this);
  }

  /** Keeps the native handle valid until {@link #release}, even once the communicator is gone. */
  public void retain() {
    comm.pin();
  }

  public void release() {
    comm.unpin();
  }

  /** Where the one caller puts the lists of its call. */
  public RankLists lists() {
    RankLists made = lists;
    return made != null ? made : makeLists();
  }

  /** Where the one caller puts words that describe its call. */
  public CallWords words() {
    if (words == null) {
      words = new CallWords();
    }
    return words;
  }

  private synchronized RankLists makeLists() {
    if (lists == null) {
      lists = new RankLists(size);
    }
    return lists;
  }

  /** A native call with an out-parameter of 8 bytes. */
  @FunctionalInterface
  public interface NativeCall {
    int call(long out, long error);
  }

  /**
   * Makes a collective call that names no memory of the caller's. The caller keeps the communicator
   * reachable.
   *
   * @return its out-parameter
   */
  public long call(NativeCall nativeCall) {
    return call(nativeCall, this::failure);
  }

  /** {@link #call} of what is called on a communicator that has failed. */
  public long callAfterFailure(NativeCall nativeCall) {
    return call(nativeCall, () -> closed ? failure() : null);
  }

  /**
   * @param obstacle gives what keeps it from beginning where it is queued, null for nothing
   */
  private long call(NativeCall nativeCall, Supplier<RuntimeException> obstacle) {
    Thread thread = Thread.currentThread();
    if (mustHandOff(thread)) {
      return submit(() -> call(nativeCall, obstacle), obstacle).join();
    }
    try (Scratch arguments = Scratch.take()) {
      begin(thread);
      int code = nativeCall.call(arguments.out(), error);
      if (code != Native.WL_OK) {
        throw settle(code, null, null);
      }
      end();
      return arguments.outValue();
    }
  }

  /** Makes the collective that {@link #call} states. Returns its {@code wl_code}. */
  public int submit() {
    return Native.wl_submit(handle, call.address(), error);
  }

  /** Makes {@code thread} the one caller. */
  public void begin(Thread thread) {
    if (!CALLER.compareAndSet(this, null, thread)) {
      throw inUse();
    }
    CALLS.setOpaque(this, calls + 1);
    // The class of the event takes long to load: not before the first recording.
    if (EVENTS && FlightRecorder.isInitialized() && CollectiveEvent.wanted()) {
      try {
        event = CollectiveEvent.begin(handle);
      } catch (OutOfMemoryError e) {
        end();
        throw e;
      }
    }
  }

  /** Ends a call that succeeded or that never reached the native side. */
  public void end() {
    if (event != null) {
      finishEvent();
    }
    CALLER.setRelease(this, (Thread) null);
  }

  private void finishEvent() {
    CollectiveEvent recorded = event;
    event = null;
    try {
      recorded.finish(handle);
    } catch (OutOfMemoryError e) {
      CALLER.setRelease(this, (Thread) null);
      throw e;
    }
  }

  /**
   * Ends a call that failed. {@code a} and {@code b}, either of which may be null, are unpinned
   * once no rank can touch them.
   */
  public RuntimeException settle(int code, Lifetime a, Lifetime b) {
    try {
      return Failures.of(code, scratch.errorBuffer());
    } finally { // also where the heap has no room to say what failed
      unpinOnceQuiet(code, a, b);
      end();
    }
  }

  /** The same of {@code pinned}, of which some may be null. */
  public RuntimeException settle(int code, Lifetime[] pinned) {
    try {
      return Failures.of(code, scratch.errorBuffer());
    } finally {
      boolean quiet = comm.isQuietAfter(code);
      for (Lifetime each : pinned) {
        settle(each, quiet);
      }
      end();
    }
  }

  private void unpinOnceQuiet(int code, Lifetime a, Lifetime b) {
    boolean quiet = comm.isQuietAfter(code);
    settle(a, quiet);
    if (b != a) {
      settle(b, quiet);
    }
  }

  private void settle(Lifetime pinned, boolean quiet) {
    if (pinned == null) {
      return;
    }
    if (quiet) {
      pinned.unpin();
    } else {
      keepUntilQuiet(pinned);
    }
  }

  /** Unpins {@code pinned} once no rank can touch memory named in a failed operation. */
  public void keepUntilQuiet(Lifetime pinned) {
    pins.keep(pinned);
    Watcher.add(this);
  }

  /** Whether the communicator has failed. */
  public boolean failed() {
    return comm.failed();
  }

  /** The failure record as an exception, or null while the communicator lives. */
  public WindlassException failure() {
    return comm.failure();
  }

  /** Ends the communicator on every rank, unless it has ended. */
  public void abort(String reason) {
    comm.abort(reason);
  }

  /**
   * Ends the communicator on every rank, unless it has ended, as a failure of {@code faultyRanks},
   * where {@link #abort} names this rank.
   *
   * @param code a {@code wl_code} other than Ok
   */
  public void fail(int code, List<Integer> faultyRanks, String message) {
    comm.fail(code, faultyRanks, message);
  }

  /** Lets {@link #abortAsAsked} end {@code other} too, which may be null. */
  public void abortsToo(Endpoint other) {
    abortedToo = other;
  }

  /** {@link #abort} as a user asks for it: with the one that {@link #abortsToo} names. */
  public void abortAsAsked(String reason) {
    abort(reason);
    Endpoint too = abortedToo;
    if (too != null) {
      too.abortAsAsked(reason);
    }
  }

  /**
   * Ends the call in progress, waits until it has left, and leaves the communicator. Idempotent.
   *
   * @throws RuntimeException what the native close says, once the communicator is left
   */
  public void close() {
    RuntimeException failure = leave();
    if (failure != null) {
      throw failure;
    }
  }

  private RuntimeException leave() {
    try {
      return comm.leave();
    } finally {
      closed = true;
      threads.shutdown();
      pins.releaseCaptured();
      pins.drain();
      forgetIfDone();
    }
  }

  /** Closes, and lets go of the native handle once nothing retains it. */
  public void free() {
    leave(); // nobody is there to be told
    comm.end();
  }

  /**
   * Whether calls are queued on the communicator's own thread, or run there, and {@code caller} may
   * go on without them.
   */
  public boolean hasQueuedBeside(Thread caller) {
    return threads.hasQueuedBeside(caller);
  }

  void waits(Thread caller) {
    threads.waits(caller);
  }

  /** Marks it as a part of something else, which is reported instead if nobody closes it. */
  public void own() {
    isOwned = true;
  }

  public boolean isOwned() {
    return isOwned;
  }

  /**
   * Whether a thread of the communicator's own has made calls, or followed what was enqueued; or
   * one of those that came from it.
   */
  public boolean hasOwnThread() {
    return threads.areUsed();
  }

  /** Says which communicator this one came from. */
  public void cameFrom(Endpoint other) {
    threads.cameFrom(other.threads);
  }

  /** Whether a call from {@code thread} takes its turn behind others on the communicator's own. */
  public boolean mustQueue(Thread thread) {
    return threads.calls.precedes(thread);
  }

  /**
   * Whether a call from {@code thread} that may block runs on the communicator's own thread: others
   * are queued before it, or {@code thread} must not block.
   */
  public boolean mustHandOff(Thread thread) {
    return threads.calls.precedes(thread) || CallQueue.mustNotBlock(thread);
  }

  /**
   * Runs {@code call} on the communicator's own thread, after those queued before it; the caller
   * waits and may be interrupted.
   */
  public <T> T handOff(Supplier<T> call) {
    return submit(call).join();
  }

  /**
   * Queues {@code call} for the communicator's own thread.
   *
   * @param call keeps the communicator reachable
   */
  public <T> QueuedCall<T> submit(Supplier<T> call) {
    return submit(call, this::failure);
  }

  private <T> QueuedCall<T> submit(Supplier<T> call, Supplier<RuntimeException> obstacle) {
    QueuedCall<T> queued = new QueuedCall<>(this, threads.calls, obstacle, false, call);
    threads.calls.add(queued);
    return queued;
  }

  /**
   * Follows what a call has enqueued, on a thread beside the communicator's own.
   *
   * @param ticket of {@code wl_submit}
   * @param a pinned until it is over, or as long as this communicator if a graph holds it; or null
   * @param b the same; may be {@code a}
   * @param reachable kept so until it is over
   */
  public QueuedCall<Void> follow(long ticket, Lifetime a, Lifetime b, Object reachable) {
    if (ticket == 0) {
      pins.capture(a, b);
    }
    retain();
    QueuedCall<Void> following =
        new QueuedCall<>(
            this,
            threads.streams(),
            () -> null,
            true,
            () -> {
              try {
                awaitEnqueued(ticket, a, b);
              } finally {
                release();
              }
              Reference.reachabilityFence(reachable);
              return null;
            });
    threads.streams().add(following);
    return following;
  }

  private void awaitEnqueued(long ticket, Lifetime a, Lifetime b) {
    if (ticket == 0) {
      return;
    }
    try (Scratch scratch = Scratch.take()) {
      int code;
      do {
        code =
            Native.wl_enqueued_await(handle, ticket, LOOK_NS, scratch.out(), scratch.error());
      } while (code == Native.WL_OK && scratch.outValue() == 0);
      unpinOnceQuiet(code, a, b);
      Failures.check(code, scratch);
    }
  }

  /** The watcher's look, on its thread alone. True if it should look again soon. */
  boolean look() {
    if (!comm.pin()) {
      return false;
    }
    try {
      return lookAtCall();
    } finally {
      comm.unpin();
    }
  }

  private boolean lookAtCall() {
    Thread thread = caller;
    long begun = (long) CALLS.getOpaque(this);
    if (thread == null) {
      watchedCalls = -1;
    } else if (begun != watchedCalls) {
      watchedCalls = begun;
    } else if (thread.isInterrupted() && caller == thread && (long) CALLS.getOpaque(this) == begun) {
      abort(interrupted(thread));
      watchedCalls = -1;
    }
    pins.drain();
    forgetIfDone();
    return thread != null || pins.hasFailed();
  }

  String interrupted(Thread thread) {
    return "thread \"" + thread.getName() + "\" was interrupted in a call of rank " + rank;
  }

  private void forgetIfDone() {
    if (closed && !pins.hasFailed()) {
      Watcher.remove(this);
    }
  }

  private RuntimeException inUse() {
    Thread other = caller;
    return new InvalidArgumentException(
        "the communicator of rank " + rank + " is in a call of thread \""
            + (other == null ? "?" : other.getName())
            + "\"; one thread at a time may call operations on it");
  }
}
