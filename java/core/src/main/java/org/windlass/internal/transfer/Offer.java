// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.List;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.TransferMode;

/**
 * The tensors and options with which one rank registers a transfer over a {@link
 * org.windlass.link.Link}. Each rank sends them to all others.
 *
 * @param checksums true if the rank asks for a verification of received data
 * @param inPlace true if the rank receives every version into the same memory
 * @param links number of links between jobs over which the rank's transfer moves
 * @param sends tensors that the rank sends, of which it holds a part
 * @param receives tensors of which the rank receives a part, one for each view
 */
public record Offer(
    boolean checksums, boolean inPlace, int links, List<Sent> sends,
    List<TensorSpec> receives) {
  /** Version of the encoding. Increase it with every change. */
  public static final int FORMAT = 4;

  /**
   * A tensor to send.
   *
   * @param moving options that the sender chose
   */
  public record Sent(TensorSpec spec, Moving moving) {
    static void put(DataOutputStream out, Sent sent) throws IOException {
      DType wire = sent.moving.wire();
      Offer.put(out, sent.spec);
      Encoding.putText(out, wire == null ? "" : wire.toString());
      Encoding.putText(out, sent.moving.options().mode().toString());
      out.writeLong(sent.moving.options().bucketBytes());
    }

    static Sent of(DataInputStream in) throws IOException {
      TensorSpec spec = Offer.spec(in);
      String wire = Encoding.text(in);
      TransferMode mode = TransferMode.parse(Encoding.text(in));
      Moving moving = Moving.DEFAULT.withMode(mode).withBucketBytes(in.readLong());
      return new Sent(spec, wire.isEmpty() ? moving : moving.withWire(DType.parse(wire)));
    }
  }

  public byte[] encode() {
    return Encoding.bytes(
        out -> {
          out.writeInt(FORMAT);
          out.writeBoolean(checksums);
          out.writeBoolean(inPlace);
          out.writeInt(links);
          Encoding.putList(out, sends, Sent::put);
          Encoding.putList(out, receives, Offer::put);
        });
  }

  /**
   * Decodes bytes that {@link #encode} made on {@code rank}. Throws MismatchException if they are
   * malformed.
   */
  public static Offer decode(int rank, byte[] bytes) {
    try {
      return Encoding.read(bytes, Offer::of);
    } catch (MalformedException | InvalidArgumentException e) {
      throw new MismatchException(
          "the list of tensors of rank " + rank + " can't be read: " + e.getMessage()
              + "; run one version of Windlass on all ranks",
          e,
          "",
          List.of(rank));
    }
  }

  private static Offer of(DataInputStream in) throws IOException {
    int format = in.readInt();
    if (format != FORMAT) {
      throw new IOException("format is " + format + ", here it is " + FORMAT);
    }
    return new Offer(
        in.readBoolean(), in.readBoolean(), in.readInt(), Encoding.list(in, Sent::of),
        Encoding.list(in, Offer::spec));
  }

  private static void put(DataOutputStream out, TensorSpec spec) throws IOException {
    Encoding.putText(out, spec.name());
    Encoding.putText(out, spec.dtype().toString());
    Encoding.putText(out, spec.layout().qualified());
    Encoding.putList(out, spec.shape(), DataOutputStream::writeLong);
    Encoding.putList(out, spec.paddedShape(), DataOutputStream::writeLong);
  }

  private static TensorSpec spec(DataInputStream in) throws IOException {
    String name = Encoding.text(in);
    DType dtype = DType.parse(Encoding.text(in));
    Layout layout = Layout.parse(Encoding.text(in));
    List<Long> shape = Encoding.list(in, DataInputStream::readLong);
    return new TensorSpec(
        name, shape, dtype, layout, Encoding.list(in, DataInputStream::readLong));
  }
}
