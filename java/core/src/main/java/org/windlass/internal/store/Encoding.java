// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.UUID;

/** What a value consists of, as it is written one thing after the other. */
@FunctionalInterface
public interface Encoding {
  void to(DataOutputStream out) throws IOException;

  /** What {@code encoding} writes. */
  static byte[] bytes(Encoding encoding) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      encoding.to(out);
    } catch (IOException e) {
      throw new IllegalStateException(e); // of a text beyond 64 KiB alone
    }
    return bytes.toByteArray();
  }

  /** What reading a value failed of. */
  static String why(IOException failure) {
    return failure instanceof EOFException ? "it ends early" : failure.getMessage();
  }

  /** Sixteen bytes. */
  static void putId(DataOutputStream out, UUID id) throws IOException {
    out.writeLong(id.getMostSignificantBits());
    out.writeLong(id.getLeastSignificantBits());
  }

  static UUID id(DataInputStream in) throws IOException {
    return new UUID(in.readLong(), in.readLong());
  }

  /** A length, and as many bytes. */
  static void putArray(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes.length);
    out.write(bytes);
  }

  /** Of no more bytes than {@code in} has, which is over a value. */
  static byte[] array(DataInputStream in) throws IOException {
    int length = in.readInt();
    if (length < 0 || length > in.available()) {
      throw new EOFException();
    }
    return in.readNBytes(length);
  }
}
