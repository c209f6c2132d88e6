// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.VerificationFailedException;

/**
 * Shows the rank map of a domain. Some of the ranks, listed as 3, 0, 2, form a communicator of
 * their own, in which they are ranks 0, 1, 2. {@code rankFromParent} returns a member's rank in the
 * domain, and throws for other ranks.
 */
public final class DomainRankMapExample {
  private DomainRankMapExample() {}

  public static void main(String[] args) {
    Examples.main(DomainRankMapExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    int[] members = members(ranks);
    List<Integer> golden = Arrays.stream(members).boxed().toList();
    group.run(
        comm -> {
          try (var domain = comm.subgroup(members)) { // null on a rank that is no member
            if (domain != null) {
              check(comm, domain, golden);
            }
          }
        });
    out.printf(
        "domain-rank-map: of %d ranks, %s became ranks 0 to %d as the golden list says, and each"
            + " other rank is refused%n",
        ranks, golden, golden.size() - 1);
  }

  /** Returns the last rank, then the even ones before it. */
  private static int[] members(int ranks) {
    int last = ranks - 1;
    IntStream even = IntStream.range(0, last).filter(rank -> rank % 2 == 0);
    return IntStream.concat(IntStream.of(last), even).toArray();
  }

  private static void check(Communicator comm, Communicator domain, List<Integer> golden) {
    // The whole map, and this rank's own place.
    expect(domain.parentRanks(), golden);
    expect(domain.rankFromParent(comm.rank()), domain.rank());

    for (int rank = 0; rank <= comm.size(); rank++) {
      if (golden.contains(rank)) {
        expect(domain.rankFromParent(rank), golden.indexOf(rank));
      } else {
        expectRefusal(domain, rank);
      }
    }

    // The row from rank i of the domain comes from the i-th rank of the list.
    try (var own = Tensor.allocate(DType.F32, 1).fill(comm.rank());
        var gathered = Tensor.allocate(DType.F32, golden.size())) {
      domain.allGather(own, gathered);
      Golden.check(gathered, golden::get);
    }
  }

  private static void expectRefusal(Communicator domain, int rank) {
    int found;
    try {
      found = domain.rankFromParent(rank);
    } catch (InvalidArgumentException e) {
      return; // rankFromParent: rank 1 is not a member; the members are ranks [3, 0, 2]
    }
    throw new VerificationFailedException("rank " + rank + ", no member, has rank " + found);
  }

  private static void expect(Object found, Object expected) {
    if (!found.equals(expected)) {
      throw new VerificationFailedException("expected " + expected + ", found " + found);
    }
  }
}
