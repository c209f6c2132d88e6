// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.lang.ref.Reference;
import java.util.Arrays;
import java.util.List;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.MismatchException;
import org.windlass.Tensor;
import org.windlass.internal.Access;
import org.windlass.internal.Endpoint;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.Memory;
import org.windlass.internal.Native;
import org.windlass.internal.RankLists;

/** The words and bytes of all ranks, on every rank: steps of one of the C ABI's operations. */
final class Gathered {
  /** The most bytes that one rank gives. */
  static final int MOST_BYTES = 1 << 26;

  private Gathered() {}

  /** Collective: element {@code r} is what rank {@code r} gives; all ranks give as many words. */
  static long[][] words(Communicator ranks, Until until, int operation, long... own) {
    Tensor in = Tensor.allocate(DType.I64, own.length).copyFrom(own);
    Tensor out = Tensor.allocate(DType.I64, (long) ranks.size() * own.length);
    exchange(ranks, until, operation, in, out, null);
    long[] all = new long[Math.toIntExact(out.numel())];
    out.copyTo(all);
    in.close();
    out.close();
    long[][] words = new long[ranks.size()][];
    for (int rank = 0; rank < words.length; rank++) {
      words[rank] = Arrays.copyOfRange(all, rank * own.length, (rank + 1) * own.length);
    }
    return words;
  }

  /**
   * Collective: element {@code r} is what rank {@code r} gives; ranks that give the same share one
   * array, whose bytes one of them sends.
   *
   * @param own at most {@link #MOST_BYTES}
   * @throws MismatchException on every rank, if a rank says that it gives more
   */
  static byte[][] bytes(Communicator ranks, Until until, int operation, byte[] own) {
    Fingerprint fingerprint = new Fingerprint().add(own.length);
    for (byte b : own) {
      fingerprint.add(b);
    }
    long[][] heads = words(ranks, until, operation, fingerprint.value(), own.length);
    int[] sender = new int[heads.length];
    long[] counts = new long[heads.length];
    long total = 0;
    for (int rank = 0; rank < heads.length; rank++) {
      long[] head = heads[rank];
      if (head[1] < 0 || head[1] > MOST_BYTES) {
        throw new MismatchException(
            "rank "
                + rank
                + " says that it gives "
                + head[1]
                + " bytes, of at most "
                + MOST_BYTES
                + "; run one version of Windlass on all ranks",
            null,
            "",
            List.of(rank));
      }
      while (!Arrays.equals(heads[sender[rank]], head)) {
        sender[rank]++;
      }
      counts[rank] = sender[rank] == rank ? head[1] : 0;
      total += counts[rank];
    }
    int rank = ranks.rank();
    Tensor in = Tensor.allocate(DType.U8, counts[rank]);
    if (counts[rank] != 0) {
      in.copyFrom(own);
    }
    Tensor out = Tensor.allocate(DType.U8, total);
    exchange(ranks, until, operation, in, out, counts);
    byte[][] bytes = new byte[heads.length][];
    long at = 0;
    for (int r = 0; r < bytes.length; r++) {
      if (sender[r] == r) {
        bytes[r] = new byte[Math.toIntExact(counts[r])];
        out.narrow(0, at, counts[r]).copyTo(bytes[r]);
        at += counts[r];
      } else {
        bytes[r] = bytes[sender[r]];
      }
    }
    in.close();
    out.close();
    return bytes;
  }

  /**
   * Gathers {@code in} of all ranks, in order.
   *
   * @param counts the bytes of each rank's {@code in}; null where all give as many words
   */
  private static void exchange(
      Communicator ranks, Until until, int operation, Tensor in, Tensor out, long[] counts) {
    Endpoint own = Access.ENDPOINT.of(ranks);
    Thread thread = Thread.currentThread();
    if (own.mustHandOff(thread)) {
      own.handOff(
          () -> {
            exchange(ranks, until, operation, in, out, counts);
            return null;
          });
      return;
    }
    Memory source = Views.memory(in);
    Memory target = Views.memory(out);
    RankLists lists = own.lists();
    own.begin(thread);
    source.hold(); // made for this call: nobody has closed it
    target.hold();
    int code =
        counts == null
            ? Native.wl_exchange(
                own.handle,
                operation,
                in.address(),
                out.address(),
                in.numel(),
                until.leftNs(),
                own.error)
            : Native.wl_exchange_v(
                own.handle,
                operation,
                in.address(),
                in.numel(),
                out.address(),
                out.numel(),
                lists.put(0, counts),
                until.leftNs(),
                own.error);
    if (code != Native.WL_OK) {
      throw own.settle(code, source, target);
    }
    own.end();
    source.unpin();
    target.unpin();
    Reference.reachabilityFence(ranks);
  }
}
