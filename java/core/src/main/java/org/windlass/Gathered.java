// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.List;

/** Words and bytes of all ranks, on every rank: steps of one of the C ABI's operations. */
final class Gathered {
  /** The most bytes that one rank gives. */
  static final int MOST_BYTES = 1 << 26;

  private Gathered() {}

  /** Collective: element {@code r} is what rank {@code r} gives; all ranks give as many words. */
  static long[][] words(Collectives ranks, int operation, long... own) {
    Tensor in = Tensor.allocate(DType.I64, own.length).copyFrom(own);
    Tensor out = Tensor.allocate(DType.I64, (long) ranks.size() * own.length);
    ranks.exchange(operation, in, out);
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
  static byte[][] bytes(Collectives ranks, int operation, byte[] own) {
    Fingerprint fingerprint = new Fingerprint().add(own.length);
    for (byte b : own) {
      fingerprint.add(b);
    }
    long[][] heads = words(ranks, operation, fingerprint.value(), own.length);
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
    ranks.exchange(operation, in, out, counts);
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
}
