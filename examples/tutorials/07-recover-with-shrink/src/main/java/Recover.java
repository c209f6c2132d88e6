// SPDX-License-Identifier: Apache-2.0
import java.time.Duration;
import java.util.Arrays;
import org.windlass.Communicator;
import org.windlass.ReduceOp;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.PeerLostException;

/** Trains in four processes. Process 2 dies in step 3, and the others continue without it. */
public final class Recover {
  private static final int STEPS = 5;

  public static void main(String[] args) {
    Communicator comm = Communicator.fromEnvironment();
    boolean dies = comm.rank() == 2;
    double[] weights = new double[4];
    int step = 1;
    while (step <= STEPS) {
      if (dies && step == 3) {
        Runtime.getRuntime().halt(1); // as a crash would
      }
      double[] gradient = new double[4];
      Arrays.fill(gradient, 1);
      try {
        comm.allReduce(gradient, ReduceOp.SUM);
      } catch (PeerLostException | DeadlineExceededException e) {
        System.out.println("step " + step + " failed: lost ranks " + e.faultyRanks());
        try (Communicator dead = comm) {
          comm = dead.shrink(Duration.ofSeconds(90)); // every rank that lives calls it
        }
        step = agree(comm, weights, step);
        continue; // repeat the step
      }
      for (int i = 0; i < weights.length; i++) {
        weights[i] += gradient[i] / comm.size();
      }
      step++;
    }
    System.out.println(comm + " ends with weight " + weights[0]);
    comm.close();
  }

  /** All ranks continue from rank 0's step and weights: the failure may find them a step apart. */
  private static int agree(Communicator comm, double[] weights, int step) {
    double[] state = Arrays.copyOf(weights, weights.length + 1);
    state[weights.length] = step;
    comm.broadcast(state, 0);
    System.arraycopy(state, 0, weights, 0, weights.length);
    return (int) state[weights.length];
  }
}
