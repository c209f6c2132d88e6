// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.report.RankLook;
import org.windlass.internal.transfer.Alike;
import org.windlass.internal.transfer.BoundTensor;
import org.windlass.internal.transfer.Moving;
import org.windlass.internal.transfer.StepsMemo;
import org.windlass.internal.transfer.TargetViews;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Hosts;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;
import org.windlass.plan.TransferMode;

/**
 * Builds a {@link Transfer}, which redistributes tensors together. Each tensor is described by its
 * whole shape and its layouts before and after the transfer, and is bound to this rank's local
 * views. Every rank of the communicator adds the same tensors in the same order, and calls {@link
 * #register}. Plans depend on which ranks share a host.
 *
 * <p>A view holds this rank's piece in the layout's local order, with any strides. Use {@code
 * narrow} for a part of a fused tensor, and {@code select} for a part of a stack. A view is null on
 * a rank outside the layout's mesh, and may be null if the piece is empty. Several tensors may have
 * the same source, such as tied embeddings. Each target element must belong to exactly one tensor.
 */
public final class TransferBuilder {
  private final Communicator communicator;
  private Hosts hosts;
  private final List<BoundTensor> tensors = new ArrayList<>();
  private final Map<String, TensorSpec> sources = new HashMap<>();
  private Moving moving = Moving.DEFAULT;
  private boolean registered;

  /** The {@code default} method that was called after the last tensor was added; null for none. */
  private @Nullable String unused;

  private TransferBuilder(Communicator communicator) {
    this.communicator = communicator;
    try {
      this.hosts = Hosts.of(RankLook.hosts(communicator.endpoint()));
    } finally {
      Reference.reachabilityFence(communicator);
    }
  }

  /** Returns a builder without tensors, of a transfer among the ranks of {@code communicator}. */
  public static TransferBuilder of(Communicator communicator) {
    return new TransferBuilder(Objects.requireNonNull(communicator, "communicator"));
  }

  /**
   * Sets the wire dtype of the floating-point tensors that are added after this call: the dtype in
   * which their data crosses ranks. Without this call, it is {@link Plan#defaultWire}, which adds
   * no rounding.
   */
  public TransferBuilder defaultWire(DType dtype) {
    moving = moving.withWire(dtype);
    unused = "defaultWire";
    return this;
  }

  /** Sets the {@link TransferMode} of the tensors that are added after this call. */
  public TransferBuilder defaultMode(TransferMode mode) {
    moving = moving.withMode(mode);
    unused = "defaultMode";
    return this;
  }

  /** Sets {@link PlanOptions#bucketBytes()} of the tensors that are added after this call. */
  public TransferBuilder defaultBucketBytes(long bytes) {
    moving = moving.withBucketBytes(bytes);
    unused = "defaultBucketBytes";
    return this;
  }

  /** Makes later tensors be planned as if ranks lived on these hosts. */
  TransferBuilder hosts(Hosts hosts) {
    this.hosts = hosts;
    return this;
  }

  /**
   * Sets all defaults of the tensors that are added after this call. For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public TransferBuilder moving(Moving moving) {
    this.moving = moving;
    return this;
  }

  /**
   * Adds a tensor that keeps its name and dtype.
   *
   * @param shape extents of the whole tensor
   * @param from layout before the transfer
   * @param source this rank's piece under {@code from}, or null
   * @param to layout after the transfer, without {@code Partial}
   * @param target this rank's piece under {@code to}, or null
   */
  public TransferBuilder add(
      String name,
      long[] shape,
      DType dtype,
      Layout from,
      @Nullable Tensor source,
      Layout to,
      @Nullable Tensor target) {
    Objects.requireNonNull(from, "from");
    Objects.requireNonNull(to, "to");
    return add(
        TensorSpec.of(name, dtype, from, shape),
        source,
        TensorSpec.of(name, dtype, to, shape),
        target);
  }

  /**
   * Adds a tensor that may change its name, its dtype and its layout.
   *
   * @param from the tensor before the transfer; tensors with the same name must have equal specs
   * @param source this rank's piece of {@code from}, or null
   * @param to the tensor after the transfer: another dtype is a cast, another name is a renaming;
   *     its layout holds no {@code Partial}
   * @param target this rank's piece of {@code to}, or null
   */
  public TransferBuilder add(
      TensorSpec from, @Nullable Tensor source, TensorSpec to, @Nullable Tensor target) {
    if (registered) {
      throw new InvalidArgumentException("add: the builder was registered already; make another");
    }
    Objects.requireNonNull(from, "from");
    Objects.requireNonNull(to, "to");
    String name = from.name();
    TensorSpec known = sources.get(name);
    if (known != null && !known.equals(from)) {
      throw new InvalidArgumentException(
          "add: from: tensor '" + name + "' was added before as " + known + ", now as " + from);
    }
    if (!from.shape().equals(to.shape())) {
      throw new InvalidArgumentException(
          "add: to: tensor '" + to.name() + "' has shape " + to.shape() + ", from has "
              + from.shape());
    }
    if (to.layout().hasPartial()) {
      throw new InvalidArgumentException(
          "add: to: tensor '" + to.name() + "' has layout " + to.layout()
              + ", which holds Partial; a target holds values: use R or S");
    }
    checkMesh("from", from);
    checkMesh("to", to);
    Plan plan = plan(from, to);
    BoundTensor.checkView("add", "source", from, source, communicator.rank());
    BoundTensor.checkView("add", "target", to, target, communicator.rank());
    sources.put(name, from);
    unused = null;
    tensors.add(new BoundTensor(from, source, to, target, plan));
    return this;
  }

  private void checkMesh(String argument, TensorSpec spec) {
    int highest = spec.layout().mesh().highestRank();
    if (highest >= communicator.size()) {
      throw new InvalidArgumentException(
          "add: " + argument + ": tensor '" + spec.name() + "' has layout " + spec.layout()
              + ", which needs rank " + highest + "; the communicator has ranks 0 to "
              + (communicator.size() - 1));
    }
  }

  private Plan plan(TensorSpec from, TensorSpec to) {
    String name = "add: tensor '" + from.name() + "': ";
    if (from.dtype().code() < 0 || to.dtype().code() < 0) {
      throw new UnsupportedException(
          name + "elements of " + from.dtype() + " are less than a byte; bind them as u8");
    }
    try {
      DType wire = moving.wire(from.dtype(), to.dtype());
      PlanOptions options = moving.options().withTurn(tensors.size()).withHosts(hosts);
      return Plan.of(from, to, wire, options);
    } catch (InvalidArgumentException e) {
      throw new InvalidArgumentException(name + e.getMessage(), e);
    } catch (UnsupportedException e) {
      throw new UnsupportedException(name + e.getMessage(), e);
    }
  }

  /** Returns the plans of the tensors added so far, in the order of {@code add}. */
  public List<Plan> plans() {
    return tensors.stream().map(BoundTensor::plan).toList();
  }

  /** Returns the staging bytes that this rank needs for the tensors added so far. */
  public long stagingBytes() {
    return Plan.stagingBytes(plans(), communicator.rank());
  }

  /** Makes the transfer on all ranks. Collective. The builder can't be used afterwards. */
  public Transfer register() {
    return register(Deadline.DEFAULT);
  }

  /** Registers as {@link #register()} does, with the given deadline. */
  public Transfer register(Duration deadline) {
    return register(Deadline.nanos(deadline));
  }

  private Transfer register(long deadlineNs) {
    return register(false, new StepsMemo(), deadlineNs);
  }

  /**
   * Registers a transfer. For packages of Windlass.
   *
   * @param isOfLink true for a transfer of a link, whose ranks have compared their plans already
   * @hidden
   */
  @SuppressWarnings("exports")
  public Transfer register(boolean isOfLink, StepsMemo memo, long deadlineNs) {
    if (registered) {
      throw new InvalidArgumentException("register: the builder was registered already");
    }
    Moving.requireUsed(unused, !tensors.isEmpty());
    TargetViews views = new TargetViews();
    for (BoundTensor bound : tensors) {
      views.addSource(bound.from().name(), bound.source());
      views.addTarget(bound.to().name(), bound.target());
    }
    views.check();
    registered = true;
    if (isOfLink) {
      return Transfer.create(communicator, tensors, true, memo, deadlineNs); // all have planned it
    }
    Deadline until = Deadline.of(deadlineNs);
    requireAlike(until);
    return Transfer.create(communicator, tensors, false, memo, until.leftNs());
  }

  private void requireAlike(Deadline until) {
    int count = tensors.size();
    try {
      Alike.require(
          communicator,
          until,
          Native.WL_OP_REGISTER,
          tensors.stream().mapToLong(BoundTensor::fingerprint).toArray(),
          index ->
              index >= count
                  ? "adds no tensor " + (index + 1)
                  : "adds as tensor " + (index + 1) + " " + tensors.get(index).text());
    } catch (MismatchException e) {
      throw Failures.within("register", e);
    }
  }

  @Override
  public String toString() {
    return "TransferBuilder of " + tensors.size() + " tensors";
  }
}
