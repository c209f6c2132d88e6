// SPDX-License-Identifier: Apache-2.0
import java.util.Arrays;
import org.windlass.Communicator;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;

/** y = relu(x A) B, with the columns of A and the rows of B spread over the ranks. */
public final class FeedForward {
  private static final int MODEL = 8;
  private static final int HIDDEN = 64;

  public static void main(String[] args) {
    float[] whole = term(0, HIDDEN);
    try (var group = LocalGroup.of(4)) {
      group.run(comm -> layer(comm, whole));
    }
  }

  private static void layer(Communicator comm, float[] whole) {
    int first = HIDDEN * comm.rank() / comm.size();
    int end = HIDDEN * (comm.rank() + 1) / comm.size();
    float[] y = term(first, end); // this rank's term of the output

    comm.allReduce(y, ReduceOp.SUM);

    if (!Arrays.equals(y, whole)) {
      throw new AssertionError(Arrays.toString(y));
    }
    System.out.println(comm + " has y[0] = " + y[0]);
  }

  /** The part of y that hidden values first to end - 1 contribute. All numbers are whole. */
  private static float[] term(int first, int end) {
    float[] y = new float[MODEL];
    for (int h = first; h < end; h++) {
      float hidden = 0;
      for (int m = 0; m < MODEL; m++) {
        hidden += m * ((h + m) % 5 - 2); // x[m] A[m][h]
      }
      for (int m = 0; m < MODEL; m++) {
        y[m] += Math.max(0, hidden) * ((h + 2 * m) % 3); // B[h][m]
      }
    }
    return y;
  }
}
