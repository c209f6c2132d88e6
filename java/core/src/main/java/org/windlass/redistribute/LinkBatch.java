// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.MismatchException;
import org.windlass.Tensor;
import org.windlass.UnsupportedException;
import org.windlass.WindlassException;
import org.windlass.internal.Deadlines;
import org.windlass.internal.Native;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.TransferMode;

/**
 * A batch of tensors of one {@link Link} that move together, each bound by a rank to the part that
 * it holds or takes. A rank names those of its own side alone, in any order, and only the ones that
 * it has a part of; {@link #register} finds each name's other side.
 *
 * <p>Layouts are by ranks as the communicator counts them that the link was made from. Views are
 * those of a {@link Batch}: strided as they may be, fused ones by {@code narrow}. One name may be
 * taken into several views (tied embeddings).
 */
public final class LinkBatch {
  private final Link link;
  private final int rank;
  private final List<Offer.Sent> sends = new ArrayList<>();
  private final Map<String, Tensor> sources = new LinkedHashMap<>();
  private final List<TensorSpec> receives = new ArrayList<>();
  private final List<Tensor> targets = new ArrayList<>();
  private Moving moving = Moving.DEFAULT;
  private boolean inPlace;
  private boolean checksums;
  private boolean registered;

  LinkBatch(Link link) {
    this.link = link;
    this.rank = link.communicator().rank();
  }

  /** {@link Batch#wire} of tensors that are added from here on; the sender's choice. */
  public LinkBatch wire(DType dtype) {
    moving = moving.withWire(dtype);
    return this;
  }

  /** {@link Batch#bucketBytes} of tensors that are added from here on; the sender's choice. */
  public LinkBatch bucketBytes(long bytes) {
    moving = moving.withBucketBytes(bytes);
    return this;
  }

  /** {@link Batch#mode} of tensors that are added from here on; the sender's choice. */
  public LinkBatch mode(TransferMode mode) {
    moving = moving.withMode(mode);
    return this;
  }

  /**
   * Receives straight into the views, with no second half: while a version arrives there is none to
   * read, and after a failure neither. {@link LinkTransfer} says what holds otherwise.
   */
  public LinkBatch inPlace() {
    inPlace = true;
    return this;
  }

  /**
   * Checks what arrives, on all ranks if one asks for it. For each region that a rank sends, sender
   * and receiver take XXH64 of its elements as the target is to hold them: reduced, rounded to the
   * wire dtype, then to the target's. So wherever wire and target have one dtype, of the values on
   * the wire. The sender reads its sources once more, the receiver its targets.
   */
  public LinkBatch checksums() {
    checksums = true;
    return this;
  }

  /**
   * Adds a tensor to send.
   *
   * @param name what both sides call it; once on the sending side
   * @param shape of the whole tensor
   * @param source this rank's part; null where it holds nothing
   * @param layout of the whole tensor over senders; may hold {@code Partial}
   */
  public LinkBatch add(String name, long[] shape, Tensor source, Layout layout) {
    return add(spec(name, shape, source, layout), source);
  }

  /**
   * Adds a tensor to send, which may be padded.
   *
   * @param spec the whole tensor over senders; its name once on the sending side
   * @param source this rank's part; null where it holds nothing
   */
  public LinkBatch add(TensorSpec spec, Tensor source) {
    TensorSpec linked = linked("add", "source", true, spec, source);
    if (source == null) {
      return this;
    }
    if (sources.putIfAbsent(spec.name(), source) != null) {
      throw new InvalidArgumentException("add: tensor '" + spec.name() + "' was added before");
    }
    sends.add(new Offer.Sent(linked, moving.of(source.dtype())));
    return this;
  }

  /**
   * Names a tensor to receive.
   *
   * @param name what both sides call it; once for each view
   * @param shape of the whole tensor, the same as the sender's
   * @param target this rank's part, of a dtype that the sent one casts to; null where it takes
   *     nothing. The first version goes here, and where there are two halves every second one
   * @param layout of the whole tensor over receivers; without {@code Partial}
   */
  public LinkBatch into(String name, long[] shape, Tensor target, Layout layout) {
    return into(spec(name, shape, target, layout), target);
  }

  /**
   * Names a tensor to receive, which may be padded, also where the sent one is not.
   *
   * @param spec the whole tensor over receivers; without {@code Partial}
   * @param target as of the other form
   */
  public LinkBatch into(TensorSpec spec, Tensor target) {
    Objects.requireNonNull(spec, "spec");
    if (spec.layout().hasPartial()) {
      throw new InvalidArgumentException(
          "into: tensor '"
              + spec.name()
              + "' has layout "
              + spec.layout().qualified()
              + ", which holds Partial; a target holds values: use R or S");
    }
    TensorSpec linked = linked("into", "target", false, spec, target);
    if (target != null) {
      receives.add(linked);
      targets.add(target);
    }
    return this;
  }

  /** A rank that holds nothing needs no dtype: nobody is told of it. */
  private static TensorSpec spec(String name, long[] shape, Tensor view, Layout layout) {
    return TensorSpec.of(name, view == null ? DType.U8 : view.dtype(), layout, shape);
  }

  /** The checked tensor by ranks of the link. */
  private TensorSpec linked(
      String call, String role, boolean isSender, TensorSpec spec, Tensor view) {
    if (registered) {
      throw new InvalidArgumentException(call + ": the batch is registered already; make another");
    }
    Objects.requireNonNull(spec, "spec");
    if (isSender ? !link.sends() : !link.receives()) {
      throw new InvalidArgumentException(
          call + ": this rank is no " + (isSender ? "sender" : "receiver") + " of " + link);
    }
    Layout layout = link.within(call + ": tensor '" + spec.name() + "'", isSender, spec.layout());
    TensorSpec linked =
        new TensorSpec(spec.name(), spec.shape(), spec.dtype(), layout, spec.paddedShape());
    BoundTensor.checkView(call, role, linked, view, rank);
    return linked;
  }

  /** Collective over the link: finds what the other side calls by the same names, and plans. */
  public LinkTransfer register() {
    return register(Deadlines.DEFAULT);
  }

  /**
   * {@link #register()} with a deadline of its own.
   *
   * @throws MismatchException on every rank, if a name stands on one side alone, shapes differ, or
   *     ranks of a side disagree; the link goes on
   */
  public LinkTransfer register(Duration deadline) {
    return register(Deadlines.nanos(deadline, WindlassException::of));
  }

  private LinkTransfer register(long deadlineNs) {
    if (registered) {
      throw new InvalidArgumentException("register: the batch is registered already");
    }
    checkViews();
    link.enter("register");
    List<Transfer> transfers = new ArrayList<>();
    try {
      Targets views = new Targets(receives, targets, inPlace);
      byte[] offer = offer();
      registered = true;
      boolean checked = join(offer, views, new Until(deadlineNs), transfers);
      return new LinkTransfer(link, transfers, views, checked);
    } catch (RuntimeException | Error e) {
      transfers.forEach(Transfer::close);
      throw Link.failed(
          link.communicator(),
          link.operation("register"),
          e,
          List.of(
              MismatchException.class,
              UnsupportedException.class,
              InvalidArgumentException.class));
    } finally {
      link.leave();
    }
  }

  /** What this rank's peers are told of it. */
  private byte[] offer() {
    byte[] offer = new Offer(checksums, inPlace, sends, receives).encode();
    if (offer.length > Gathered.MOST_BYTES) {
      throw new InvalidArgumentException(
          "register: the list of this rank's tensors takes "
              + offer.length
              + " bytes, of at most "
              + Gathered.MOST_BYTES
              + "; register them as several batches");
    }
    return offer;
  }

  /** Makes a transfer for each half; whether what arrives is checked. */
  private boolean join(byte[] offer, Targets views, Until until, List<Transfer> transfers) {
    Agreement agreement =
        new Agreement(
            Gathered.bytes(link.communicator(), until, Native.WL_OP_LINK_REGISTER, offer));
    for (int half = 0; half < (agreement.doubled() ? 2 : 1); half++) {
      transfers.add(batch(agreement, views, half).register(until.leftNs()));
    }
    return agreement.checksums();
  }

  private void checkViews() {
    List<BoundTensor> views = new ArrayList<>();
    for (Offer.Sent sent : sends) {
      Tensor source = sources.get(sent.spec().name());
      views.add(new BoundTensor(sent.spec(), source, sent.spec(), null, null));
    }
    for (int i = 0; i < receives.size(); i++) {
      views.add(new BoundTensor(receives.get(i), null, receives.get(i), targets.get(i), null));
    }
    TargetViews.check(views);
  }

  /** What all ranks agreed on, with this rank's views and the targets of one half. */
  private Batch batch(Agreement agreement, Targets views, int half) {
    Batch batch = Batch.of(link.communicator());
    for (Agreement.Pair pair : agreement.pairs()) {
      Offer.Sent from = pair.from();
      batch.moving(from.moving());
      batch.add(
          from.spec(),
          sources.get(from.spec().name()),
          pair.to(),
          views.view(pair.to().name(), pair.view(), half));
    }
    return batch;
  }

  @Override
  public String toString() {
    return "LinkBatch of "
        + sends.size()
        + " tensors to send and "
        + receives.size()
        + " to receive";
  }
}
