// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.windlass.examples.jobs.TorchTrainer;

/**
 * A bundled example that consists of jobs of processes, and needs software that some machines lack.
 *
 * @param lacking reason why it does not run here; empty if it does
 */
public record ExampleOfProcesses(
    String name, String summary, Supplier<Optional<String>> lacking, Examples.Jobs jobs) {
  private static final List<ExampleOfProcesses> ALL =
      List.of(
          new ExampleOfProcesses(
              "torch-trainer",
              "a PyTorch model, trained under torchrun, moves to inference JVMs",
              TorchTrainer::lacking,
              TorchTrainer::run));

  /** Returns all such examples. */
  public static List<ExampleOfProcesses> all() {
    return ALL;
  }

  /** Returns the example with this name. */
  public static Optional<ExampleOfProcesses> find(String name) {
    return ALL.stream().filter(example -> example.name.equals(name)).findFirst();
  }
}
