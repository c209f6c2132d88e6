// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.windlass.Communicator;
import org.windlass.ErrorCode;
import org.windlass.MismatchException;
import org.windlass.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Gathered;

/**
 * The agreement of a communicator's ranks on whether they go on: what fails on one of them all get,
 * and nobody waits for a rank that has turned away.
 */
final class RankAgreement {
  private final Communicator communicator;
  private final int operation;
  private final String call;
  private final Deadline until;

  /**
   * @param operation whose steps these are, as the C ABI numbers it
   * @param call begins the messages
   */
  RankAgreement(Communicator communicator, int operation, String call, Deadline until) {
    this.communicator = communicator;
    this.operation = operation;
    this.call = call;
    this.until = until;
  }

  /**
   * Collective: runs {@code step} on each rank, and waits until all have.
   *
   * @throws WindlassException on every rank, if it failed on any: the failure of the first of them
   *     whose own it is, rather than what it got as others left
   */
  void carryOut(Runnable step) {
    Throwable own = null;
    try {
      step.run();
    } catch (RuntimeException | Error e) {
      own = e;
    }
    int[] codes =
        Arrays.stream(Gathered.words(communicator, this::leftNs, operation, code(own)))
            .mapToInt(words -> Math.toIntExact(words[0]))
            .toArray();
    int[] failed = IntStream.range(0, codes.length).filter(rank -> codes[rank] != 0).toArray();
    if (failed.length == 0) {
      return;
    }
    int first =
        Arrays.stream(failed)
            .filter(rank -> codes[rank] != ErrorCode.ABORTED.number())
            .findFirst()
            .orElse(failed[0]);
    String text = first == communicator.rank() ? text(own) : "";
    byte[][] texts = bytes(text.getBytes(StandardCharsets.UTF_8));
    String told = new String(texts[first], StandardCharsets.UTF_8);
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
  void requireSame(CommManifest manifest) {
    byte[][] texts = bytes(manifest.toJson());
    int other = 0;
    while (other < texts.length && Arrays.equals(texts[other], texts[0])) {
      other++;
    }
    if (other == texts.length) {
      return;
    }
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

  /** Collective: the bytes of each rank, of which there may be none. */
  private byte[][] bytes(byte[] own) {
    return Gathered.bytes(communicator, this::leftNs, operation, own);
  }

  private long leftNs() {
    return until.left().toNanos();
  }
}
