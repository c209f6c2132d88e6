// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.lang.ref.Reference;
import java.util.Arrays;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.windlass.error.MismatchException;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.memory.Memory;

/**
 * Exchanges words or bytes between all ranks: every rank gets the data of all ranks. An exchange is
 * part of another operation. Callers pass the number of that operation in the C ABI, and a function
 * that returns the nanoseconds left until the deadline.
 */
public final class Gathered {
  /** Largest number of bytes that one rank may give. */
  public static final int MOST_BYTES = 1 << 26;

  private Gathered() {}

  /**
   * Gathers the words of all ranks. Collective. All ranks pass the same number of words.
   *
   * @param ranks a communicator
   * @param own this rank's words
   * @return an array whose element {@code r} has the words of rank {@code r}
   */
  public static long[][] words(EndpointOwner ranks, LongSupplier leftNs, int operation, long... own) {
    Endpoint endpoint = ranks.endpoint();
    Memory in = Memory.allocate((long) own.length * Long.BYTES);
    Memory out = Memory.allocate(endpoint.size * in.bytes);
    NativeMemory.buffer(in.address, in.bytes).asLongBuffer().put(own);
    exchange(ranks, leftNs, operation, in, out, null);
    long[][] words = new long[endpoint.size][own.length];
    for (int rank = 0; rank < words.length; rank++) {
      NativeMemory.buffer(out.address + rank * in.bytes, in.bytes).asLongBuffer().get(words[rank]);
    }
    in.end();
    out.end();
    return words;
  }

  /**
   * Gathers the bytes of all ranks. Collective. If several ranks give equal bytes, only one of them
   * sends the bytes, and their elements of the result share one array.
   *
   * @param ranks a communicator
   * @param own at most {@link #MOST_BYTES}; if a rank has more, every rank throws a mismatch
   * @return an array whose element {@code r} has the bytes of rank {@code r}
   */
  public static byte[][] bytes(EndpointOwner ranks, LongSupplier leftNs, int operation, byte[] own) {
    Endpoint endpoint = ranks.endpoint();
    Fingerprint fingerprint = new Fingerprint().add(own.length);
    for (byte b : own) {
      fingerprint.add(b);
    }
    long[][] heads = words(ranks, leftNs, operation, fingerprint.value(), own.length);
    int[] sender = new int[heads.length];
    long[] counts = new long[heads.length];
    for (int rank = 0; rank < heads.length; rank++) {
      long[] head = heads[rank];
      if (head[1] < 0 || head[1] > MOST_BYTES) {
        throw new MismatchException(
            "rank " + rank + " gives " + head[1] + " bytes, but the limit is " + MOST_BYTES
                + "; run one version of Windlass on all ranks",
            List.of(rank));
      }
      while (!Arrays.equals(heads[sender[rank]], head)) {
        sender[rank]++;
      }
      counts[rank] = sender[rank] == rank ? head[1] : 0;
    }
    Memory in = Memory.allocate(counts[endpoint.rank]);
    Memory out = Memory.allocate(Arrays.stream(counts).sum());
    NativeMemory.buffer(in.address, in.bytes).put(own, 0, (int) in.bytes);
    exchange(ranks, leftNs, operation, in, out, counts);
    byte[][] bytes = new byte[heads.length][];
    long at = out.address;
    for (int rank = 0; rank < bytes.length; rank++) {
      if (sender[rank] == rank) {
        bytes[rank] = new byte[Math.toIntExact(counts[rank])];
        NativeMemory.buffer(at, counts[rank]).get(bytes[rank]);
        at += counts[rank];
      } else {
        bytes[rank] = bytes[sender[rank]];
      }
    }
    in.end();
    out.end();
    return bytes;
  }

  /**
   * Gathers {@code in} of all ranks into {@code out}, in rank order.
   *
   * @param counts number of bytes of each rank; null if all ranks pass the same number of words
   */
  private static void exchange(
      EndpointOwner ranks,
      LongSupplier leftNs,
      int operation,
      Memory in,
      Memory out,
      long @Nullable [] counts) {
    Endpoint own = ranks.endpoint();
    Thread thread = Thread.currentThread();
    if (own.mustHandOff(thread)) {
      own.handOff(() -> exchange(ranks, leftNs, operation, in, out, counts));
      return;
    }
    long limitNs = leftNs.getAsLong();
    own.begin(thread);
    long listed;
    try {
      listed = counts == null ? 0 : own.lists().put(0, counts);
    } catch (Throwable failed) {
      own.end();
      throw failed;
    }
    in.hold(); // made for this call: nobody has ended it
    out.hold();
    long size = counts == null ? Long.BYTES : 1;
    own.call
        .of(operation, counts == null ? Native.WL_I64 : Native.WL_U8, limitNs)
        .in(in.address, in.bytes / size)
        .out(out.address, out.bytes / size)
        .equalParts(0, 0, 0, Native.WL_AUTO)
        .outParts(listed, 0);
    int code = own.submit();
    if (code != Native.WL_OK) {
      throw own.settle(code, in, out);
    }
    own.end();
    in.unpin();
    out.unpin();
    Reference.reachabilityFence(ranks);
  }
}
