// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.UUID;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;

/**
 * What a rank says in a step of a start.
 *
 * @param start that it takes part in; {@link #NO_START} where rank 0 has not opened one so far
 * @param member tells who says it from others that have or had its rank
 * @param value what it tells the others; empty where it has failed
 * @param refused what it has failed of; null for nothing
 */
record Word(UUID start, UUID member, String step, byte[] value, StartSteps.Refused refused) {
  static final UUID NO_START = new UUID(0, 0);

  private static final byte SAID = 0;
  private static final byte FAILED = 1;

  byte[] toBytes() {
    return Encoding.bytes(
        out -> {
          Encoding.putId(out, start);
          Encoding.putId(out, member);
          out.writeUTF(step);
          out.writeByte(refused == null ? SAID : FAILED);
          if (refused == null) {
            Encoding.putArray(out, value);
          } else {
            out.writeInt(refused.code());
            out.writeUTF(refused.message());
          }
        });
  }

  static Word of(byte[] bytes) throws MalformedException {
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      UUID start = Encoding.id(in);
      UUID member = Encoding.id(in);
      String step = in.readUTF();
      switch (in.readByte()) {
        case SAID -> {
          return new Word(start, member, step, Encoding.array(in), null);
        }
        case FAILED -> {
          StartSteps.Refused refused = new StartSteps.Refused(in.readInt(), in.readUTF());
          return new Word(start, member, step, new byte[0], refused);
        }
        default -> throw new MalformedException("a word of no kind");
      }
    } catch (MalformedException e) {
      throw e;
    } catch (IOException e) {
      throw new MalformedException("a word that ends early");
    }
  }

  /** Null for what is none, and for null. */
  static Word peek(byte[] bytes) {
    try {
      return bytes == null ? null : of(bytes);
    } catch (MalformedException e) {
      return null;
    }
  }
}
