// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.Objects;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Operation;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.call.Endpoint;

/**
 * Expert parallelism over the ranks of a communicator, each of which has some experts of a mixture and
 * some tokens. A dispatch brings every token to the ranks of its experts, the caller works on the rows
 * that came, and a combine brings the results back, weighed and added up.
 *
 * <pre>{@code
 * try (var experts = ExpertParallel.open(comm, ExpertOptions.of(64, 6, 4096, 1024, BF16));
 *     var routing = experts.routing()) {
 *   experts.dispatch(routing, tokens, ids, weights);
 *   for (int e = 0; e < experts.localExperts(); e++) {
 *     work(e, routing.rows(e));                     // in place
 *   }
 *   experts.combine(routing, tokens);
 * }
 * }</pre>
 *
 * <p>Rows lie in the order of experts, then of the ranks that they are from, then of tokens, so that
 * they and the sums are the same in every run. A token is read once, whatever the number of its
 * experts, and written to each of its rows. A dispatch and a combine are operations of the communicator: collective, one at
 * a time, with its deadline and its failure record; once they have been called, they allocate nothing.
 *
 * <p>Rows hold what the last dispatch brought, by whatever routing, until the next one: a combine reads
 * them, or other tensors of their shape, from the ranks where they lie.
 */
public final class ExpertParallel implements AutoCloseable {
  private static final String DISPATCH = "expertDispatch";
  private static final String COMBINE = "expertCombine";

  /** How many routings have been made on a communicator. */
  private static final Map<Communicator, AtomicInteger> ROUTINGS =
      Collections.synchronizedMap(new WeakHashMap<>());

  private final Communicator communicator;
  private final Endpoint endpoint;
  private final ExpertOptions options;
  private final ExpertLayout layout;
  private final Window window;
  private final ExpertCall call;
  private final DistributedTensor rows;
  private final DistributedTensor scales;
  private final DistributedTensor sources;
  private final DistributedTensor weights;

  /** Whose rows {@link #rows} holds. */
  private final AtomicReference<ExpertRouting> last;

  private final long deadlineNs;

  /** The {@code wl_experts_t}, in {@link #layout}. */
  private final long shape;

  private ExpertParallel(
      Communicator communicator,
      ExpertOptions options,
      ExpertLayout layout,
      Window window,
      AtomicReference<ExpertRouting> last,
      long deadlineNs) {
    this.last = last;
    this.deadlineNs = deadlineNs;
    this.communicator = communicator;
    this.endpoint = communicator.endpoint();
    this.options = options;
    this.layout = layout;
    this.window = window;
    this.shape = NativeMemory.address(layout.experts());
    this.call = new ExpertCall(endpoint);
    DType dtype = options.quantised() ? DType.F8E4M3 : options.dtype();
    long count = options.rows();
    rows = window.tensorAt(0, dtype, count, options.hidden());
    scales =
        options.quantised()
            ? window.tensorAt(layout.scalesAt(), DType.F32, count, (options.hidden() + 127) / 128)
            : null;
    sources = window.tensorAt(layout.recordsAt(), DType.I32, count, 4).narrow(1, 0, 3);
    weights = window.tensorAt(layout.recordsAt(), DType.F32, count, 4).select(1, 3);
  }

  /**
   * Collective: makes room for the rows that come to each rank's experts. All ranks live on one
   * host: where they live on several, {@link #dispatch} is refused.
   *
   * @param options the same on all ranks
   * @throws InvalidArgumentException on all ranks if they aren't, or don't suit the communicator
   * @throws org.windlass.error.UnsupportedException if this target can't do what they ask for
   * @throws org.windlass.error.ResourceException if there is no memory for as many rows
   */
  public static ExpertParallel open(Communicator communicator, ExpertOptions options) {
    Objects.requireNonNull(communicator, "communicator");
    Objects.requireNonNull(options, "options");
    int ranks = communicator.size();
    ExpertAgreement.check(communicator, options);
    if (options.experts() % ranks != 0) {
      throw new InvalidArgumentException(
          "experts: there are " + options.experts() + " for " + ranks
              + " ranks; it must be a multiple of the ranks");
    }
    long most = options.mostRows(ranks);
    if (options.rows() == 0 && most > Integer.MAX_VALUE) {
      throw new InvalidArgumentException(
          "experts: up to " + most + " rows can come to a rank, which has room for "
              + Integer.MAX_VALUE + " at most; say how many with withRows");
    }
    ExpertOptions whole = options.rows() > 0 ? options : options.withRows(most);
    ExpertLayout layout = ExpertLayout.of(whole, ranks);
    return new ExpertParallel(
        communicator,
        whole,
        layout,
        rows(communicator, whole, layout),
        new AtomicReference<>(),
        Deadline.DEFAULT);
  }

  /** The next routing's: all ranks make those of a communicator in one order. */
  private static int number(Communicator communicator) {
    return ROUTINGS.computeIfAbsent(communicator, made -> new AtomicInteger()).getAndIncrement();
  }

  private static Window rows(
      Communicator communicator, ExpertOptions options, ExpertLayout layout) {
    try {
      return communicator.window(layout.bufferBytes());
    } catch (ResourceException e) {
      throw new ResourceException(
          "experts: there is no room for " + options.rows() + " rows on each rank, "
              + layout.bufferBytes() + " bytes; withRows makes it less: " + e.getMessage(),
          e);
    }
  }

  /**
   * The same experts, with the same rows and routings, under another deadline for each dispatch and
   * combine. Keep the result; closing either closes both.
   */
  public ExpertParallel withDeadline(Duration deadline) {
    long limitNs = Deadline.nanos(deadline);
    return new ExpertParallel(communicator, options, layout, window, last, limitNs);
  }

  /** What all ranks have alike, with as many rows as there is room for. */
  public ExpertOptions options() {
    return options;
  }

  /** How many experts this rank has. */
  public int localExperts() {
    return options.experts() / communicator.size();
  }

  /** The number of this rank's first expert among those of all ranks. */
  public int firstExpert() {
    return communicator.rank() * localExperts();
  }

  /**
   * Collective: where tokens of a dispatch go, to be used again and again; its memory is small beside
   * rows.
   */
  public ExpertRouting routing() {
    Window table = communicator.window(layout.tableBytes());
    return new ExpertRouting(this, table, layout, number(communicator));
  }

  /** [rows, hidden]: the rows of this rank's experts, of the tokens' dtype, or f8e4m3 quantised. */
  public DistributedTensor rows() {
    return rows;
  }

  /**
   * [rows, ceil(hidden / 128)] of f32: what elements of rows are multiplied by.
   *
   * @throws InvalidArgumentException where tokens go as they are
   */
  public DistributedTensor scales() {
    if (scales == null) {
      throw new InvalidArgumentException(
          "scales: tokens go as " + options.dtype() + "; only quantised ones have scales");
    }
    return scales;
  }

  /**
   * [rows, 3] of i32: the rank that a row is from, the token's number there, and which of the token's
   * experts this is. All three are -1 in the rows that alignment leaves between two experts.
   */
  public DistributedTensor sources() {
    return sources;
  }

  /** [rows] of f32: what the router weighs each row's expert by. */
  public DistributedTensor weights() {
    return weights;
  }

  /**
   * Collective: brings tokens to their experts.
   *
   * @param routing gets where they go; if the call is refused, it has no tokens
   * @param tokens [n, hidden] of the options' dtype, contiguous, apart from {@link #rows}; n may differ
   *     between ranks and be 0
   * @param ids [n, topK] of i32 or i64: an expert, or -1 for none, each at most once for a token
   * @param weights [n, topK] of f32, which a combine multiplies by; null for 1 each
   * @throws InvalidArgumentException if an id is no expert's, which it names with token and rank,
   *     before anything is sent; and on all ranks if the experts of any get more rows than it has room
   *     for, with nothing moved
   */
  public void dispatch(ExpertRouting routing, Tensor tokens, Tensor ids, Tensor weights) {
    requireGiven(routing, tokens);
    Objects.requireNonNull(ids, "ids");
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(() -> dispatch(routing, tokens, ids, weights));
      return;
    }
    requireOwn(DISPATCH, routing);
    long count = Matrices.rows(DISPATCH, "tokens", tokens, options.dtype(), options.hidden());
    if (ids.dtype().isFloating()) {
      throw new InvalidArgumentException(
          DISPATCH + ": ids is " + ids + "; it must be of i32 or i64, and weights come behind it");
    }
    DType ofIds = ids.dtype() == DType.I32 ? DType.I32 : DType.I64;
    Matrices.require(DISPATCH, "ids", ids, ofIds, count, options.topK());
    if (weights != null) {
      Matrices.require(DISPATCH, "weights", weights, DType.F32, count, options.topK());
    }
    begin(thread, DISPATCH, routing);
    call.pin(2, tokens, DISPATCH, "tokens");
    call.pin(3, ids, DISPATCH, "ids");
    call.pin(4, weights, DISPATCH, "weights");
    routing.clear();
    int code =
        Native.wl_experts_route(
            endpoint.handle,
            shape,
            routing.table().address(),
            routing.number(),
            count,
            ids.address(),
            ids.dtype().code(),
            weights == null ? 0 : weights.address(),
            endpoint.error);
    if (code == Native.WL_OK) {
      code = send(routing, tokens, count);
    }
    end(code, routing);
    Reference.reachabilityFence(ids);
    Reference.reachabilityFence(weights);
    Reference.reachabilityFence(tokens);
  }

  /**
   * Collective: brings tokens to where the last ones went by the same routing: as many on each rank, by
   * the same weights. Nothing is counted or sorted.
   */
  public void dispatch(ExpertRouting routing, Tensor tokens) {
    requireGiven(routing, tokens);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(() -> dispatch(routing, tokens));
      return;
    }
    requireOwn(DISPATCH, routing);
    long count = Matrices.rows(DISPATCH, "tokens", tokens, options.dtype(), options.hidden());
    begin(thread, DISPATCH, routing);
    call.pin(2, tokens, DISPATCH, "tokens");
    end(send(routing, tokens, count), routing);
    Reference.reachabilityFence(tokens);
  }

  /**
   * {@link #dispatch(ExpertRouting, Tensor, Tensor, Tensor)}, while the caller computes. Until it is over
   * the tensors stay open, and as they are.
   */
  public Operation<Void> dispatchAsync(
      ExpertRouting routing, Tensor tokens, Tensor ids, Tensor weights) {
    requireGiven(routing, tokens);
    Objects.requireNonNull(ids, "ids");
    return communicator.runAsync(operations -> dispatch(routing, tokens, ids, weights));
  }

  /** {@link #dispatch(ExpertRouting, Tensor)}, while the caller computes. */
  public Operation<Void> dispatchAsync(ExpertRouting routing, Tensor tokens) {
    requireGiven(routing, tokens);
    return communicator.runAsync(operations -> dispatch(routing, tokens));
  }

  /**
   * {@link #combine(ExpertRouting, DistributedTensor, Tensor)} of {@link #rows}, in place; not of
   * quantised ones.
   */
  public void combine(ExpertRouting routing, Tensor out) {
    if (options.quantised()) {
      throw new InvalidArgumentException(
          COMBINE + ": rows are quantised, and sums of them would lack their scales; give outputs, what"
              + " experts made of them, as a tensor of its own");
    }
    if (last.get() != null && last.get() != routing) {
      throw new InvalidArgumentException(
          COMBINE + ": rows hold what a dispatch by another routing brought since; combine before that,"
              + " or give outputs, what experts made of these, as a tensor of its own");
    }
    combine(routing, rows, out);
  }

  /**
   * Collective: brings what experts made of their rows to the ranks whose tokens those are. Token
   * {@code t} of {@code out} is the sum of weight times row over the token's experts in the order of
   * its ids, in f32, or f64 of f64, each step rounded, and once to the dtype; zeros where it has no
   * expert.
   *
   * @param routing of the dispatch
   * @param outputs [rows, hidden] in a window of the communicator: what experts made of the rows of the
   *     same number
   * @param out [n, hidden] of that dtype, contiguous, apart from {@code outputs}; of the n tokens of the
   *     dispatch
   */
  public void combine(ExpertRouting routing, DistributedTensor outputs, Tensor out) {
    requireGiven(routing, outputs, out);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(() -> combine(routing, outputs, out));
      return;
    }
    requireOwn(COMBINE, routing);
    DType dtype = outputs.dtype();
    Matrices.require(COMBINE, "outputs", outputs, dtype, options.rows(), options.hidden());
    long count = Matrices.rows(COMBINE, "out", out, dtype, options.hidden());
    Matrices.requireWritable(COMBINE, "out", out);
    if (outputs.window().communicator() != communicator) {
      throw new InvalidArgumentException(
          COMBINE + ": outputs (" + outputs + ") lies in a window of another communicator");
    }
    begin(thread, COMBINE, routing);
    call.pin(2, outputs, COMBINE, "outputs");
    call.pin(3, out, COMBINE, "out");
    end(
        Native.wl_experts_combine(
            endpoint.handle,
            routing.table().address(),
            outputs.address(),
            dtype.code(),
            out.address(),
            count,
            deadlineNs,
            endpoint.error),
        null);
    Reference.reachabilityFence(outputs);
    Reference.reachabilityFence(out);
  }

  /** {@link #combine(ExpertRouting, DistributedTensor, Tensor)}, while the caller computes. */
  public Operation<Void> combineAsync(
      ExpertRouting routing, DistributedTensor outputs, Tensor out) {
    requireGiven(routing, outputs, out);
    return communicator.runAsync(operations -> combine(routing, outputs, out));
  }

  /** Ends the use of its tensors on this rank. Idempotent. */
  @Override
  public void close() {
    window.close();
  }

  private int send(ExpertRouting routing, Tensor tokens, long count) {
    return Native.wl_experts_dispatch(
        endpoint.handle,
        routing.table().address(),
        rows.address(),
        tokens.address(),
        count,
        deadlineNs,
        endpoint.error);
  }

  private void begin(Thread thread, String what, ExpertRouting routing) {
    call.begin(thread);
    call.pinOwn(0, rows, what, ExpertParallel.class);
    call.pinOwn(1, routing.table(), what, ExpertRouting.class);
  }

  /** Ends the call; {@code routing}, which may be null, learns what it has found. */
  private void end(int code, ExpertRouting routing) {
    if (code == Native.WL_OK && routing != null) {
      routing.update();
      last.set(routing);
    }
    call.end(code);
    Reference.reachabilityFence(this);
  }

  private void handOff(Runnable body) {
    endpoint.handOff(
        () -> {
          body.run();
          return null;
        });
    Reference.reachabilityFence(this);
  }

  private static void requireGiven(ExpertRouting routing, Tensor tokens) {
    Objects.requireNonNull(routing, "routing");
    Objects.requireNonNull(tokens, "tokens");
  }

  private static void requireGiven(ExpertRouting routing, Tensor outputs, Tensor out) {
    Objects.requireNonNull(routing, "routing");
    Objects.requireNonNull(outputs, "outputs");
    Objects.requireNonNull(out, "out");
  }

  private void requireOwn(String what, ExpertRouting routing) {
    if (!routing.isOf(window)) {
      throw new InvalidArgumentException(
          what + ": routing is of other experts; take one that routing() of these has made");
    }
  }
}
