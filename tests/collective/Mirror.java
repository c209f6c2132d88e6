// SPDX-License-Identifier: Apache-2.0
import java.util.List;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;

/**
 * Calls the collective that tests/collective/run has added, on 1 to 5 ranks and for 0 to 300,000
 * elements, and looks at every element. Then calls it wrongly.
 */
public final class Mirror {
  public static void main(String[] arguments) throws Exception {
    for (int ranks = 1; ranks <= 5; ranks++) {
      try (LocalGroup group = LocalGroup.of(ranks)) {
        group.run(Mirror::check);
      }
    }
    try (LocalGroup group = LocalGroup.of(1)) {
      group.run(Mirror::refuse);
    }
  }

  private static void check(Communicator comm) {
    for (int count : List.of(0, 1, 7, 1_000, 300_000)) {
      try (Tensor in = Tensor.allocate(DType.I32, count);
          Tensor out = Tensor.allocate(DType.I32, count)) {
        for (int i = 0; i < count; i++) {
          in.setLong(comm.rank() * 1_000_000L + i, i);
        }
        comm.mirror(in, out);
        for (int i = 0; i < count; i++) {
          long expected = (comm.size() - 1 - comm.rank()) * 1_000_000L + i;
          if (out.getLong(i) != expected) {
            throw new AssertionError(
                "element " + i + " of " + count + " on rank " + comm.rank() + " of " + comm.size()
                    + " is " + out.getLong(i) + ", not " + expected);
          }
        }
      }
    }
  }

  private static void refuse(Communicator comm) {
    try (Tensor in = Tensor.allocate(DType.I32, 2);
        Tensor out = Tensor.allocate(DType.I32, 3)) {
      comm.mirror(in, out);
      throw new AssertionError("buffers of two sizes were taken");
    } catch (InvalidArgumentException e) {
      if (!e.getMessage().contains("mirror: in has 2 elements, out has 3; they must agree")) {
        throw e;
      }
    }
  }
}
