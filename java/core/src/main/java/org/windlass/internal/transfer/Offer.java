// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.internal.store.Encoding;
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
 * @param sends tensors that the rank sends, if it holds a part of them
 * @param receives tensors that the rank receives a part of, one for each view
 */
public record Offer(
    boolean checksums, boolean inPlace, int links, List<Sent> sends,
    List<TensorSpec> receives) {
  /** Version of the encoding. Increase it with every change. */
  public static final int FORMAT = 4;

  private static final int MOST = 1 << 24;

  /**
   * A tensor to send.
   *
   * @param moving options that the sender chose
   */
  public record Sent(TensorSpec spec, Moving moving) {}

  public byte[] encode() {
    return Encoding.bytes(
        out -> {
          out.writeInt(FORMAT);
          out.writeBoolean(checksums);
          out.writeBoolean(inPlace);
          out.writeInt(links);
          out.writeInt(sends.size());
          for (Sent sent : sends) {
            write(out, sent.spec);
            DType wire = sent.moving.wire();
            write(out, wire == null ? "" : wire.toString());
            write(out, sent.moving.options().mode().toString());
            out.writeLong(sent.moving.options().bucketBytes());
          }
          out.writeInt(receives.size());
          for (TensorSpec spec : receives) {
            write(out, spec);
          }
        });
  }

  /**
   * Decodes what {@link #encode} made on {@code rank}. Throws MismatchException if it is malformed.
   */
  public static Offer decode(int rank, byte[] bytes) {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      int format = in.readInt();
      if (format != FORMAT) {
        throw new InvalidArgumentException("format is " + format + ", here it is " + FORMAT);
      }
      boolean checksums = in.readBoolean();
      boolean inPlace = in.readBoolean();
      int links = in.readInt();
      List<Sent> sends = new ArrayList<>();
      for (int left = readCount(in); left > 0; left--) {
        TensorSpec spec = readSpec(in);
        String wire = readText(in);
        TransferMode mode = TransferMode.parse(readText(in));
        Moving moving = Moving.DEFAULT.withMode(mode).withBucketBytes(in.readLong());
        sends.add(
            new Sent(spec, wire.isEmpty() ? moving : moving.withWire(DType.parse(wire))));
      }
      List<TensorSpec> receives = new ArrayList<>();
      for (int left = readCount(in); left > 0; left--) {
        receives.add(readSpec(in));
      }
      if (in.available() != 0) {
        throw new InvalidArgumentException(in.available() + " bytes follow its end");
      }
      return new Offer(checksums, inPlace, links, sends, receives);
    } catch (EOFException e) {
      throw malformed(rank, "it ends early", e);
    } catch (IOException | InvalidArgumentException e) {
      throw malformed(rank, String.valueOf(e.getMessage()), e);
    }
  }

  private static MismatchException malformed(int rank, String why, Exception cause) {
    return new MismatchException(
        "the list of tensors of rank " + rank + " can't be read: " + why
            + "; run one version of Windlass on all ranks",
        cause,
        "",
        List.of(rank));
  }

  private static void write(DataOutputStream out, TensorSpec spec) throws IOException {
    write(out, spec.name());
    write(out, spec.dtype().toString());
    write(out, spec.layout().qualified());
    write(out, spec.shape());
    write(out, spec.paddedShape());
  }

  private static TensorSpec readSpec(DataInputStream in) throws IOException {
    String name = readText(in);
    DType dtype = DType.parse(readText(in));
    Layout layout = Layout.parse(readText(in));
    List<Long> shape = readExtents(in);
    return new TensorSpec(name, shape, dtype, layout, readExtents(in));
  }

  private static void write(DataOutputStream out, List<Long> extents) throws IOException {
    out.writeInt(extents.size());
    for (long extent : extents) {
      out.writeLong(extent);
    }
  }

  private static List<Long> readExtents(DataInputStream in) throws IOException {
    List<Long> extents = new ArrayList<>();
    for (int left = readCount(in); left > 0; left--) {
      extents.add(in.readLong());
    }
    return extents;
  }

  private static void write(DataOutputStream out, String text) throws IOException {
    Encoding.putArray(out, text.getBytes(StandardCharsets.UTF_8));
  }

  private static String readText(DataInputStream in) throws IOException {
    return new String(Encoding.array(in), StandardCharsets.UTF_8);
  }

  private static int readCount(DataInputStream in) throws IOException {
    int count = in.readInt();
    if (count < 0 || count > MOST) {
      throw new InvalidArgumentException("a count is " + count);
    }
    if (count > in.available()) {
      throw new EOFException();
    }
    return count;
  }
}
