// SPDX-License-Identifier: Apache-2.0
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;

public final class Domains {
  public static void main(String[] args) {
    try (var group = LocalGroup.of(4)) {
      group.run(Domains::addUp);
    }
  }

  private static void addUp(Communicator comm) {
    try (var window = comm.window(4096);
        var one = Tensor.allocate(DType.I32, 8).fill(1)) {
      var total = window.tensor(DType.I32, 8);
      window.accumulate(one, 0, total); // all ranks add to the tensor of rank 0
      comm.barrier();
      if (comm.rank() == 0) {
        System.out.println("rank 0 has " + total.getLong(7));
      }
    }
    try (var domain = comm.subgroup(3, 0, 2); // null on rank 1, which is no member
        var value = Tensor.allocate(DType.I32, 1).fill(comm.rank())) {
      if (domain != null) {
        domain.allReduce(value, ReduceOp.SUM);
        System.out.println("rank " + comm.rank() + " is " + domain + ": " + value.getLong(0));
      }
    }
  }
}
