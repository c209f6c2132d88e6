// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ErrorCode;
import org.windlass.MismatchException;
import org.windlass.Tensor;
import org.windlass.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Fingerprint;

/**
 * The agreement of a communicator's ranks on whether they go on: what fails on one of them all get,
 * and nobody waits for a rank that has turned away.
 */
final class RankAgreement {
  private final Communicator communicator;
  private final Deadline until;

  RankAgreement(Communicator communicator, Deadline until) {
    this.communicator = communicator;
    this.until = until;
  }

  /**
   * Collective: runs {@code step} on each rank, and waits until all have.
   *
   * @param call begins the messages
   * @throws WindlassException on every rank, if it failed on any: the failure of the first of them
   *     whose own it is, rather than what it got as others left
   */
  void carryOut(String call, Runnable step) {
    Throwable own = null;
    try {
      step.run();
    } catch (RuntimeException | Error e) {
      own = e;
    }
    int[] codes = Arrays.stream(words(code(own))).mapToInt(Math::toIntExact).toArray();
    int[] failed = IntStream.range(0, codes.length).filter(rank -> codes[rank] != 0).toArray();
    if (failed.length == 0) {
      return;
    }
    int first =
        Arrays.stream(failed)
            .filter(rank -> codes[rank] != ErrorCode.ABORTED.number())
            .findFirst()
            .orElse(failed[0]);
    byte[] text = first == communicator.rank() ? utf8(text(own)) : new byte[0];
    String told = new String(bytes(text)[first], StandardCharsets.UTF_8);
    if (own instanceof Error error) {
      throw error;
    }
    boolean isOfAll = failed.length == codes.length;
    throw WindlassException.of(
        codes[first],
        call + ": " + (isOfAll ? "" : "rank " + first + ": ") + told,
        own,
        "",
        isOfAll ? List.of() : List.of(first));
  }

  private static long code(Throwable failure) {
    if (failure == null) {
      return 0;
    }
    ErrorCode code =
        failure instanceof WindlassException known
            ? known.code()
            : failure instanceof OutOfMemoryError ? ErrorCode.RESOURCE : ErrorCode.INTERNAL;
    return code.number();
  }

  private static String text(Throwable failure) {
    return failure instanceof WindlassException ? failure.getMessage() : failure.toString();
  }

  /**
   * Collective: holds the manifests of all ranks against that of rank 0.
   *
   * @throws MismatchException on every rank, if one differs
   */
  void requireSame(String call, CommManifest manifest) {
    byte[] json = manifest.toJson();
    Fingerprint fingerprint = new Fingerprint().add(json.length);
    for (byte b : json) {
      fingerprint.add(b);
    }
    long[] all = words(fingerprint.value());
    int other = 0;
    while (other < all.length && all[other] == all[0]) {
      other++;
    }
    if (other == all.length) {
      return;
    }
    boolean isNamed = communicator.rank() == 0 || communicator.rank() == other;
    byte[][] texts = bytes(isNamed ? json : new byte[0]);
    throw new MismatchException(
        call
            + ": ranks have different manifests: "
            + ManifestDifference.first(
                    "rank 0",
                    CommManifest.parse("rank 0", texts[0]),
                    "rank " + other,
                    CommManifest.parse("rank " + other, texts[other]))
                .orElse("they are written differently")
            + "; give all ranks one file",
        null,
        "",
        List.of(0, other));
  }

  /** Collective: the word of each rank. */
  private long[] words(long own) {
    long[] all = new long[communicator.size()];
    try (Tensor in = Tensor.allocate(DType.I64, 1).copyFrom(new long[] {own});
        Tensor out = Tensor.allocate(DType.I64, all.length)) {
      communicator.within(until.left()).allGather(in, out);
      out.copyTo(all);
    }
    return all;
  }

  /** Collective: the bytes of each rank, of which there may be none. */
  private byte[][] bytes(byte[] own) {
    long[] counts = words(own.length);
    byte[][] all = new byte[counts.length][];
    try (Tensor in = Tensor.allocate(DType.U8, own.length).copyFrom(own);
        Tensor out = Tensor.allocate(DType.U8, Arrays.stream(counts).sum())) {
      communicator.within(until.left()).allGatherv(in, out, counts);
      long at = 0;
      for (int rank = 0; rank < all.length; rank++) {
        all[rank] = new byte[Math.toIntExact(counts[rank])];
        out.narrow(0, at, counts[rank]).copyTo(all[rank]);
        at += counts[rank];
      }
    }
    return all;
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
