// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.windlass.Collectives;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.UnsupportedException;
import org.windlass.error.VerificationFailedException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Gathered;
import org.windlass.internal.transfer.BoundTensor;
import org.windlass.internal.transfer.SourceHash;
import org.windlass.internal.transfer.Views;
import org.windlass.plan.Chunk;
import org.windlass.plan.Plan;
import org.windlass.plan.Route;
import org.windlass.plan.Transport;
import org.windlass.transfer.Transfer;

/**
 * Verifies by checksums that the data of one run of a transfer has arrived. For each route, it
 * compares the XXH64 that the sender computes with that of each target. The sender hashes the
 * values that the targets should hold, after reduction and casts. The hash of each box of a region
 * is the seed for the next box.
 */
final class Checksums {
  private final Communicator communicator;
  private final Transfer transfer;
  private final SourceHash sourceHash;

  /** The routes whose data this rank sends, in the order of the transfer's tensors. */
  private final List<Piece> outgoing = new ArrayList<>();

  private final List<Piece> incoming = new ArrayList<>();

  private record Piece(int tensor, Chunk chunk) {}

  Checksums(Communicator communicator, Transfer transfer) {
    this.communicator = communicator;
    this.transfer = transfer;
    this.sourceHash = new SourceHash(transfer.handle());
    List<Plan> plans = transfer.plans();
    for (int tensor = 0; tensor < plans.size(); tensor++) {
      for (Chunk chunk : plans.get(tensor).chunksFor(communicator.rank())) {
        if (chunk.isSource() && chunk.transport() != Transport.NONE) {
          outgoing.add(new Piece(tensor, chunk));
        }
        if (chunk.isTarget()) {
          incoming.add(new Piece(tensor, chunk));
        }
      }
    }
  }

  /**
   * Checks that each sender can read the data on other ranks that it must hash. Collective, after
   * registration.
   *
   * @throws UnsupportedException on every rank, if a sender can't read a term
   */
  void checkSources(Deadline until) {
    if (transfer.tensors().stream().noneMatch(each -> each.from().layout().hasPartial())) {
      return;
    }
    long unread =
        outgoing.stream()
            .filter(piece -> !reads(piece))
            .mapToLong(Piece::tensor)
            .findFirst()
            .orElse(-1);
    long[][] all = Gathered.words(communicator, until::leftNs, Native.WL_OP_LINK_CHECK, unread);
    for (int rank = 0; rank < all.length; rank++) {
      if (all[rank][0] >= 0) {
        throw new UnsupportedException(
            "tensor '" + transfer.tensors().get((int) all[rank][0]).from().name() + "': rank "
                + rank
                + " can't compute the checksum of the sum that it sends, since terms are in other"
                + " processes, outside windows of the link's communicator; send tensors of such a"
                + " window, or don't use checksums",
            null,
            "",
            List.of(rank));
      }
    }
  }

  /**
   * Returns true if this rank can read the data of the route on all its source ranks. Tests this
   * with the first element of each.
   */
  private boolean reads(Piece piece) {
    if (piece.chunk.route().sources().size() == 1 || piece.chunk.boxes().isEmpty()) {
      return true;
    }
    long[] start = piece.chunk.boxes().get(0).sourceStart();
    long[] one = new long[start.length];
    Arrays.fill(one, 1);
    try {
      sourceHash(piece, start, one, 0);
      return true;
    } catch (UnsupportedException e) {
      return false;
    }
  }

  /**
   * Compares the hashes of senders and targets after a run. Collective. Until the call returns, the
   * sources must not change, and the caller keeps the transfer pinned.
   *
   * @return null if all hashes are equal; otherwise the failure to throw on every rank
   */
  @Nullable Failure verify(long version, Deadline until) {
    try {
      long[] expected = exchange(until);
      Set<String> wrong = new TreeSet<>();
      long[] first = {-1, 0};
      for (int i = 0; i < expected.length; i++) {
        Piece piece = incoming.get(i);
        if (targetHash(piece) != expected[i]) {
          wrong.add(transfer.tensors().get(piece.tensor).to().name());
          if (first[0] < 0) {
            first = new long[] {piece.tensor, piece.chunk.route().source()};
          }
        }
      }
      long[][] firsts =
          Gathered.words(communicator, until::leftNs, Native.WL_OP_LINK_CHECK, first);
      return verdict(firsts, version, wrong);
    } finally {
      Reference.reachabilityFence(transfer);
    }
  }

  /**
   * A verification that found different hashes.
   *
   * @param exception what every rank throws
   * @param wrong names of this rank's tensors that differ from the sent data
   */
  record Failure(VerificationFailedException exception, List<String> wrong) {}

  private @Nullable Failure verdict(long[][] firsts, long version, Set<String> wrong) {
    List<Integer> faultyRanks = new ArrayList<>();
    List<String> texts = new ArrayList<>();
    for (int rank = 0; rank < firsts.length; rank++) {
      if (firsts[rank][0] >= 0) {
        faultyRanks.add(rank);
        BoundTensor tensor = transfer.tensors().get((int) firsts[rank][0]);
        texts.add(
            "tensor '" + tensor.to().name() + "' on rank " + rank + " is not what rank "
                + firsts[rank][1] + " sent");
      }
    }
    if (faultyRanks.isEmpty()) {
      return null;
    }
    String message =
        "version " + version + " is refused: " + String.join("; ", texts)
            + " (their checksums differ). Nothing has been committed; send it again, don't write"
            + " to sources while they are sent, and call checkReplicas to see whether replicas"
            + " are equal";
    return new Failure(
        new VerificationFailedException(message, null, "transfer", faultyRanks),
        List.copyOf(wrong));
  }

  /** Returns the sender's hash for each of the {@link #incoming} routes, in their order. */
  private long[] exchange(Deadline until) {
    int size = communicator.size();
    long[] sendCounts = new long[size];
    long[] receiveCounts = new long[size];
    outgoing.forEach(piece -> piece.chunk.route().targets().forEach(rank -> sendCounts[rank]++));
    incoming.forEach(piece -> receiveCounts[piece.chunk.route().source()]++);
    long[] sent = new long[Math.toIntExact(Arrays.stream(sendCounts).sum())];
    int[] sendAt = starts(sendCounts);
    for (Piece piece : outgoing) {
      long hash = sourceHash(piece);
      piece.chunk.route().targets().forEach(rank -> sent[sendAt[rank]++] = hash);
    }
    long[] received = new long[incoming.size()];
    Tensor in = Tensor.allocate(DType.I64, sent.length).copyFrom(sent);
    Tensor out = Tensor.allocate(DType.I64, received.length);
    Collectives call =
        until.leftNs() == Deadline.DEFAULT ? communicator : communicator.withDeadline(until.left());
    call.allToAllv(in, sendCounts, out, receiveCounts);
    out.copyTo(received);
    in.close();
    out.close();
    int[] receiveAt = starts(receiveCounts);
    long[] expected = new long[received.length];
    for (int i = 0; i < expected.length; i++) {
      expected[i] = received[receiveAt[incoming.get(i).chunk.route().source()]++];
    }
    return expected;
  }

  private static int[] starts(long[] counts) {
    int[] starts = new int[counts.length];
    for (int rank = 1; rank < counts.length; rank++) {
      starts[rank] = starts[rank - 1] + (int) counts[rank - 1];
    }
    return starts;
  }

  private long sourceHash(Piece piece) {
    long hash = 0;
    for (Chunk.Box box : piece.chunk.boxes()) {
      hash = sourceHash(piece, box.sourceStart(), box.length(), hash);
    }
    return hash;
  }

  private long sourceHash(Piece piece, long[] start, long[] length, long seed) {
    Route route = piece.chunk.route();
    Plan plan = transfer.tensors().get(piece.tensor).plan();
    int[] ranks = route.sources().stream().mapToInt(Integer::intValue).toArray();
    int op = route.op().orElse(ReduceOp.SUM).code();
    return sourceHash.of(
        piece.tensor,
        ranks,
        start,
        length,
        op,
        plan.wire().code(),
        plan.targetDtype().code(),
        seed);
  }

  private long targetHash(Piece piece) {
    BoundTensor tensor = transfer.tensors().get(piece.tensor);
    long hash = 0;
    for (Chunk.Box box : piece.chunk.boxes()) {
      Tensor part = Objects.requireNonNull(tensor.target());
      for (int d = 0; d < box.length().length; d++) {
        part = part.narrow(d, box.targetStart()[d], box.length()[d]);
      }
      hash = Views.hash(communicator, "checksums", part, hash);
    }
    return hash;
  }
}
