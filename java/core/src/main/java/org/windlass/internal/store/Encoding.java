// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.util.UUID;

/** A sequence of writes that make up a value. */
@FunctionalInterface
public interface Encoding {
  void to(DataOutputStream out) throws IOException;

  /** Returns the bytes that {@code encoding} writes. */
  static byte[] bytes(Encoding encoding) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      encoding.to(out);
    } catch (IOException e) {
      throw new IllegalStateException(e); // only for a text of more than 64 KiB
    }
    return bytes.toByteArray();
  }

  /** Returns the reason why a value could not be read. */
  static String why(IOException failure) {
    return failure instanceof EOFException ? "it ends early" : failure.getMessage();
  }

  /** Writes 16 bytes. */
  static void putId(DataOutputStream out, UUID id) throws IOException {
    out.writeLong(id.getMostSignificantBits());
    out.writeLong(id.getLeastSignificantBits());
  }

  static UUID id(DataInputStream in) throws IOException {
    return new UUID(in.readLong(), in.readLong());
  }

  /** Writes the length of {@code bytes}, and then the bytes. Null is written as length -1. */
  static void putArray(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes == null ? -1 : bytes.length);
    if (bytes != null) {
      out.write(bytes);
    }
  }

  /** Reads an array. Its length is checked against the rest of {@code in}, a whole value. */
  static byte[] array(DataInputStream in) throws IOException {
    int length = in.readInt();
    if (length < 0 || length > in.available()) {
      throw new EOFException();
    }
    return in.readNBytes(length);
  }
}
