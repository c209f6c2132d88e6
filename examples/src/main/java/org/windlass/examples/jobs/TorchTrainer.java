// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.io.File;
import java.io.PrintStream;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.regex.Pattern;

/**
 * Shows a trainer in Python. torchrun starts two ranks of {@code examples/python/torch_trainer.py},
 * which train a model. They send it, step by step, to an inference job of two JVMs, as bf16 and
 * with another layout. Each value that arrives equals the result of torch's own cast, bit for bit.
 * The JVMs run {@link TorchInference}.
 */
public final class TorchTrainer {
  static final int STEPS = 10;

  private static final String TORCHRUN = "torchrun";
  private static final String PROGRAM = "torch_trainer.py";
  private static final String INFERENCE = "inference";

  /**
   * Option that names a rank that is absent. Python 3.11 cannot parse torch 1.13's own default, 0.
   */
  private static final String NO_REDIRECTS = "--redirects=9:1";

  private static final String NO_TEE = "--tee=9:1";

  private TorchTrainer() {}

  /** Returns the reason why the example does not run here, or empty if it does. */
  public static Optional<String> lacking() {
    boolean isThere =
        Pattern.compile(File.pathSeparator)
            .splitAsStream(System.getenv().getOrDefault("PATH", ""))
            .anyMatch(folder -> Files.isExecutable(Path.of(folder, TORCHRUN)));
    return isThere
        ? Optional.empty()
        : Optional.of(
            "it takes PyTorch, and there is no torchrun on the PATH: apt-get install"
                + " --no-install-recommends python3-torch, or pip install torch numpy");
  }

  /** Starts the jobs, and prints their output as a timeline. */
  public static void run(PrintStream out, Consumer<AutoCloseable> unfinished) {
    try (Timeline timeline = new Timeline("torch-trainer", out)) {
      unfinished.accept(timeline);
      Path casts = timeline.folder();
      timeline.start(TorchInference.class, INFERENCE, 2, casts.toString());
      timeline.launch("trainer", command(casts), variables());
      for (int step = 1; step <= STEPS; step++) {
        timeline.await(INFERENCE + ": step " + step + ": ");
      }
      timeline.awaitEnds();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("torch-trainer: interrupted", e);
    }
    out.printf(
        "torch-trainer: %d steps from 2 ranks of torchrun to 2 inference JVMs, every value equals"
            + " torch's own cast to bf16%n",
        STEPS);
  }

  private static List<String> command(Path casts) {
    return List.of(
        TORCHRUN,
        "--standalone",
        "--nnodes=1",
        "--nproc_per_node=2",
        NO_REDIRECTS,
        NO_TEE,
        program().toString(),
        casts.toString(),
        String.valueOf(STEPS));
  }

  /**
   * Returns the path of the trainer. The build puts it and the package windlass next to the
   * examples' jar.
   */
  private static Path program() {
    try {
      return Path.of(TorchTrainer.class.getProtectionDomain().getCodeSource().getLocation().toURI())
          .resolveSibling(PROGRAM);
    } catch (URISyntaxException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Returns environment variables that make Python ranks load the library of this JVM. */
  private static Map<String, String> variables() {
    Map<String, String> variables = new HashMap<>(Map.of("OMP_NUM_THREADS", "1"));
    String natives = System.getProperty("org.windlass.library.path");
    if (natives != null) {
      variables.put("WINDLASS_LIBRARY_PATH", natives);
    }
    return variables;
  }
}
