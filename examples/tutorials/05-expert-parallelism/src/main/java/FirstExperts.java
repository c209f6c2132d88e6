// SPDX-License-Identifier: Apache-2.0
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.experts.ExpertOptions;
import org.windlass.experts.ExpertParallel;

public final class FirstExperts {
  public static void main(String[] args) {
    try (var group = LocalGroup.of(2)) {
      group.run(FirstExperts::layer);
    }
  }

  private static void layer(Communicator comm) {
    // 4 experts in all, 2 for each token, tokens of 8 elements, at most 3 tokens of a rank.
    ExpertOptions options = ExpertOptions.of(4, 2, 8, 3, DType.F32).withAlignment(4);
    try (var experts = ExpertParallel.open(comm, options);
        var routing = experts.routing();
        var tokens = Tensor.allocate(DType.F32, 3, 8).fill(1 + comm.rank());
        var ids = Tensor.allocate(DType.I32, 3, 2);
        var sums = Tensor.allocate(DType.F32, 3, 8)) {
      ids.copyFrom(new int[] {0, 3, 2, -1, 3, 0}); // the choice of a router; -1: no expert

      experts.dispatch(routing, tokens, ids, null); // null: all weights are 1

      for (int e = 0; e < experts.localExperts(); e++) {
        Tensor rows = routing.rows(e); // an expert would compute on them, in place
        System.out.println("expert " + (experts.firstExpert() + e) + " has "
            + rows.shape()[0] + " rows from row " + routing.start(e));
      }

      experts.combine(routing, sums);

      // Token 0 went to two experts, which left its rows as they were.
      if (sums.getDouble(0, 0) != 2 * (1 + comm.rank())) {
        throw new AssertionError(sums.getDouble(0, 0));
      }
    }
  }
}
