// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.windlass.examples.jobs.TorchTrainer;

/**
 * A bundled example that is jobs of processes alone, and takes what is not there everywhere.
 *
 * @param lacking why it doesn't run here; empty where it does
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

  /** Every such example. */
  public static List<ExampleOfProcesses> all() {
    return ALL;
  }

  /** The example of that name. */
  public static Optional<ExampleOfProcesses> find(String name) {
    return ALL.stream().filter(example -> example.name.equals(name)).findFirst();
  }
}
