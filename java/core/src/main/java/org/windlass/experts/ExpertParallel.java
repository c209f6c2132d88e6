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
import org.jspecify.annotations.Nullable;
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
 * Expert parallelism over the ranks of a communicator. Each rank has some experts of a mixture and
 * some tokens. A dispatch copies every token to the ranks of its experts. The caller then computes
 * on the received rows. A combine returns the results, multiplied by the weights and added up.
 *
 * <pre>{@code
 * try (var experts = ExpertParallel.open(comm, ExpertOptions.of(64, 6, 4096, 1024, BF16));
 *     var routing = experts.routing()) {
 *   experts.dispatch(routing, tokens, ids, weights);
 *   for (int e = 0; e < experts.localExperts(); e++) {
 *     work(experts.firstExpert() + e, routing.rows(e)); // in place
 *   }
 *   experts.combine(routing, tokens);
 * }
 * }</pre>
 *
 * <p>Rows are ordered by expert, then by source rank, then by token. Rows and sums are therefore
 * the same in every run. A dispatch reads a token once, and writes it to each of its rows.
 *
 * <p>A dispatch and a combine are collective operations of the communicator. They run one at a
 * time, with its deadline. If one fails, the communicator is dead, as after other operations. After
 * their first calls, they allocate nothing.
 *
 * <p>There is one set of rows. It keeps the data of the last dispatch, of any routing, until the
 * next dispatch. A combine reads these rows, or the rows of another tensor of their shape in a
 * window, on the ranks that hold them.
 */
public final class ExpertParallel implements AutoCloseable {
  private static final String DISPATCH = "dispatch";
  private static final String COMBINE = "combine";

  private static final Map<Communicator, AtomicInteger> ROUTINGS =
      Collections.synchronizedMap(new WeakHashMap<>());

  private final Communicator communicator;
  private final Endpoint endpoint;
  private final ExpertOptions options;
  private final ExpertLayout layout;
  private final Window window;
  private final ExpertCall call;
  private final DistributedTensor rows;
  private final @Nullable DistributedTensor scales;
  private final DistributedTensor sources;
  private final DistributedTensor weights;

  /** The routing of the last dispatch, which wrote {@link #rows}; null before the first one. */
  private final AtomicReference<ExpertRouting> last;

  private final long deadlineNs;

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
   * Reserves memory for the rows of each rank's experts. The call is collective. All ranks must
   * live on one host; otherwise {@link #dispatch} throws UnsupportedException.
   *
   * @param communicator the ranks that take part
   * @param options the same on all ranks
   * @throws InvalidArgumentException on all ranks, if the options differ or don't suit the
   *     communicator
   * @throws org.windlass.error.UnsupportedException if this target does not support the options
   * @throws org.windlass.error.ResourceException if there is not enough memory for the rows
   */
  public static ExpertParallel open(Communicator communicator, ExpertOptions options) {
    Objects.requireNonNull(communicator, "communicator");
    Objects.requireNonNull(options, "options");
    int ranks = communicator.size();
    options.requireSame(communicator);
    if (options.experts() % ranks != 0) {
      throw new InvalidArgumentException(
          "experts: there are " + options.experts() + " for " + ranks
              + " ranks; the number must be a multiple of the number of ranks");
    }
    long most = options.mostRows(ranks);
    if (options.rows() == 0 && most > Integer.MAX_VALUE) {
      throw new InvalidArgumentException(
          "experts: up to " + most + " rows can arrive at a rank, which has room for "
              + Integer.MAX_VALUE + " at most; set the number of rows with withRows");
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

  /**
   * Returns the number of routings that the communicator has had before. It is the same on all
   * ranks.
   */
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
              + layout.bufferBytes() + " bytes; set fewer rows with withRows: " + e.getMessage(),
          e);
    }
  }

  /**
   * Returns an instance with the same experts, rows and routings, and another deadline for each
   * dispatch and combine. Keep the result for reuse. Closing either instance closes both.
   *
   * @param deadline limit of each call, from its start
   */
  public ExpertParallel withDeadline(Duration deadline) {
    long limitNs = Deadline.nanos(deadline);
    return new ExpertParallel(communicator, options, layout, window, last, limitNs);
  }

  /** Returns the options. {@code rows} is the actual number of rows, also if it was passed as 0. */
  public ExpertOptions options() {
    return options;
  }

  /** Returns the number of experts of this rank. */
  public int localExperts() {
    return options.experts() / communicator.size();
  }

  /** Returns the index of this rank's first expert among the experts of all ranks. */
  public int firstExpert() {
    return communicator.rank() * localExperts();
  }

  /**
   * Makes a routing: an object in which a dispatch stores the rows to which it sends each token.
   * The call is collective. A routing can be used repeatedly, and needs much less memory than the
   * rows.
   */
  public ExpertRouting routing() {
    Window table = communicator.window(layout.tableBytes());
    return new ExpertRouting(this, table, layout, number(communicator));
  }

  /**
   * Returns the rows of this rank's experts: [rows, hidden] in the tokens' dtype, or in f8e4m3 if
   * quantised.
   */
  public DistributedTensor rows() {
    return rows;
  }

  /**
   * Returns the scales of quantised rows: [rows, ceil(hidden / 128)] of f32. To get the values of a
   * row, multiply each 128 elements by their scale.
   *
   * @throws InvalidArgumentException if tokens are not quantised
   */
  public DistributedTensor scales() {
    if (scales == null) {
      throw new InvalidArgumentException(
          "scales: tokens are sent as " + options.dtype() + "; only quantised tokens have scales");
    }
    return scales;
  }

  /**
   * Returns the origin of each row: [rows, 3] of i32. The three numbers are the source rank, the
   * index of the token there, and the index of this expert in the token's list of experts. All
   * three are -1 in the unused rows that alignment leaves between two experts.
   */
  public DistributedTensor sources() {
    return sources;
  }

  /** Returns the weight of each row, as passed to the dispatch: [rows] of f32. */
  public DistributedTensor weights() {
    return weights;
  }

  /**
   * Copies tokens to the ranks of their experts. The call is collective.
   *
   * @param routing receives the result of this dispatch; the routing is empty if the call throws
   * @param tokens [n, hidden] of the options' dtype, contiguous, and not overlapping {@link #rows}.
   *     n may be 0, and may differ between ranks.
   * @param ids [n, topK] of i32 or i64: the index of an expert, or -1 for none. The ids of one
   *     token differ from each other, except for -1.
   * @param weights [n, topK] of f32: factors for a combine; null means 1 for all
   * @throws InvalidArgumentException if an id is not the index of an expert, before anything is
   *     sent; the message names the token and the rank. It is also thrown on all ranks if any rank
   *     has too little room for its rows; then nothing has moved
   */
  public void dispatch(ExpertRouting routing, Tensor tokens, Tensor ids, @Nullable Tensor weights) {
    Objects.requireNonNull(ids, "ids");
    dispatchBy(routing, tokens, ids, weights);
  }

  /**
   * Copies tokens to the experts of the last dispatch by this routing, with the same weights. The
   * call is collective. The call reuses the counts and the order of that dispatch.
   *
   * @param routing the routing of an earlier dispatch
   * @param tokens on each rank, the same number of tokens as in that dispatch
   */
  public void dispatch(ExpertRouting routing, Tensor tokens) {
    dispatchBy(routing, tokens, null, null);
  }

  private void dispatchBy(
      ExpertRouting routing, Tensor tokens, @Nullable Tensor ids, @Nullable Tensor weights) {
    requireGiven(routing, tokens);
    Thread thread = Thread.currentThread();
    if (endpoint.mustHandOff(thread)) {
      handOff(() -> dispatchBy(routing, tokens, ids, weights));
      return;
    }
    requireOwn(DISPATCH, routing);
    long count = Matrices.rows(DISPATCH, "tokens", tokens, options.dtype(), options.hidden());
    if (ids != null) {
      requireRoutes(ids, weights, count);
    }
    begin(thread, DISPATCH, routing);
    call.pin(2, tokens, DISPATCH, "tokens");
    call.pin(3, ids, DISPATCH, "ids");
    call.pin(4, weights, DISPATCH, "weights");
    int code = ids == null ? Native.WL_OK : route(routing, count, ids, weights);
    if (code == Native.WL_OK) {
      code =
          Native.wl_experts_dispatch(
              endpoint.handle,
              routing.table().address(),
              rows.address(),
              tokens.address(),
              count,
              deadlineNs,
              endpoint.error);
    }
    end(code, routing);
    Reference.reachabilityFence(ids);
    Reference.reachabilityFence(weights);
    Reference.reachabilityFence(tokens);
  }

  private void requireRoutes(Tensor ids, @Nullable Tensor weights, long count) {
    if (ids.dtype().isFloating()) {
      throw new InvalidArgumentException(
          DISPATCH + ": ids is " + ids + "; it must be of i32 or i64, and be followed by weights");
    }
    DType ofIds = ids.dtype() == DType.I32 ? DType.I32 : DType.I64;
    Matrices.require(DISPATCH, "ids", ids, ofIds, count, options.topK());
    if (weights != null) {
      Matrices.require(DISPATCH, "weights", weights, DType.F32, count, options.topK());
    }
  }

  private int route(ExpertRouting routing, long count, Tensor ids, @Nullable Tensor weights) {
    routing.clear();
    return Native.wl_experts_route(
        endpoint.handle,
        shape,
        routing.table().address(),
        routing.number(),
        count,
        ids.address(),
        ids.dtype().code(),
        weights == null ? 0 : weights.address(),
        endpoint.error);
  }

  /**
   * Starts {@link #dispatch(ExpertRouting, Tensor, Tensor, Tensor)} and returns, so that the caller
   * can compute. Until the operation ends, do not close or change the tensors.
   */
  public Operation<Void> dispatchAsync(
      ExpertRouting routing, Tensor tokens, Tensor ids, @Nullable Tensor weights) {
    requireGiven(routing, tokens);
    Objects.requireNonNull(ids, "ids");
    return communicator.runAsync(operations -> dispatch(routing, tokens, ids, weights));
  }

  /**
   * Starts {@link #dispatch(ExpertRouting, Tensor)} and returns, so that the caller can compute.
   * Until the operation ends, do not close or change the tensors.
   */
  public Operation<Void> dispatchAsync(ExpertRouting routing, Tensor tokens) {
    requireGiven(routing, tokens);
    return communicator.runAsync(operations -> dispatch(routing, tokens));
  }

  /**
   * Combines {@link #rows}: calls {@link #combine(ExpertRouting, DistributedTensor, Tensor)} with
   * them as {@code outputs}.
   *
   * @throws InvalidArgumentException if rows are quantised, or the last dispatch used another
   *     routing
   */
  public void combine(ExpertRouting routing, Tensor out) {
    if (options.quantised()) {
      throw new InvalidArgumentException(
          COMBINE + ": rows are quantised, and their sums would lack the scales; pass the"
              + " experts' results as outputs, in a tensor of their own");
    }
    if (last.get() != null && last.get() != routing) {
      throw new InvalidArgumentException(
          COMBINE + ": rows hold the data of a later dispatch by another routing; combine before"
              + " that dispatch, or pass the experts' results as outputs, in a tensor of their"
              + " own");
    }
    combine(routing, rows, out);
  }

  /**
   * Returns the experts' results to the ranks that hold the tokens. The call is collective.
   *
   * <p>Token {@code t} of {@code out} is the sum of weight times row over the token's experts, in
   * the order of its ids. The sum is in f32, or in f64 for f64 tokens. Each step is rounded, and
   * the result is rounded once to the dtype. For a token without experts, the result is zeros.
   *
   * @param routing the routing of the dispatch
   * @param outputs [rows, hidden] in a window of the communicator: the experts' results, with the
   *     row numbers of {@link #rows}
   * @param out [n, hidden] of the same dtype, contiguous, and not overlapping {@code outputs}; n is
   *     the number of tokens of the dispatch
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

  /**
   * Starts {@link #combine(ExpertRouting, DistributedTensor, Tensor)} and returns, so that the
   * caller can compute. Until the operation ends, do not close or change the tensors.
   */
  public Operation<Void> combineAsync(
      ExpertRouting routing, DistributedTensor outputs, Tensor out) {
    requireGiven(routing, outputs, out);
    return communicator.runAsync(operations -> combine(routing, outputs, out));
  }

  /** Closes this rank's memory for rows, and its tensors. Further calls have no effect. */
  @Override
  public void close() {
    window.close();
  }

  private void begin(Thread thread, String what, ExpertRouting routing) {
    call.begin(thread);
    call.pinOwn(0, rows, what, ExpertParallel.class);
    call.pinOwn(1, routing.table(), what, ExpertRouting.class);
  }

  /** Ends the call, and throws unless {@code code} is Ok. A combine passes no routing. */
  private void end(int code, @Nullable ExpertRouting routing) {
    if (code == Native.WL_OK && routing != null) {
      routing.update();
      last.set(routing);
    }
    call.end(code);
    Reference.reachabilityFence(this);
  }

  private void handOff(Runnable body) {
    endpoint.handOff(body);
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
          what + ": routing belongs to other experts; use one that routing() of these experts has"
              + " made");
    }
  }
}
