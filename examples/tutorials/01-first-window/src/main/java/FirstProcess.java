// SPDX-License-Identifier: Apache-2.0
import org.windlass.Communicator;

public final class FirstProcess {
  public static void main(String[] args) {
    try (var comm = Communicator.fromEnvironment()) { // joins the other processes
      FirstWindow.readNeighbour(comm);
    }
  }
}
