// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import org.windlass.LocalGroup;
import org.windlass.error.InvalidArgumentException;
import org.windlass.examples.jobs.WeightSyncJobs;
import org.windlass.kernel.Target;

/** Lists the bundled examples, for {@code windlass example} and for tests. */
public final class Examples {
  /**
   * The code of an example. It runs with the ranks of this process, of {@code ranks} in all, and
   * prints the checked values. It throws {@link org.windlass.error.VerificationFailedException} if
   * a value is wrong.
   */
  @FunctionalInterface
  public interface Body {
    void run(LocalGroup group, int ranks, PrintStream out);
  }

  /** The code of an example that starts jobs of processes itself. */
  public interface Jobs {
    /** Runs it. {@code unfinished} gets the object to close if a signal ends this process. */
    void run(PrintStream out, Consumer<AutoCloseable> unfinished);
  }

  /**
   * One bundled example: its name on the command line, a one-line summary, and its code.
   * {@code jobs} is the code to run instead if ranks are to be processes.
   */
  public record Example(String name, String summary, Body body, Optional<Jobs> jobs) {
    Example(String name, String summary, Body body) {
      this(name, summary, body, Optional.empty());
    }
  }

  private static final List<Example> ALL =
      List.of(
          new Example("all-to-all", "each rank sends one row to each other", AllToAllExample::run),
          new Example("broadcast", "one rank's buffer reaches all", BroadcastExample::run),
          new Example("all-gather", "all ranks get what each one has", AllGatherExample::run),
          new Example(
              "reduce-scatter",
              "every rank gets its part of the sum over all",
              ReduceScatterExample::run),
          new Example(
              "all-reduce",
              "all ranks get the sum over all, by each algorithm",
              AllReduceExample::run),
          new Example(
              "feed-forward",
              "a layer with tensor parallelism: two matrices, one all-reduce",
              FeedForwardExample::run),
          new Example(
              "put-notify",
              "every rank streams rows into its neighbour's window",
              PutNotifyExample::run),
          new Example(
              "accumulate", "all ranks add into one rank's window", AccumulateExample::run),
          new Example(
              "domain-rank-map",
              "some of the ranks as a communicator, and who is which rank there",
              DomainRankMapExample::run),
          new Example(
              "overlapping-domains",
              "ranks that are in two communicators at once",
              OverlappingDomainsExample::run),
          new Example(
              "redistribute",
              "a tensor from one layout to another, and terms to their sum",
              RedistributeExample::run),
          new Example(
              "fused-views",
              "q, k and v arrive as parts of one buffer, fused or interleaved",
              FusedViewsExample::run),
          new Example(
              "stacked-views",
              "experts arrive in one stack, tied embeddings twice",
              StackedViewsExample::run),
          new Example(
              "model-layouts",
              "replicated KV heads, padded vocabulary, pipeline stages, block scales",
              ModelLayoutsExample::run),
          new Example(
              "weight-sync",
              "trainer weights move to an inference layout; as processes, between jobs",
              WeightSyncExample::run,
              Optional.of(WeightSyncJobs::run)),
          new Example(
              "manifest",
              "weights go from trainers to a fleet, as a comm manifest says",
              ManifestExample::run),
          new Example(
              "expert-dispatch",
              "tokens go to the experts of a mixture, and back",
              ExpertDispatchExample::run),
          new Example(
              "own-kernel",
              "a kernel in C++ of one's own, launched on every rank",
              OwnKernelExample::run),
          new Example(
              "pipeline-parallel",
              "a layer on each rank, micro-batches by send and receive",
              PipelineParallelExample::run));

  private Examples() {}

  /** Returns all examples, in the order in which to read them. */
  public static List<Example> all() {
    return ALL;
  }

  /** Returns the example with this name. */
  public static Optional<Example> find(String name) {
    return ALL.stream().filter(example -> example.name().equals(name)).findFirst();
  }

  /** Runs an example with the options {@code --target T} (sim) and {@code --ranks N} (4). */
  static void main(Body body, String... args) {
    Target target = Target.SIM;
    int ranks = 4;
    for (int i = 0; i < args.length; i += 2) {
      if (i + 1 == args.length) {
        throw new InvalidArgumentException(args[i] + ": a value is missing");
      }
      switch (args[i]) {
        case "--target" -> target = Target.parse(args[i + 1]);
        case "--ranks" -> ranks = parseRanks(args[i + 1]);
        default -> throw new InvalidArgumentException(args[i] + ": not --target or --ranks");
      }
    }
    target.use();
    try (var group = LocalGroup.of(ranks)) {
      body.run(group, ranks, System.out);
    }
  }

  private static int parseRanks(String text) {
    try {
      return Integer.parseInt(text);
    } catch (NumberFormatException e) {
      throw new InvalidArgumentException("--ranks: '" + text + "' is no number", e);
    }
  }
}
