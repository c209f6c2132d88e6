// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.error.VerificationFailedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.memory.Memory;
import org.windlass.internal.transfer.BoundTensor;
import org.windlass.internal.transfer.Replicas;
import org.windlass.internal.transfer.StepsMemo;
import org.windlass.internal.transfer.TransferConfig;
import org.windlass.internal.transfer.TransferHandle;
import org.windlass.internal.transfer.TransferWords;
import org.windlass.internal.transfer.Views;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;
import org.windlass.plan.TransferMode;

/**
 * A transfer of tensors between layouts, bound to memory on every rank. {@link TransferBuilder}
 * makes it. Each {@link #run} moves every tensor once, in the {@link TransferMode} of its plan. The
 * memory of the views and of the staging buffers is not freed before {@link #close}.
 */
public final class Transfer implements AutoCloseable {
  /**
   * Passed to {@link #move} by a rank that accepts any version. For packages of Windlass.
   *
   * @hidden
   */
  public static final long ANY_VERSION = Native.WL_ANY_VERSION;

  /**
   * Passed to {@link #move} by a rank that has no further version. For packages of Windlass.
   *
   * @hidden
   */
  public static final long FINISHED = Native.WL_FINISHED;

  private final Communicator communicator;
  private final Endpoint endpoint;
  private final List<BoundTensor> tensors;
  private final TransferHandle handle;
  private final Memory[] memories;

  /** Views of the padding in this rank's targets: in host memory, then in device memory. */
  private final Tensor[] padding;

  private final Tensor[] devicePadding;
  private final Leaks.Resource bound;
  private final long[] tensorBytes;
  private final long totalBytes;
  private long lastVersion;

  private Transfer(
      Communicator communicator,
      List<BoundTensor> tensors,
      boolean isOfLink,
      TransferHandle handle,
      Memory[] memories) {
    this.communicator = communicator;
    this.endpoint = communicator.endpoint();
    this.tensors = tensors;
    this.handle = handle;
    this.memories = memories;
    this.padding = padding(tensors, communicator.rank(), false);
    this.devicePadding = padding(tensors, communicator.rank(), true);
    this.tensorBytes = tensors.stream().mapToLong(BoundTensor::targetBytes).toArray();
    this.totalBytes = Arrays.stream(tensorBytes).sum();
    String what = "Transfer of " + tensors.size() + " tensors of rank " + communicator.rank();
    this.bound = Leaks.watch(this, isOfLink ? null : what, handle::end);
  }

  private static Tensor[] padding(List<BoundTensor> tensors, int rank, boolean isOnDevice) {
    return tensors.stream()
        .flatMap(tensor -> tensor.padding(rank).stream())
        .filter(view -> view.isOnDevice() == isOnDevice)
        .toArray(Tensor[]::new);
  }

  /**
   * Creates a transfer on all ranks. Collective. {@code isOfLink} is true if a link closes the
   * transfer.
   */
  static Transfer create(
      Communicator communicator,
      List<BoundTensor> tensors,
      boolean isOfLink,
      StepsMemo memo,
      long deadlineNs) {
    Endpoint endpoint = communicator.endpoint();
    TransferConfig config =
        new TransferConfig(
            TransferWords.of(
                tensors,
                tensor -> binding(tensor.from(), tensor.source()),
                tensor -> binding(tensor.to(), tensor.target()),
                communicator.rank(),
                memo));
    Memory[] memories = hold(tensors);
    try {
      long handle =
          endpoint.call(
              (out, error) ->
                  Native.wl_transfer_create(
                      endpoint.handle, config.address(), deadlineNs, out, error));
      TransferHandle owner = new TransferHandle(handle, endpoint, memories);
      return new Transfer(communicator, List.copyOf(tensors), isOfLink, owner, memories);
    } catch (WindlassException e) {
      for (Memory memory : memories) {
        memory.unpin(); // registering touches no tensor
      }
      throw e;
    } finally {
      Reference.reachabilityFence(config);
      Reference.reachabilityFence(communicator);
    }
  }

  /**
   * Returns the encoded view, which is empty if this rank has no elements. Every rank encodes one
   * view for the source and one for the target of every tensor, so that indices are equal on all
   * ranks.
   */
  private static TransferWords.Binding binding(TensorSpec spec, @Nullable Tensor view) {
    if (view == null || view.numel() == 0) {
      return TransferWords.Binding.empty(spec);
    }
    Memory memory = view.memory();
    return new TransferWords.Binding(
        spec.dtype().code(),
        view.address(),
        memory.address,
        memory.bytes,
        view.shape(),
        view.strides());
  }

  /** Pins the memory of all views, each allocation once. Returns the pinned memory. */
  private static Memory[] hold(List<BoundTensor> tensors) {
    Map<Memory, Boolean> held = new LinkedHashMap<>();
    for (BoundTensor tensor : tensors) {
      for (Tensor view : new Tensor[] {tensor.source(), tensor.target()}) {
        if (view == null || held.containsKey(view.memory())) {
          continue;
        }
        if (!view.memory().hold()) {
          held.keySet().forEach(Memory::unpin);
          throw Views.closed(
              "register", "a view of tensor '" + tensor.from().name() + "'", view);
        }
        held.put(view.memory(), true);
      }
    }
    return held.keySet().toArray(new Memory[0]);
  }

  /**
   * Moves every tensor once. The version that errors and reports show is 1 in the first run, and
   * then one more than in the last run. Collective.
   */
  public void run() {
    run(lastVersion + 1);
  }

  /**
   * Moves every tensor once. Collective. When it returns, this rank's targets are complete.
   *
   * @param version number that errors and reports show; the same on every rank
   */
  public void run(long version) {
    run(version, Deadline.DEFAULT);
  }

  /** Runs as {@link #run(long)} does, with the given deadline. Collective. */
  public void run(long version, Duration deadline) {
    run(version, Deadline.nanos(deadline));
  }

  void run(long version, long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      endpoint.handOff(() -> run(version, deadlineNs));
      return;
    }
    begin(thread);
    try {
      ClosedException closed = closedView();
      if (closed != null) {
        endpoint.end();
        handle.unpin();
        throw closed;
      }
      int cleared = clearOnDevice();
      if (cleared != Native.WL_OK) {
        throw endpoint.settle(cleared, handle, null);
      }
      end(Native.wl_transfer_run(handle.handle, version, deadlineNs, endpoint.error));
      lastVersion = version;
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Moves every tensor once, as the version on which all ranks agree. Collective. A rank with a
   * closed view takes no part: the call throws there, and the caller must abort the communicator.
   *
   * @param number the number of the transfer's registration, the same on all ranks
   * @param named the version that this rank names, {@link #ANY_VERSION}, or {@link #FINISHED}
   * @param version element 0 receives the version that the ranks agree on, even if the call throws
   *     later; unchanged if nothing has moved
   * @hidden
   */
  public void move(long number, long named, long[] version, long deadlineNs) {
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      endpoint.handOff(() -> move(number, named, version, deadlineNs));
      return;
    }
    begin(thread);
    try {
      ClosedException closed = named == FINISHED ? null : closedView();
      if (closed == null) {
        int cleared = clearOnDevice();
        if (cleared != Native.WL_OK) {
          throw endpoint.settle(cleared, handle, null);
        }
      }
      long cell = endpoint.scratch.out(closed == null ? named : Native.WL_NO_VERSION);
      int code =
          Native.wl_transfer_move(handle.handle, number, cell, deadlineNs, endpoint.error);
      if (endpoint.scratch.outValue() != ANY_VERSION) {
        version[0] = endpoint.scratch.outValue();
      }
      if (closed != null) {
        endpoint.settle(code, handle, null);
        throw closed;
      }
      end(code);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Returns how many moves have begun to write to targets; {@link Long#MAX_VALUE} if the transfer
   * was closed. Thread-safe.
   *
   * @hidden
   */
  public long begun() {
    if (!handle.pin()) {
      return Long.MAX_VALUE;
    }
    try {
      return Native.wl_transfer_begun(handle.handle);
    } finally {
      handle.unpin();
      Reference.reachabilityFence(this);
    }
  }

  private void begin(Thread thread) {
    endpoint.begin(thread);
    if (!handle.pin()) {
      endpoint.end();
      throw new ClosedException("run: the transfer was closed");
    }
  }

  private void end(int code) {
    if (code != Native.WL_OK) {
      throw endpoint.settle(code, handle, null);
    }
    try {
      for (Tensor view : padding) {
        Views.zero(view); // the memory is pinned, and no peer writes there
      }
    } finally {
      endpoint.end();
      handle.unpin();
    }
  }

  /**
   * Sets padding in device memory to zero, before any data moves. Returns a {@code wl_code}. If
   * this fails, ends the communicator, so that no rank uses an incomplete target.
   */
  private int clearOnDevice() {
    int code = Native.WL_OK;
    for (int i = 0; i < devicePadding.length && code == Native.WL_OK; i++) {
      code = Views.zeroOnDevice(endpoint, devicePadding[i]);
    }
    return code;
  }

  /** Returns the exception for a view whose memory was closed; null if all memory is open. */
  private @Nullable ClosedException closedView() {
    for (Memory memory : memories) {
      if (!memory.usable()) {
        return closedView(memory);
      }
    }
    return null;
  }

  private ClosedException closedView(Memory memory) {
    for (BoundTensor tensor : tensors) {
      if (tensor.source() != null && tensor.source().memory() == memory) {
        String name = "source of tensor '" + tensor.from().name() + "'";
        return Views.closed("run", name, tensor.source());
      }
      if (tensor.target() != null && tensor.target().memory() == memory) {
        String name = "target of tensor '" + tensor.to().name() + "'";
        return Views.closed("run", name, tensor.target());
      }
    }
    return new ClosedException("run: a view's memory was closed");
  }

  /** Returns how much of the run in progress, or of the last one, has moved. Thread-safe. */
  public Progress progress() {
    long[] moved = moved(-1);
    int complete = 0;
    long bytes = 0;
    for (int i = 0; i < moved.length; i++) {
      complete += moved[i] == tensorBytes[i] ? 1 : 0;
      bytes += moved[i];
    }
    return new Progress(complete, moved.length, bytes, totalBytes);
  }

  /**
   * Returns the names of this rank's targets that the last run has not written completely. If the
   * transfer was closed, returns the names of all targets.
   *
   * @hidden
   */
  public List<String> incomplete() {
    int rank = communicator.rank();
    long[] moved = handle.ended() ? new long[tensors.size()] : moved(rank);
    Set<String> names = new LinkedHashSet<>();
    for (int i = 0; i < moved.length; i++) {
      if (moved[i] != tensors.get(i).targetBytes(rank)) {
        names.add(tensors.get(i).to().name());
      }
    }
    return List.copyOf(names);
  }

  /**
   * Returns the number of bytes written of each tensor: on {@code rank}, or on all ranks if {@code
   * rank} is -1.
   */
  private long[] moved(int rank) {
    return query("progress", () -> handle.moved(rank, tensors.size()));
  }

  /** Runs a native query on the open transfer. {@code what} is for messages. */
  private <T> T query(String what, Supplier<T> query) {
    if (!handle.pin()) {
      throw new ClosedException(what + ": the transfer was closed");
    }
    try {
      return query.get();
    } finally {
      handle.unpin();
      Reference.reachabilityFence(this);
    }
  }

  /** Returns the number of bytes that one run writes to targets of all ranks. */
  public long totalBytes() {
    return totalBytes;
  }

  /**
   * Returns the number of bytes of this rank's staging buffers. It is 0 in mode {@link
   * TransferMode#DIRECT}, unless this rank relays data between hosts.
   */
  public long stagingBytes() {
    return query("stagingBytes", () -> Native.wl_transfer_staging_bytes(handle.handle));
  }

  /**
   * Checks that ranks with the same part of a source hold the same bits. Collective. {@link #run}
   * does not check that.
   *
   * @throws VerificationFailedException on every rank; the message names the tensor, the index of
   *     the first element that differs, and both ranks
   */
  public void checkReplicas() {
    int[] ranks = IntStream.range(0, communicator.size()).toArray();
    new Replicas(Deadline.of(Deadline.DEFAULT), communicator, ranks, Layout::toString)
        .check(tensors);
  }

  /** Returns the plans of the tensors, in the order in which they were added. */
  public List<Plan> plans() {
    return tensors.stream().map(BoundTensor::plan).toList();
  }

  /**
   * Returns the tensors with this rank's views. For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public List<BoundTensor> tensors() {
    return tensors;
  }

  /**
   * Returns the native handle. For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public TransferHandle handle() {
    return handle;
  }

  /**
   * Closes the transfer, and returns at once. The views' memory is unpinned now, or after a run
   * that is in progress. Idempotent.
   */
  @Override
  public void close() {
    bound.close();
  }

  @Override
  public String toString() {
    return "Transfer of " + tensors.size() + " tensors, " + totalBytes + " bytes";
  }
}
