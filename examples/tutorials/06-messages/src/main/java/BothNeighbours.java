// SPDX-License-Identifier: Apache-2.0
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;

public final class BothNeighbours {
  public static void main(String[] args) {
    try (var group = LocalGroup.of(4)) {
      group.run(BothNeighbours::exchange);
    }
  }

  private static void exchange(Communicator comm) {
    int next = (comm.rank() + 1) % comm.size();
    int previous = (comm.rank() + comm.size() - 1) % comm.size();
    try (var own = Tensor.allocate(DType.F32, 5000).fill(comm.rank());
        var fromPrevious = Tensor.allocate(DType.F32, 5000);
        var fromNext = Tensor.allocate(DType.F32, 5000)) {
      comm.group(messages -> {
        messages.send(own, next, 0);
        messages.send(own, previous, 1);
        messages.receive(fromPrevious, previous, 0);
        messages.receive(fromNext, next, 1);
      });
      System.out.println(comm + " has " + fromPrevious.getDouble(0) + ", " + fromNext.getDouble(0));
    }
  }
}
