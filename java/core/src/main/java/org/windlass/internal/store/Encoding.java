// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.windlass.error.WindlassException;

/** Writes the fields of a value, one after another. */
@FunctionalInterface
public interface Encoding {
  void to(DataOutputStream out) throws IOException;

  /** Writes one element of a list. */
  @FunctionalInterface
  interface Writing<T> {
    void to(DataOutputStream out, T element) throws IOException;
  }

  @FunctionalInterface
  interface Reading<T> {
    T from(DataInputStream in) throws IOException;
  }

  static byte[] bytes(Encoding encoding) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      encoding.to(out);
    } catch (IOException e) {
      throw new IllegalStateException(e); // only for a text of more than 64 KiB
    }
    return bytes.toByteArray();
  }

  /**
   * Reads a whole value.
   *
   * @throws MalformedException with the reason, if the value can't be read, or has more bytes than
   *     {@code reading} reads
   */
  static <T> T read(byte[] value, Reading<T> reading) throws MalformedException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(value));
    try {
      T read = reading.from(in);
      if (in.available() > 0) {
        throw new IOException("it has " + in.available() + " bytes too many");
      }
      return read;
    } catch (EOFException e) {
      throw new MalformedException("it ends early");
    } catch (IOException e) {
      throw new MalformedException(String.valueOf(e.getMessage()));
    }
  }

  static void putId(DataOutputStream out, UUID id) throws IOException {
    out.writeLong(id.getMostSignificantBits());
    out.writeLong(id.getLeastSignificantBits());
  }

  static UUID id(DataInputStream in) throws IOException {
    return new UUID(in.readLong(), in.readLong());
  }

  /** Writes the length of {@code bytes}, and then the bytes. Null is written as length -1. */
  static void putArray(DataOutputStream out, byte @Nullable [] bytes) throws IOException {
    out.writeInt(bytes == null ? -1 : bytes.length);
    if (bytes != null) {
      out.write(bytes);
    }
  }

  static void putArrays(DataOutputStream out, Iterable<byte[]> arrays) throws IOException {
    for (byte[] each : arrays) {
      putArray(out, each);
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

  static List<byte[]> arrays(DataInputStream in) throws IOException {
    List<byte[]> arrays = new ArrayList<>();
    while (in.available() > 0) {
      arrays.add(array(in));
    }
    return arrays;
  }

  static void putText(DataOutputStream out, String text) throws IOException {
    putArray(out, text.getBytes(StandardCharsets.UTF_8));
  }

  static String text(DataInputStream in) throws IOException {
    return new String(array(in), StandardCharsets.UTF_8);
  }

  /** Writes the number of elements, and then each of them. */
  static <T> void putList(DataOutputStream out, Collection<T> list, Writing<T> writing)
      throws IOException {
    out.writeInt(list.size());
    for (T each : list) {
      writing.to(out, each);
    }
  }

  /** Reads a list. Each element has at least one byte. {@code in} is a whole value. */
  static <T> List<T> list(DataInputStream in, Reading<T> reading) throws IOException {
    int count = in.readInt();
    if (count < 0 || count > in.available()) {
      throw new EOFException();
    }
    List<T> list = new ArrayList<>();
    while (list.size() < count) {
      list.add(reading.from(in));
    }
    return list;
  }

  static void putFailure(DataOutputStream out, WindlassException failure) throws IOException {
    out.writeInt(failure.code().number());
    putText(out, String.valueOf(failure.getMessage()));
    putList(out, failure.faultyRanks(), DataOutputStream::writeInt);
  }

  static WindlassException failure(DataInputStream in) throws IOException {
    return WindlassException.of(
        in.readInt(), Texts.printable(text(in)), list(in, DataInputStream::readInt));
  }
}
