// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.List;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;

/**
 * First part of a process's values, or of all values.
 *
 * @param number number of the round
 * @param size number of all ranks, according to the writer
 * @param ranks ranks whose values these are
 * @param pieces number of pieces that follow
 * @param begin first bytes of the values; each value is written as an array
 */
record Head(int number, int size, List<Integer> ranks, int pieces, byte[] begin) {
  byte[] toBytes() {
    return Encoding.bytes(
        out -> {
          out.writeInt(number);
          out.writeInt(size);
          Encoding.putList(out, ranks, DataOutputStream::writeInt);
          out.writeInt(pieces);
          out.write(begin);
        });
  }

  static Head of(byte[] value, int rank) {
    return decoded(
        value, rank,
        in ->
            new Head(
                in.readInt(), in.readInt(), Encoding.list(in, DataInputStream::readInt),
                in.readInt(), in.readAllBytes()));
  }

  /** Reads a value that the process of {@code rank} has written. */
  static <T> T decoded(byte[] value, int rank, Encoding.Reading<T> reading) {
    try {
      return Encoding.read(value, reading);
    } catch (MalformedException e) {
      throw RoundFailures.unreadable(rank);
    }
  }
}
