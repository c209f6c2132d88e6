// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Reference;
import java.util.List;
import java.util.function.Supplier;
import jdk.jfr.FlightRecorder;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.Natives;
import org.windlass.internal.Scratch;
import org.windlass.internal.memory.Lifetime;

/**
 * One rank's native communicator and the state of its calls: the call in progress, its arguments,
 * and an error record. {@link OwnThreads} runs calls that must not run on their caller. An endpoint
 * does not refer to the public communicator object, so the cleaner frees the endpoint once that
 * object is unreachable.
 *
 * <p>A call begins with {@link #begin}. Then it calls the native function, with {@link #error}. It
 * ends with {@link #end} after success, and with {@link #settle} after a failure.
 */
public final class Endpoint {
  private static final VarHandle CALLER;
  private static final VarHandle CALLS;
  private static final boolean EVENTS = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

  /** Longest time of one wait for an operation on a stream, in nanoseconds. */
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

  /** Address of the {@code wl_error_t} for the call in progress. */
  public final long error;

  public final int rank;
  public final int size;

  public final Scratch scratch = Scratch.take();
  public final CallStruct call = new CallStruct();
  public final MessageCalls messages;

  private final CommHandle comm;
  private final LeftPins pins;
  private final OwnThreads threads;

  private volatile @Nullable Thread caller;

  /** Number of calls begun so far. Only the thread of the call in progress writes it. */
  private long calls;

  /** Flight Recorder event of the call in progress. Null if no recording has enabled it. */
  private @Nullable CollectiveEvent event;

  private long watchedCalls = -1;

  private volatile boolean closed;

  private volatile boolean isOwned;

  /** Another communicator that {@link #abortAsAsked} aborts too, or null. */
  private volatile @Nullable Endpoint abortedToo;

  private volatile @Nullable RankLists lists;

  private @Nullable CallWords words;

  /**
   * Takes ownership of a native communicator.
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
    this.messages = new MessageCalls(this, threads::noteUse);
    Watcher.add(this);
  }

  /** Keeps {@link #handle} valid until {@link #release}, even after the communicator has ended. */
  public void retain() {
    comm.pin();
  }

  public void release() {
    comm.unpin();
  }

  public RankLists lists() {
    RankLists made = lists;
    return made != null ? made : makeLists();
  }

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

  /**
   * Makes a collective call that uses no memory of the caller. The caller keeps the communicator
   * reachable.
   *
   * @return the result that the native call wrote
   */
  public long call(Natives.Call nativeCall) {
    return call(nativeCall, this::failure);
  }

  /** Makes a call as {@link #call(Natives.Call)} does, even if the communicator has failed. */
  public long callAfterFailure(Natives.Call nativeCall) {
    return call(nativeCall, () -> closed ? failure() : null);
  }

  /**
   * Makes a call, on this thread or on the communicator's own thread.
   *
   * @param obstacle returns the exception that ends a queued call instead of running it, or null
   */
  private long call(Natives.Call nativeCall, Supplier<@Nullable RuntimeException> obstacle) {
    Thread thread = Thread.currentThread();
    if (mustHandOff(thread)) {
      return submit(() -> call(nativeCall, obstacle), obstacle).join();
    }
    try (Scratch arguments = Scratch.take()) {
      begin(thread);
      int code = nativeCall.make(arguments.out(), error);
      if (code != Native.WL_OK) {
        throw settle(code, null, null);
      }
      end();
      return arguments.outValue();
    }
  }

  /** Runs the collective that {@link #call} describes. Returns its {@code wl_code}. */
  public int submit() {
    return Native.wl_submit(handle, call.address(), error);
  }

  /**
   * Begins a call of {@code thread}.
   *
   * @throws RuntimeException if another call is in progress
   */
  public void begin(Thread thread) {
    messages.requireNoGroup(thread);
    if (!CALLER.compareAndSet(this, null, thread)) {
      throw inUse();
    }
    CALLS.setOpaque(this, calls + 1);
    // Loading the event class takes long, so it waits for the first recording.
    if (EVENTS && FlightRecorder.isInitialized() && CollectiveEvent.wanted()) {
      try {
        event = CollectiveEvent.begin(handle);
      } catch (OutOfMemoryError e) {
        end();
        throw e;
      }
    }
  }

  /** Ends a call that succeeded, or that was not made. */
  public void end() {
    if (event != null) {
      finishEvent(event);
    }
    CALLER.setRelease(this, (Thread) null);
  }

  private void finishEvent(CollectiveEvent recorded) {
    event = null;
    try {
      recorded.finish(handle);
    } catch (OutOfMemoryError e) {
      CALLER.setRelease(this, (Thread) null);
      throw e;
    }
  }

  /**
   * Ends a call that failed, and returns its exception. Unpins {@code a} and {@code b}, which may
   * be null, once no rank can access them.
   */
  public RuntimeException settle(int code, @Nullable Lifetime a, @Nullable Lifetime b) {
    try {
      return Failures.of(code, scratch.errorBuffer());
    } finally { // also where the heap has no room to say what failed
      unpinOnceQuiet(code, a, b);
      end();
    }
  }

  /** Ends a failed call like {@link #settle(int, Lifetime, Lifetime)}. Elements may be null. */
  public RuntimeException settle(int code, @Nullable Lifetime[] pinned) {
    try {
      return Failures.of(code, scratch.errorBuffer());
    } finally {
      unpinOnceQuiet(code, pinned);
      end();
    }
  }

  /** Unpins the memory of a call that returned {@code code}, once no rank can access it. */
  void unpinOnceQuiet(int code, @Nullable Lifetime[] pinned) {
    boolean quiet = comm.isQuietAfter(code);
    for (Lifetime each : pinned) {
      settle(each, quiet);
    }
  }

  private void unpinOnceQuiet(int code, @Nullable Lifetime a, @Nullable Lifetime b) {
    boolean quiet = comm.isQuietAfter(code);
    settle(a, quiet);
    if (b != a) {
      settle(b, quiet);
    }
  }

  private void settle(@Nullable Lifetime pinned, boolean quiet) {
    if (pinned != null && quiet) {
      pinned.unpin();
    } else if (pinned != null) {
      keepUntilQuiet(pinned);
    }
  }

  /** Unpins {@code pinned} once no rank can access memory that a failed operation used. */
  public void keepUntilQuiet(Lifetime pinned) {
    pins.keep(pinned);
    Watcher.add(this);
  }

  public boolean failed() {
    return comm.failed();
  }

  public @Nullable WindlassException failure() {
    return comm.failure();
  }

  /** Ends the communicator on every rank as an abort by this rank, unless it has failed already. */
  public void abort(String reason) {
    comm.abort(reason);
  }

  /**
   * Ends the communicator on every rank, unless it has failed already.
   *
   * @param code a {@code wl_code} other than {@code WL_OK}
   * @param faultyRanks the ranks that the failure names
   */
  public void fail(int code, List<Integer> faultyRanks, String message) {
    comm.fail(code, faultyRanks, message);
  }

  public void abortsToo(@Nullable Endpoint other) {
    abortedToo = other;
  }

  /** Aborts this communicator for the user, and the one that {@link #abortsToo} has set. */
  public void abortAsAsked(String reason) {
    abort(reason);
    Endpoint too = abortedToo;
    if (too != null) {
      too.abortAsAsked(reason);
    }
  }

  /**
   * Aborts the call in progress, waits for its end, and leaves the communicator. Idempotent.
   *
   * @throws RuntimeException the failure that the native close reports, after this rank has left
   */
  public void close() {
    RuntimeException failure = leave();
    if (failure != null) {
      throw failure;
    }
  }

  private @Nullable RuntimeException leave() {
    try {
      return comm.leave();
    } finally {
      closed = true;
      threads.shutdown();
      messages.shutdown();
      pins.releaseCaptured();
      pins.drain();
      forgetIfDone();
    }
  }

  public void free() {
    leave(); // nobody is there to be told
    comm.end();
  }

  /** Returns true if calls are queued or run that {@code caller} does not wait for. */
  public boolean hasQueuedBeside(Thread caller) {
    return threads.hasQueuedBeside(caller);
  }

  void waits(@Nullable Thread caller) {
    threads.waits(caller);
  }

  /** Marks this communicator as part of another object. Leak reports name that object. */
  public void own() {
    isOwned = true;
  }

  public boolean isOwned() {
    return isOwned;
  }

  /** Returns true if this communicator, or one made from it, has started its own thread. */
  public boolean hasOwnThread() {
    return threads.areUsed();
  }

  public void cameFrom(Endpoint other) {
    threads.cameFrom(other.threads);
  }

  public boolean mustQueue(Thread thread) {
    return threads.calls.precedes(thread);
  }

  /**
   * Returns true if a blocking call from {@code thread} must run on the communicator's own thread:
   * other calls are queued, or {@code thread} is a virtual or ForkJoin thread.
   */
  public boolean mustHandOff(Thread thread) {
    return threads.calls.precedes(thread) || CallQueue.mustNotBlock(thread);
  }

  /**
   * Runs {@code call} on the communicator's own thread, after the calls queued before it, and
   * waits. An interrupt ends the wait, and aborts the communicator.
   */
  public <T> T handOff(Supplier<T> call) {
    return submit(call).join();
  }

  /** Runs a call without a result, as {@link #handOff(Supplier)} does. */
  public void handOff(Runnable call) {
    handOff(
        () -> {
          call.run();
          return true;
        });
  }

  /**
   * Queues {@code call} for the communicator's own thread, and returns at once.
   *
   * @param call must keep the communicator reachable
   */
  public <T> QueuedCall<T> submit(Supplier<T> call) {
    return submit(call, this::failure);
  }

  private <T> QueuedCall<T> submit(
      Supplier<T> call, Supplier<@Nullable RuntimeException> obstacle) {
    messages.requireNoGroup(Thread.currentThread());
    QueuedCall<T> queued = new QueuedCall<>(this, threads.calls, obstacle, false, call);
    threads.calls.add(queued);
    return queued;
  }

  /**
   * Waits for the end of an operation on a stream, on a thread that does nothing else.
   *
   * @param ticket the operation's number, which {@code wl_submit} returned
   * @param a memory that stays pinned until the operation is over, or as long as this communicator
   *     if a CUDA graph has captured it; or null
   * @param b a second memory like {@code a}; may be the same
   * @param reachable object that stays reachable until the operation is over
   */
  public QueuedCall<Void> follow(
      long ticket, @Nullable Lifetime a, @Nullable Lifetime b, Object reachable) {
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

  private void awaitEnqueued(long ticket, @Nullable Lifetime a, @Nullable Lifetime b) {
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

  /**
   * Ends the call in progress if its thread is blocked and was interrupted. Also unpins memory of
   * failed calls. Only the {@link Watcher} calls it. Returns true if it should be called again
   * soon.
   */
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
