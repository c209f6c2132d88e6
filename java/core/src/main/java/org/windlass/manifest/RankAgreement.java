// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.error.ErrorCode;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.call.Gathered;

/**
 * Lets the ranks of a communicator agree on whether to continue. If a step fails on one rank, all
 * ranks throw its failure, so that no rank waits for one that has given up.
 */
final class RankAgreement {
  private final Communicator communicator;
  private final int operation;
  private final String call;
  private final LongSupplier leftNs;

  RankAgreement(Communicator communicator, int operation, String call, Deadline until) {
    this.communicator = communicator;
    this.operation = operation;
    this.call = call;
    this.leftNs = () -> until.left().toNanos();
  }

  /**
   * Runs {@code step} on each rank, and waits until all ranks have run it. The call is collective.
   *
   * @throws WindlassException on every rank, if the step failed on any rank. It is the failure of
   *     the lowest rank that failed for a reason of its own, and not because another rank aborted
   */
  void carryOut(Runnable step) {
    Throwable own = null;
    try {
      step.run();
    } catch (RuntimeException | Error e) {
      own = e;
    }
    int[] codes =
        Arrays.stream(Gathered.words(communicator, leftNs, operation, code(own)))
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
    String text = first == communicator.rank() ? text(Objects.requireNonNull(own)) : "";
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

  private static long code(@Nullable Throwable failure) {
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
    return failure instanceof WindlassException known ? known.getMessage() : failure.toString();
  }

  /**
   * Throws MismatchException on every rank, unless all have the same manifest and kind of memory.
   * Collective.
   */
  void requireSame(SlotMemory memory, CommManifest manifest) {
    byte[] json = manifest.toJson();
    byte[] own = Arrays.copyOf(json, json.length + 1);
    own[json.length] = (byte) memory.ordinal();
    byte[][] said = bytes(own);
    int other = 0;
    while (other < said.length && Arrays.equals(said[other], said[0])) {
      other++;
    }
    if (other == said.length) {
      return;
    }
    String how =
        memory(said[other]) == memory(said[0])
            ? "ranks have different manifests: "
                + ManifestJson.difference(
                        "rank 0",
                        manifest("rank 0", said[0]),
                        "rank " + other,
                        manifest("rank " + other, said[other]))
                    .orElse("they are written differently")
                + "; give all ranks one file"
            : "ranks want slots in different memory: rank 0 in that of " + memory(said[0])
                + ", rank " + other + " in that of " + memory(said[other])
                + "; call open on all ranks, or openOnDevices on all ranks";
    throw new MismatchException(call + ": " + how, null, "", List.of(0, other));
  }

  private static SlotMemory memory(byte[] said) {
    return SlotMemory.values()[said[said.length - 1]];
  }

  private static CommManifest manifest(String rank, byte[] said) {
    return CommManifest.parse(rank, Arrays.copyOf(said, said.length - 1));
  }

  /** Returns {@code own} of each rank, in rank order. It may be empty. The call is collective. */
  private byte[][] bytes(byte[] own) {
    return Gathered.bytes(communicator, leftNs, operation, own);
  }
}
