// SPDX-License-Identifier: Apache-2.0
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;

public final class FirstCollectives {
  public static void main(String[] args) {
    try (var group = LocalGroup.of(3)) {
      group.run(FirstCollectives::call);
    }
  }

  static void call(Communicator comm) {
    int ranks = comm.size();
    try (var window = comm.window(1 << 16)) {
      var in = window.tensor(DType.F32, ranks, 4);
      var out = window.tensor(DType.F32, ranks, 4);
      for (int to = 0; to < ranks; to++) {
        in.select(0, to).fill(10 * comm.rank() + to); // row to is for rank to
      }

      comm.allToAll(in, out); // row r of out comes from rank r
      System.out.println(comm + " has " + out.getDouble(0, 0) + " of rank 0");

      comm.allReduce(in, out, ReduceOp.SUM);
      System.out.println(comm + " has the sum " + out.getDouble(0, 0));

      comm.broadcast(in, 2); // rank 2 is the root
      System.out.println(comm + " has " + in.getDouble(0, 0) + " of rank 2");
    }
  }
}
