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
 * A trainer that is no JVM: torchrun starts two ranks of {@code examples/python/torch_trainer.py},
 * which train a model and send it, step by step, to an inference job of two JVMs, as bf16 and under
 * another layout. Each value that arrives is what torch's own cast gives, bit for bit. {@link
 * TorchInference} is what the JVMs run.
 */
public final class TorchTrainer {
  static final int STEPS = 10;

  private static final String TORCHRUN = "torchrun";
  private static final String PROGRAM = "torch_trainer.py";
  private static final String INFERENCE = "inference";

  /** Names a rank that is absent. Python 3.11 can't parse torch 1.13's own default, 0. */
  private static final String NO_REDIRECTS = "--redirects=9:1";

  private static final String NO_TEE = "--tee=9:1";

  private TorchTrainer() {}

  /** Why it doesn't run here; empty where it does. */
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

  /** Starts the jobs, and prints what they say as a timeline. */
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

  /** The build puts it, and the package windlass, beside the jar of the examples. */
  private static Path program() {
    try {
      return Path.of(TorchTrainer.class.getProtectionDomain().getCodeSource().getLocation().toURI())
          .resolveSibling(PROGRAM);
    } catch (URISyntaxException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The Python ranks take the library that this JVM has. */
  private static Map<String, String> variables() {
    Map<String, String> variables = new HashMap<>(Map.of("OMP_NUM_THREADS", "1"));
    String natives = System.getProperty("org.windlass.library.path");
    if (natives != null) {
      variables.put("WINDLASS_LIBRARY_PATH", natives);
    }
    return variables;
  }
}
