// SPDX-License-Identifier: Apache-2.0
import java.util.Arrays;
import org.windlass.Communicator;
import org.windlass.ReduceOp;

public final class TwoHosts {
  public static void main(String[] args) {
    try (Communicator comm = Communicator.fromEnvironment()) {
      float[] ones = new float[100_000];
      Arrays.fill(ones, 1);
      comm.allReduce(ones, ReduceOp.SUM);
      String host = System.getenv("WINDLASS_HOST");
      System.out.println(comm + " on " + host + " has " + ones[ones.length - 1]);
    }
  }
}
