// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.Shapes;
import org.windlass.internal.call.Gathered;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;
import org.windlass.internal.transfer.BoundTensor;
import org.windlass.internal.transfer.StepsMemo;
import org.windlass.internal.transfer.TransferWords;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;

/**
 * Computes the parts of a plan for Python ranks, which send over a link but make no plans. During
 * registration, each Python rank sends the addresses of its views. The first receiver computes the
 * {@link TransferWords} of each Python rank, and all ranks receive them. If the first receiver
 * throws, all ranks throw the same exception. docs/reference/python.md describes both encodings.
 */
final class PythonTables {
  /** Version of both encodings. Increase it with every change to one of them. */
  static final int FORMAT = 1;

  private static final byte MADE = 0;
  private static final byte REFUSED = 1;

  private static final int MOST_DIMS = Native.WL_MAX_DIMS;

  private PythonTables() {}

  /**
   * Returns the result of {@code plan}, after Python ranks have received their parts of the plan.
   * If {@code plan} throws on all receivers, Python ranks throw the same exception. Collective over
   * the link.
   */
  static LinkTransferBuilder.Planned told(Link link, Deadline until,
      Supplier<LinkTransferBuilder.Planned> plan) {
    byte[][] stated = gather(link, until, new byte[0]);
    boolean isPlanner = link.communicator().rank() == link.ranks().firstReceiver();
    LinkTransferBuilder.Planned planned = null;
    WindlassException refusal = null;
    byte[] own = {};
    try {
      planned = plan.get();
      Map<Integer, Map<String, TransferWords.Binding>> views = checked(link, planned, stated);
      if (isPlanner) {
        own = made(link, planned, views);
      }
    } catch (MismatchException | UnsupportedException | InvalidArgumentException e) {
      refusal = e;
      own = isPlanner ? refused(e) : own;
    }
    byte[] told = gather(link, until, own)[link.ranks().firstReceiver()];
    if (refusal == null && !isPlanner) {
      refusal = refusal(told).orElse(null);
    }
    if (refusal != null) {
      throw refusal;
    }
    return Objects.requireNonNull(planned);
  }

  private static byte[][] gather(Link link, Deadline until, byte[] own) {
    return Gathered.bytes(link.communicator(), until::leftNs, Native.WL_OP_LINK_REGISTER, own);
  }

  /**
   * Decodes the views of each Python rank, by rank and tensor name. Throws if one is malformed or
   * does not match that rank's part of the tensor.
   *
   * @param stated element {@code r} has the bytes that rank {@code r} has sent
   */
  private static Map<Integer, Map<String, TransferWords.Binding>> checked(
      Link link, LinkTransferBuilder.Planned planned, byte[][] stated) {
    if (planned.agreement().checksums()) {
      throw new UnsupportedException(
          "register: the senders are Python ranks, which make no checksums; leave checksums() out");
    }
    Map<String, TensorSpec> sent =
        planned.agreement().pairs().stream()
            .map(pair -> pair.from().spec())
            .collect(Collectors.toMap(TensorSpec::name, spec -> spec, (one, same) -> one));
    Map<Integer, Map<String, TransferWords.Binding>> views = new HashMap<>();
    for (int rank : link.ranks().senders()) {
      Map<String, TransferWords.Binding> own = decode(rank, stated[rank], sent.keySet());
      sent.values().forEach(spec -> check(link, rank, spec, own.get(spec.name())));
      views.put(rank, own);
    }
    return views;
  }

  /**
   * Decodes the views of a Python rank. The keys are tensor names.
   *
   * @param names names of the sent tensors
   * @throws MismatchException if the bytes are malformed
   */
  static Map<String, TransferWords.Binding> decode(
      int rank, byte[] bytes, Set<String> names) {
    try {
      return Encoding.read(bytes, in -> views(in, names));
    } catch (MalformedException e) {
      throw new MismatchException(
          "what Python rank " + rank + " says of its tensors can't be read: " + e.getMessage()
              + "; run one version of Windlass on all ranks",
          e,
          "",
          List.of(rank));
    }
  }

  private static Map<String, TransferWords.Binding> views(DataInputStream in, Set<String> names)
      throws IOException {
    int format = in.readInt();
    if (format != FORMAT) {
      throw new IOException("format is " + format + ", here it is " + FORMAT);
    }
    Map<String, TransferWords.Binding> views = new HashMap<>();
    for (int left = in.readInt(); left > 0; left--) {
      String name = Encoding.text(in);
      if (views.put(name, binding(in)) != null || !names.contains(name)) {
        throw new IOException("a tensor is there twice, or is not sent");
      }
    }
    return views;
  }

  private static TransferWords.Binding binding(DataInputStream in) throws IOException {
    long dtype = in.readLong();
    long ndim = in.readLong();
    if (ndim < 0 || ndim > MOST_DIMS) {
      throw new IOException("a view has " + ndim + " dimensions");
    }
    long address = in.readLong();
    long low = in.readLong();
    long bytes = in.readLong();
    return new TransferWords.Binding(
        (int) dtype, address, low, bytes, longs(in, (int) ndim), longs(in, (int) ndim));
  }

  private static long[] longs(DataInputStream in, int count) throws IOException {
    long[] longs = new long[count];
    for (int i = 0; i < count; i++) {
      longs[i] = in.readLong();
    }
    return longs;
  }

  /**
   * Throws InvalidArgumentException for a view that does not match {@code rank}'s part of the
   * tensor. {@code view} is null if the rank has sent none. A Python rank's number in the link is
   * the same as in its job.
   */
  private static void check(
      Link link, int rank, TensorSpec spec, TransferWords.@Nullable Binding view) {
    long[] local = spec.layout().mesh().contains(rank) ? spec.localShape(rank) : new long[] {0};
    if (view == null && Shapes.numel(local) == 0) {
      return;
    }
    if (view == null
        || view.dtype() != spec.dtype().code()
        || !Arrays.equals(view.shape(), local)) {
      throw new InvalidArgumentException(
          "register: source of tensor '" + spec.name() + "' on rank " + rank + " is "
              + (view == null ? "None" : named(view.dtype()) + Arrays.toString(view.shape()))
              + "; under " + link.ranks().named(true, spec.layout()) + " rank " + rank + " holds "
              + spec.dtype() + Arrays.toString(local),
          null,
          "",
          List.of(rank));
    }
  }

  /** Returns the name of dtype {@code code}, or a text with the number if it is unknown. */
  static String named(int code) {
    return Arrays.stream(DType.values())
        .filter(dtype -> code >= 0 && dtype.code() == code)
        .findFirst()
        .map(DType::toString)
        .orElse("dtype " + code);
  }

  private static byte[] made(
      Link link,
      LinkTransferBuilder.Planned planned,
      Map<Integer, Map<String, TransferWords.Binding>> views) {
    StepsMemo memo = link.memo();
    List<BoundTensor> tensors = tensors(planned);
    byte[] made =
        Encoding.bytes(
            out -> {
              out.writeInt(FORMAT);
              out.writeByte(MADE);
              out.writeInt(planned.halves().size());
              out.writeInt(views.size());
              for (int rank : link.ranks().senders()) {
                // These words serve all halves, because a Python rank sends the same data to each
                // half.
                Map<String, TransferWords.Binding> own =
                    Objects.requireNonNull(views.get(rank));
                long[] words =
                    TransferWords.of(
                        tensors,
                        tensor -> source(tensor.from(), own.get(tensor.from().name())),
                        tensor -> TransferWords.Binding.empty(tensor.to()),
                        rank,
                        memo);
                ByteBuffer bytes =
                    ByteBuffer.allocate(Math.multiplyExact(words.length, Long.BYTES));
                bytes.asLongBuffer().put(words);
                out.writeInt(rank);
                out.writeInt(words.length);
                out.write(bytes.array());
              }
            });
    if (made.length > Gathered.MOST_BYTES) {
      throw new InvalidArgumentException(
          "register: the parts of the plan for Python ranks take " + made.length
              + " bytes, but the limit is " + Gathered.MOST_BYTES
              + "; register the tensors as several transfers");
    }
    return made;
  }

  private static List<BoundTensor> tensors(LinkTransferBuilder.Planned planned) {
    List<Agreement.Pair> pairs = planned.agreement().pairs();
    List<Plan> plans = planned.halves().get(0).plans();
    return IntStream.range(0, pairs.size())
        .mapToObj(
            i ->
                new BoundTensor(
                    pairs.get(i).from().spec(), null, pairs.get(i).to(), null, plans.get(i)))
        .toList();
  }

  private static TransferWords.Binding source(
      TensorSpec spec, TransferWords.@Nullable Binding view) {
    return view == null || view.bytes() == 0 ? TransferWords.Binding.empty(spec) : view;
  }

  private static byte[] refused(WindlassException why) {
    return Encoding.bytes(
        out -> {
          out.writeInt(FORMAT);
          out.writeByte(REFUSED);
          Encoding.putFailure(out, why);
        });
  }

  /** Returns the exception that the first receiver has sent in {@code told}; empty for none. */
  private static Optional<WindlassException> refusal(byte[] told) {
    try {
      return Encoding.read(
          told,
          in -> {
            in.readInt();
            if (in.readByte() != MADE) {
              return Optional.of(Encoding.failure(in));
            }
            in.readAllBytes(); // the tables
            return Optional.empty();
          });
    } catch (MalformedException e) {
      return Optional.of(
          new MismatchException(
              "what the first receiver told of Python ranks can't be read: " + e.getMessage(),
              e));
    }
  }
}
