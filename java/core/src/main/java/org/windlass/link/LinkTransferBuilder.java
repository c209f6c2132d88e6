// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SortedMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Gathered;
import org.windlass.internal.transfer.BoundTensor;
import org.windlass.internal.transfer.Moving;
import org.windlass.internal.transfer.Offer;
import org.windlass.internal.transfer.StepsMemo;
import org.windlass.internal.transfer.TargetViews;
import org.windlass.internal.transfer.Targets;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.TransferMode;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/**
 * Builder of a {@link LinkTransfer}. A rank adds the tensors of its own side, in any order. It adds
 * only the tensors of which it holds a part. {@link #register} matches the names of both sides.
 *
 * <p>Layouts use the ranks of the communicator that the link was opened on. Between two jobs, each
 * job uses its own ranks. Views may have any strides, like those of a {@link TransferBuilder}: a
 * part of a fused tensor is a {@code narrow}. One name may be received into several views (tied
 * embeddings).
 *
 * <p>A transfer over several links ({@link #and}) moves a version over all of them or over none. A
 * receiver commits a version once it is complete over all links. If two ranks have several links in
 * common, both name all of these links.
 *
 * <p>The methods that begin with {@code default} apply to tensors that are added after them.
 */
public final class LinkTransferBuilder {
  private record Share(
      Link link,
      List<Offer.Sent> sends,
      Map<String, Tensor> sources,
      List<TensorSpec> receives,
      List<Tensor> targets) {
    Share(Link link) {
      this(
          link, new ArrayList<>(), new LinkedHashMap<>(), new ArrayList<>(), new ArrayList<>());
    }
  }

  private static final int MOST_LINKS = 64;

  /** Tensors by link name. Links are registered in this order. */
  private final SortedMap<String, Share> shares = new TreeMap<>();

  private final Map<String, Link> bound = new HashMap<>();

  private Share share;
  private Moving moving = Moving.DEFAULT;
  private boolean inPlace;
  private boolean checksums;
  private boolean registered;

  /** The {@code default} method that was called after the last tensor was added; null for none. */
  private @Nullable String unused;

  LinkTransferBuilder(Link link) {
    share = new Share(link);
    shares.put(link.name(), share);
  }

  /**
   * Makes the tensors that are added after this call move over {@code link}, together with the
   * earlier ones.
   *
   * @param link a link over which this rank sends if it sends over the earlier links, or receives
   *     if it receives over them. At most 64 links move together; their names differ
   */
  public LinkTransferBuilder and(Link link) {
    Objects.requireNonNull(link, "link");
    if (registered) {
      throw new InvalidArgumentException("and: the builder was registered already; make another");
    }
    Link first = share.link;
    if (link.sends() != first.sends() || link.receives() != first.receives()) {
      throw new InvalidArgumentException(
          "and: this rank is on another side of " + link + " than of " + first);
    }
    Share known = shares.get(link.name());
    if (known != null && known.link != link) {
      throw new InvalidArgumentException(
          "and: the builder has " + known.link + " already, of the same name as " + link);
    }
    if (known == null && shares.size() == MOST_LINKS) {
      throw new InvalidArgumentException("and: the builder has " + MOST_LINKS + " links, which is"
          + " the maximum");
    }
    share = known != null ? known : new Share(link);
    shares.put(link.name(), share);
    return this;
  }

  /**
   * Sets the wire dtype ({@link TransferBuilder#defaultWire}) of tensors added after this call.
   * Only the senders' choice has an effect.
   */
  public LinkTransferBuilder defaultWire(DType dtype) {
    return choose("defaultWire", moving.withWire(dtype));
  }

  /**
   * Sets the bucket size ({@link TransferBuilder#defaultBucketBytes}) of tensors added after this
   * call. Only the senders' choice has an effect.
   */
  public LinkTransferBuilder defaultBucketBytes(long bytes) {
    return choose("defaultBucketBytes", moving.withBucketBytes(bytes));
  }

  /**
   * Sets the mode ({@link TransferBuilder#defaultMode}) of tensors added after this call. Only the
   * senders' choice has an effect.
   */
  public LinkTransferBuilder defaultMode(TransferMode mode) {
    return choose("defaultMode", moving.withMode(mode));
  }

  private LinkTransferBuilder choose(String call, Moving choice) {
    moving = choice;
    unused = share.link.sends() ? call : null; // a receiver's choice has no effect
    return this;
  }

  /**
   * Receives all versions into the caller's views, without a second copy of that memory. While a
   * version arrives, and after a failure, no version can be read.
   */
  public LinkTransferBuilder inPlace() {
    inPlace = true;
    return this;
  }

  /**
   * Verifies each version by checksums on all ranks. One rank that calls it is enough. If a
   * checksum differs, the send and the receive throw {@link
   * org.windlass.error.VerificationFailedException}, and no rank commits the version. For each
   * region, sender and receiver compute XXH64 of the values in the target: reduced, then rounded to
   * the wire dtype and to the target's dtype. The sender reads its sources once more, and the
   * receiver its targets. Device memory is copied through host memory for that.
   *
   * <p>{@link #register} throws {@link org.windlass.error.UnsupportedException} if the senders are
   * Python ranks. It also throws it if terms of a {@code Partial} are in several processes, outside
   * windows of {@link Link#communicator}.
   */
  public LinkTransferBuilder checksums() {
    checksums = true;
    return this;
  }

  /**
   * Adds a tensor to send.
   *
   * @param name name on both sides; used once on the sending side
   * @param shape shape of the whole tensor
   * @param source this rank's part; null if it has no elements
   * @param layout layout of the whole tensor over senders; may hold {@code Partial}
   */
  public LinkTransferBuilder add(
      String name, long[] shape, @Nullable Tensor source, Layout layout) {
    return add(spec(name, shape, source, layout), source);
  }

  /**
   * Adds a tensor to send, under the layout with which this job connected.
   *
   * @param source this rank's part. A rank whose part has no elements does not call it
   */
  public LinkTransferBuilder add(String name, long[] shape, Tensor source) {
    requireAll(name, shape);
    Objects.requireNonNull(source, "source");
    return add(name, shape, source, share.link.layout("add"));
  }

  /**
   * Adds a tensor to send, which may be padded.
   *
   * @param spec the whole tensor over senders; its name is used once on the sending side
   * @param source this rank's part; null if it has no elements
   */
  public LinkTransferBuilder add(TensorSpec spec, @Nullable Tensor source) {
    TensorSpec linked = linked("add", "source", true, spec, source);
    unused = null;
    if (source == null) {
      return this;
    }
    if (share.sources.putIfAbsent(spec.name(), source) != null) {
      throw new InvalidArgumentException("add: tensor '" + spec.name() + "' was added before");
    }
    share.sends.add(new Offer.Sent(linked, moving.of(source.dtype())));
    return this;
  }

  /**
   * Adds a tensor to receive. Read it by {@link LinkTransfer#tensor(String)} after each receive.
   *
   * @param name name on both sides; used once for each view
   * @param shape shape of the whole tensor, the same as the sender's
   * @param target this rank's part, of a dtype to which the sent one can be cast; null if it has no
   *     elements. Unless {@link #inPlace} was called, this view receives only every second version,
   *     beginning with the first
   * @param layout layout of the whole tensor over receivers; without {@code Partial}
   */
  public LinkTransferBuilder into(
      String name, long[] shape, @Nullable Tensor target, Layout layout) {
    return into(spec(name, shape, target, layout), target);
  }

  /**
   * Adds a tensor to receive, under the layout with which this job connected.
   *
   * @param target this rank's part. A rank whose part has no elements does not call it
   */
  public LinkTransferBuilder into(String name, long[] shape, Tensor target) {
    requireAll(name, shape);
    Objects.requireNonNull(target, "target");
    return into(name, shape, target, share.link.layout("into"));
  }

  /**
   * Adds a tensor to receive. It may be padded even if the sent one is not.
   *
   * @param spec the whole tensor over receivers; without {@code Partial}
   * @param target this rank's part, as in {@link #into(String, long[], Tensor, Layout)}
   */
  public LinkTransferBuilder into(TensorSpec spec, @Nullable Tensor target) {
    Objects.requireNonNull(spec, "spec");
    if (spec.layout().hasPartial()) {
      throw new InvalidArgumentException(
          "into: tensor '" + spec.name() + "' has layout " + spec.layout()
              + ", which holds Partial; a target holds values: use R or S");
    }
    TensorSpec linked = linked("into", "target", false, spec, target);
    if (target != null) {
      share.receives.add(linked);
      share.targets.add(target);
    }
    return this;
  }

  private static void requireAll(String name, long[] shape) {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(shape, "shape");
  }

  /**
   * Returns the description of a tensor with the dtype of {@code view}. If {@code view} is null,
   * the dtype does not matter, since peers don't use it.
   */
  private static TensorSpec spec(
      String name, long[] shape, @Nullable Tensor view, Layout layout) {
    return TensorSpec.of(name, view == null ? DType.U8 : view.dtype(), layout, shape);
  }

  /**
   * Returns {@code spec} with the link's rank numbers in its layout.
   *
   * @param call method for messages, such as {@code add}
   * @param role name of {@code view} in messages: {@code source} or {@code target}
   * @throws InvalidArgumentException if this rank is not on the side of the call, the view does not
   *     fit the layout, or another link has the tensor
   */
  private TensorSpec linked(
      String call, String role, boolean isSender, TensorSpec spec, @Nullable Tensor view) {
    if (registered) {
      throw new InvalidArgumentException(
          call + ": the builder was registered already; make another");
    }
    Objects.requireNonNull(spec, "spec");
    Link link = share.link;
    if (isSender ? !link.sends() : !link.receives()) {
      throw new InvalidArgumentException(
          call + ": this rank is not a " + (isSender ? "sender" : "receiver") + " of " + link);
    }
    String what = call + ": tensor '" + spec.name() + "'";
    Layout layout = link.ranks().linked(what, isSender, spec.layout());
    TensorSpec linked =
        new TensorSpec(spec.name(), spec.shape(), spec.dtype(), layout, spec.paddedShape());
    int own = link.ranks().counted(isSender, link.communicator().rank());
    BoundTensor.checkView(call, role, spec, view, own);
    Link other = bound.putIfAbsent(spec.name(), link);
    if (other != null && other != link) {
      throw new InvalidArgumentException(
          what + " is of " + other + "; a tensor belongs to one link");
    }
    return linked;
  }

  /**
   * Matches the tensors of both sides by name, and makes the plans. Collective over the links.
   * Throws the exceptions of {@link #register(Duration)}.
   */
  public LinkTransfer register() {
    return register(Deadline.DEFAULT);
  }

  /**
   * Registers as {@link #register()} does, with the given deadline.
   *
   * @throws MismatchException on every rank, if a name is only on one side, shapes differ, or ranks
   *     of a side disagree; the link goes on
   */
  public LinkTransfer register(Duration deadline) {
    return register(Deadline.nanos(deadline));
  }

  private LinkTransfer register(long deadlineNs) {
    if (registered) {
      throw new InvalidArgumentException("register: the builder was registered already");
    }
    Moving.requireUsed(unused, !bound.isEmpty());
    checkViews();
    List<Link> links = shares.values().stream().map(Share::link).toList();
    Link.enter("register", links);
    List<LinkPart> parts = new ArrayList<>();
    Share at = shares.values().iterator().next();
    try {
      Targets views = views();
      Deadline until = Deadline.of(deadlineNs);
      for (Share each : shares.values()) {
        at = each;
        parts.add(join(each, views, until));
      }
      int rounds = InnerLinks.rounds(parts, until);
      LinkTransfer transfer = new LinkTransfer(parts, rounds, views);
      links.forEach(link -> link.keep(transfer));
      return transfer;
    } catch (RuntimeException | Error e) {
      parts.forEach(LinkPart::close);
      throw failed(at, e);
    } finally {
      Link.leave(links);
    }
  }

  /**
   * Returns the exception of {@code register} for a failure on the link of {@code at}. Ends all
   * links, unless all ranks throw this failure.
   */
  private RuntimeException failed(Share at, Throwable failure) {
    List<Class<? extends WindlassException>> shared =
        List.of(
            MismatchException.class, UnsupportedException.class, InvalidArgumentException.class);
    String operation = at.link.operation("register"); // whose ranks the failure names
    for (Share each : shares.values()) {
      Link.end(each.link.communicator(), operation, failure, shared);
    }
    return Link.failed(at.link.communicator(), operation, failure, shared);
  }

  /**
   * Registers the tensors of one link, with one transfer for each memory half of the receivers.
   * Collective over the link.
   */
  private LinkPart join(Share share, Targets views, Deadline until) {
    Link link = share.link;
    byte[] offer = offer(share);
    registered = true;
    List<Transfer> transfers = new ArrayList<>();
    try {
      byte[][] offers =
          Gathered.bytes(link.communicator(), until::leftNs, Native.WL_OP_LINK_REGISTER, offer);
      Planned planned =
          link.hasPythonSenders()
              ? PythonTables.told(link, until, () -> planned(share, offers, views))
              : planned(share, offers, views);
      StepsMemo memo = link.memo();
      for (TransferBuilder half : planned.halves()) {
        transfers.add(half.register(true, memo, until.leftNs()));
      }
      Agreement agreement = planned.agreement();
      boolean isInner =
          link.handover() != null && agreement.isInner(0, link.ranks().firstReceiver());
      LinkPart part = new LinkPart(link, transfers, agreement.checksums(), isInner);
      part.checkSources(until);
      return part;
    } catch (RuntimeException | Error e) {
      transfers.forEach(Transfer::close);
      throw e;
    }
  }

  /**
   * The plans on which all ranks of a link have agreed.
   *
   * @param halves one builder for each memory half of the receivers, with the same tensors
   */
  record Planned(Agreement agreement, List<TransferBuilder> halves) {}

  private static Planned planned(Share share, byte[][] offers, Targets views) {
    Agreement agreement = new Agreement(offers, share.link.ranks()::named);
    List<TransferBuilder> halves = new ArrayList<>();
    for (int half = 0; half < (agreement.doubled() ? 2 : 1); half++) {
      halves.add(builder(share, agreement, views, half));
    }
    return new Planned(agreement, halves);
  }

  private Targets views() {
    List<TensorSpec> specs = new ArrayList<>();
    List<Tensor> targets = new ArrayList<>();
    for (Share each : shares.values()) {
      specs.addAll(each.receives);
      targets.addAll(each.targets);
    }
    return new Targets(specs, targets, inPlace);
  }

  private byte[] offer(Share share) {
    long links = shares.values().stream().filter(each -> each.link.handover() != null).count();
    byte[] offer =
        new Offer(checksums, inPlace, (int) links, share.sends, share.receives).encode();
    if (offer.length > Gathered.MOST_BYTES) {
      throw new InvalidArgumentException(
          "register: the list of this rank's tensors takes " + offer.length + " bytes, but the"
              + " limit is "
              + Gathered.MOST_BYTES + "; register them as several transfers");
    }
    return offer;
  }

  private void checkViews() {
    TargetViews views = new TargetViews();
    for (Share each : shares.values()) {
      each.sources.forEach(views::addSource);
      for (int i = 0; i < each.receives.size(); i++) {
        views.addTarget(each.receives.get(i).name(), each.targets.get(i));
      }
    }
    views.check();
  }

  /** Returns a builder of the agreed tensors, with targets in memory half 0 or 1. */
  private static TransferBuilder builder(Share share, Agreement agreement, Targets views,
      int half) {
    TransferBuilder builder = TransferBuilder.of(share.link.communicator());
    for (Agreement.Pair pair : agreement.pairs()) {
      Offer.Sent from = pair.from();
      builder.moving(from.moving());
      builder.add(
          from.spec(),
          share.sources.get(from.spec().name()),
          pair.to(),
          views.view(pair.to().name(), pair.view(), half));
    }
    return builder;
  }

  @Override
  public String toString() {
    return "LinkTransferBuilder of "
        + shares.values().stream().mapToInt(each -> each.sends.size()).sum()
        + " tensors to send and "
        + shares.values().stream().mapToInt(each -> each.receives.size()).sum() + " to receive";
  }
}
