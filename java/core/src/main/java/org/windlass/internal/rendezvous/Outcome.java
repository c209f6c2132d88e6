// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.function.IntFunction;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.Limits;
import org.windlass.internal.store.MalformedException;

/**
 * What is decided of a step of a start, for all of its ranks: a value, and further ones that have
 * the body where it is too long for that, as of thousands of ranks.
 *
 * @param start which rank 0 has opened
 * @param step empty where none is decided so far
 */
record Outcome(UUID start, String step, Kind kind, byte[] body) {
  /** What a step has come to. */
  enum Kind {
    /** Ranks may come; nothing is decided. */
    OPEN,
    /** All have said something. */
    SAID,
    FAILED
  }

  /** What a value has before a body, at most; steps have short names. */
  private static final int HEAD = 128;

  /** @param size of the start, as rank 0 counts its ranks */
  static Outcome open(UUID start, int size) {
    return new Outcome(start, "", Kind.OPEN, Encoding.bytes(out -> out.writeInt(size)));
  }

  /** What {@link #open} was given. */
  int size() throws IOException {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(body))) {
      return in.readInt();
    }
  }

  /** @param words of all ranks, in rank order */
  static Outcome said(UUID start, String step, List<Word> words) {
    byte[] body =
        Encoding.bytes(
            out -> {
              for (Word word : words) {
                Encoding.putId(out, word.member());
                Encoding.putArray(out, word.value());
              }
            });
    return new Outcome(start, step, Kind.SAID, body);
  }

  static Outcome failed(UUID start, String step, Failed why) {
    byte[] body =
        Encoding.bytes(
            out -> {
              out.writeInt(why.code());
              out.writeUTF(why.message());
              out.writeInt(why.culprits().size());
              for (int rank : why.culprits()) {
                out.writeInt(rank);
              }
            });
    return new Outcome(start, step, Kind.FAILED, body);
  }

  /** Why a step has failed. */
  record Failed(int code, String message, List<Integer> culprits) {}

  /** What a rank has said. */
  record Said(UUID member, byte[] value) {}

  /** The values that have it, of which the first tells how many there are. */
  List<byte[]> toValues() {
    boolean isWhole = body.length <= Limits.VALUE - HEAD;
    List<byte[]> further = new ArrayList<>();
    for (int from = 0; !isWhole && from < body.length; from += Limits.VALUE) {
      further.add(Arrays.copyOfRange(body, from, Math.min(body.length, from + Limits.VALUE)));
    }
    List<byte[]> values = new ArrayList<>();
    values.add(
        Encoding.bytes(
            out -> {
              Encoding.putId(out, start);
              out.writeUTF(step);
              out.writeByte(kind.ordinal());
              out.writeInt(further.size());
              if (isWhole) {
                out.write(body);
              }
            }));
    values.addAll(further);
    return values;
  }

  /**
   * What {@link #toValues} gave.
   *
   * @param further those behind the first, from 1 on
   */
  static Outcome of(byte[] first, IntFunction<byte[]> further) throws MalformedException {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(first))) {
      UUID start = Encoding.id(in);
      String step = in.readUTF();
      int kind = in.readUnsignedByte();
      int count = in.readInt();
      if (kind >= Kind.values().length || count < 0 || count > Limits.TOTAL / Limits.VALUE) {
        throw new MalformedException("an outcome of no kind, or of " + count + " values");
      }
      ByteArrayOutputStream body = new ByteArrayOutputStream();
      body.write(in.readAllBytes());
      for (int value = 1; value <= count; value++) {
        body.write(further.apply(value));
      }
      return new Outcome(start, step, Kind.values()[kind], body.toByteArray());
    } catch (MalformedException e) {
      throw e;
    } catch (IOException e) {
      throw new MalformedException("an outcome that ends early");
    }
  }

  /** What the first value says, without further ones; null for what is none, and for null. */
  static Outcome peek(byte[] first) {
    try {
      return first == null ? null : of(first, value -> new byte[0]);
    } catch (MalformedException e) {
      return null;
    }
  }

  /** What each of {@code size} ranks has said, in rank order. */
  List<Said> said(int size) throws IOException {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(body))) {
      List<Said> said = new ArrayList<>(size);
      for (int rank = 0; rank < size; rank++) {
        said.add(new Said(Encoding.id(in), Encoding.array(in)));
      }
      return said;
    }
  }

  /** @param size of the ranks that may be culprits */
  Failed why(int size) throws IOException {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(body))) {
      int code = in.readInt();
      String message = in.readUTF();
      int count = Math.min(Math.max(0, in.readInt()), size);
      List<Integer> culprits = new ArrayList<>(count);
      for (int i = 0; i < count; i++) {
        culprits.add(in.readInt());
      }
      return new Failed(code, message, culprits);
    }
  }
}
