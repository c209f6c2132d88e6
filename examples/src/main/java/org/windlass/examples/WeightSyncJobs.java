// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.StringJoiner;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.Operation;
import org.windlass.ReduceOp;
import org.windlass.Target;
import org.windlass.Tensor;
import org.windlass.VerificationFailedException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;
import org.windlass.redistribute.Follower;
import org.windlass.redistribute.Followers;
import org.windlass.redistribute.Job;
import org.windlass.redistribute.LinkTransfer;
import org.windlass.redistribute.Role;

/**
 * Weight sync between jobs: a trainer of two processes sends five versions of a model to two
 * inference jobs, which were launched apart from it. Those answer all the time, each answer by a
 * forward pass over one version of the weights, which it tells. One of them is killed and started
 * again in between; neither the trainer nor the other one waits for it.
 */
public final class WeightSyncJobs {
  private static final String PAIR = "policy";
  private static final int VERSIONS = 5;

  /** How many answers the last version gives, before a job ends. */
  private static final int LAST_ANSWERS = 20;

  private static final int LAYERS = 4;
  private static final long WIDTH = 48;
  private static final long[] SHAPE = {WIDTH, WIDTH};
  private static final Duration LIMIT = Duration.ofSeconds(60);

  /** How long the trainer offers a version to those who are late. */
  private static final Duration OFFER = Duration.ofSeconds(20);

  private WeightSyncJobs() {}

  /** Starts the jobs, and prints what they say as a timeline. */
  static void run(PrintStream out) {
    try (Timeline timeline = new Timeline(out)) {
      timeline.play();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("weight-sync: interrupted", e);
    }
  }

  /** What each process of a job runs: its role, and its job's name. */
  public static void main(String[] arguments) throws Exception {
    BlockingQueue<String> told = new LinkedBlockingQueue<>();
    Thread parent = new Thread(() -> readUntilParentEnds(told), "parent");
    parent.setDaemon(true);
    parent.start();
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(LIMIT);
    try (Job job = Job.fromEnvironment(arguments[1], options, LIMIT)) {
      if (arguments[0].equals("trainer")) {
        train(job, told);
      } else {
        infer(job);
      }
    }
  }

  private static void readUntilParentEnds(BlockingQueue<String> told) {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        told.add(line);
      }
    } catch (IOException e) {
      // As at the end.
    }
    Runtime.getRuntime().halt(1);
  }

  /** One line of what happens, from one rank of a job. */
  private static void say(Job job, String line) {
    if (job.communicator().rank() == 0) {
      System.out.println(line);
    }
  }

  // ---- the model: of each layer the weights, and what they answer

  private static long weight(int layer, long row, long column, long version) {
    return Math.floorMod(31 * row + 17 * column + 7 * layer, 11) - 5 + version * (1 + row % 3);
  }

  /** What the whole model answers in a version: the sum of each layer's rows, weighed; millions. */
  private static long golden(long version) {
    long answer = 0;
    for (int layer = 0; layer < LAYERS; layer++) {
      for (long row = 0; row < WIDTH; row++) {
        for (long column = 0; column < WIDTH; column++) {
          answer += (layer + 1) * (column + 1) * weight(layer, row, column, version);
        }
      }
    }
    return answer;
  }

  /** The answer of those rows that a rank has. */
  private static long forward(List<Tensor> weights) {
    long answer = 0;
    for (int layer = 0; layer < LAYERS; layer++) {
      float[] values = new float[(int) weights.get(layer).numel()];
      weights.get(layer).copyTo(values);
      for (int i = 0; i < values.length; i++) {
        answer += (layer + 1) * (i % WIDTH + 1) * (long) values[i];
      }
    }
    return answer;
  }

  /** What the version that has come last has; it stays so while the next one comes. */
  private static List<Tensor> held(LinkTransfer transfer) {
    List<Tensor> weights = new ArrayList<>();
    for (int layer = 0; layer < LAYERS; layer++) {
      weights.add(transfer.tensor(name(layer)));
    }
    return weights;
  }

  private static String name(int layer) {
    return "layer" + layer + ".weight";
  }

  /** Over all ranks of a job: its rows, or its columns. */
  private static Layout layout(Job job, int dim) {
    return DeviceMesh.of("tp", job.communicator().size()).layout(Placement.shard(dim));
  }

  // ---- the trainer

  /** Does what it is told, line by line: waits for followers, or sends a version. */
  private static void train(Job job, BlockingQueue<String> told) throws InterruptedException {
    Layout columns = layout(job, 1);
    int rank = job.communicator().rank();
    Tensor[] weights = new Tensor[LAYERS];
    for (int layer = 0; layer < LAYERS; layer++) {
      weights[layer] = Tensor.allocate(DType.F32, columns.localShape(SHAPE, rank));
    }
    try (Followers followers =
        job.followers(
            PAIR,
            batch -> {
              for (int layer = 0; layer < LAYERS; layer++) {
                batch.add(name(layer), SHAPE, weights[layer], columns);
              }
            })) {
      say(job, "is there");
      for (long[] step = next(job, told); step[0] != END; step = next(job, told)) {
        if (step[0] == AWAIT) {
          say(job, "is followed by " + listed(followers.await((int) step[1], LIMIT)));
        } else {
          long version = step[1];
          for (int layer = 0; layer < LAYERS; layer++) {
            weights[layer].copyFrom(values(layer, columns.localRegion(SHAPE, rank), version));
          }
          say(job, "sent version " + version + ": " + listed(followers.send(version, OFFER)));
        }
      }
    }
  }

  private static final long END = 0;
  private static final long AWAIT = 1;
  private static final long SEND = 2;

  /** What rank 0 is told next, on every rank. */
  private static long[] next(Job job, BlockingQueue<String> told) throws InterruptedException {
    long[] step = {END, 0};
    if (job.communicator().rank() == 0) {
      String[] words = told.take().split(" ");
      if (words.length == 2) {
        step[0] = words[0].equals("await") ? AWAIT : SEND;
        step[1] = Long.parseLong(words[1]);
      }
    }
    try (Tensor shared = Tensor.allocate(DType.I64, 2).copyFrom(step)) {
      job.communicator().broadcast(shared, 0);
      shared.copyTo(step);
    }
    return step;
  }

  private static float[] values(int layer, Region region, long version) {
    Region.Interval rows = region.intervals(0).get(0);
    Region.Interval columns = region.intervals(1).get(0);
    float[] values = new float[(int) region.numel()];
    int next = 0;
    for (long row = rows.start(); row < rows.end(); row++) {
      for (long column = columns.start(); column < columns.end(); column++) {
        values[next++] = weight(layer, row, column, version);
      }
    }
    return values;
  }

  private static String listed(List<Follower> followers) {
    StringJoiner list = new StringJoiner("; ");
    for (Follower each : followers) {
      list.add(each.lost().isPresent() ? each.job() + ": lost" : each.toString());
    }
    return list.toString();
  }

  // ---- inference

  /** Answers until it has answered by the last version. */
  private static void infer(Job job) throws InterruptedException {
    Communicator ranks = job.communicator();
    Layout rows = layout(job, 0);
    try (var link = job.meet(PAIR, Role.TARGET, LIMIT)) {
      var batch = link.batch();
      for (int layer = 0; layer < LAYERS; layer++) {
        Tensor weights = Tensor.allocate(DType.F32, rows.localShape(SHAPE, ranks.rank()));
        batch.into(name(layer), SHAPE, weights, rows);
      }
      try (LinkTransfer transfer = batch.register(LIMIT);
          Tensor word = Tensor.allocate(DType.I32, 1)) {
        Operation<Long> arriving = transfer.receiveAsync(LIMIT);
        List<Tensor> weights = List.of();
        long version = 0;
        long answers = 0;
        while (version < VERSIONS || answers < LAST_ANSWERS) {
          // All ranks turn to a version together, between two answers.
          boolean isThere = version < VERSIONS && arriving.isDone();
          if (all(ranks, word, isThere ? 1 : 0, ReduceOp.MIN) == 1) {
            String before = version == 0 ? "" : " after " + answers + " answers by " + version;
            version = arriving.await();
            weights = held(transfer);
            answers = 0;
            say(job, "turns to version " + version + before);
            if (version < VERSIONS) {
              arriving = transfer.receiveAsync(LIMIT); // while this version answers
            }
          }
          if (version > 0) {
            long answer = all(ranks, word, forward(weights), ReduceOp.SUM);
            if (answer != golden(version)) {
              throw new VerificationFailedException(
                  "the answer is " + answer + "; version " + version + " has " + golden(version));
            }
            answers++;
          }
          Thread.sleep(1);
        }
        say(job, "ends after " + answers + " answers by " + version);
      }
    }
  }

  /** What the ranks' values make together. */
  private static long all(Communicator ranks, Tensor word, long own, ReduceOp op) {
    word.setLong(own, 0);
    ranks.allReduce(word, op);
    return word.getLong(0);
  }

  // ---- who starts them all

  /** What the jobs say, with the time since the start; and what is to be heard of them. */
  private static final class Timeline implements AutoCloseable {
    private final PrintStream out;
    private final long startNs = System.nanoTime();
    private final String unique = "weight-sync-" + UUID.randomUUID();
    private final Map<String, List<JobProcess>> jobs = new LinkedHashMap<>();

    /** Of all jobs, in the order in which they came. Guarded by itself. */
    private final List<String> said = new ArrayList<>();

    Timeline(PrintStream out) {
      this.out = out;
    }

    void play() throws InterruptedException {
      // In any order: inference may be there first.
      start("inference-a", 2);
      start("trainer", 2);
      await("trainer: is there");
      start("inference-b", 1);
      tell("await 2");
      await("trainer: is followed by");
      sendTo("inference-a", 1);
      sendTo("inference-b", 1);
      say("", "kill -9 of inference-b, which answers by version 1");
      for (JobProcess process : jobs.remove("inference-b")) {
        process.kill();
      }
      sendTo("inference-a", 2);
      sendTo("inference-a", 3);
      await("trainer: sent version 3: inference-a: version 3; inference-b: lost");
      start("inference-b", 1);
      tell("await 2");
      sendTo("inference-b", 4);
      sendTo("inference-a", 4);
      sendTo("inference-a", 5);
      await("inference-a: ends after");
      await("inference-b: ends after");
      tell("end");
      for (Map.Entry<String, List<JobProcess>> job : jobs.entrySet()) {
        for (JobProcess process : job.getValue()) {
          if (!process.hasEnded(LIMIT) || process.hasFailed()) {
            throw failure(job.getKey() + " has not ended well");
          }
        }
      }
      out.printf(
          "weight-sync: %d versions from 2 trainer processes to 2 inference jobs, every answer is"
              + " the golden one of its version%n",
          VERSIONS);
    }

    /** Has the trainer send a version, once, and waits until a job answers by it. */
    private void sendTo(String job, long version) throws InterruptedException {
      synchronized (said) {
        if (said.stream().noneMatch(line -> line.startsWith("told: send " + version))) {
          tell("send " + version);
        }
      }
      await(job + ": turns to version " + version);
    }

    private void tell(String line) {
      synchronized (said) {
        said.add("told: " + line);
      }
      jobs.get("trainer").get(0).tell(line);
    }

    private void start(String job, int ranks) {
      List<JobProcess> processes = new ArrayList<>();
      jobs.put(job, processes);
      String role = job.equals("trainer") ? "trainer" : "inference";
      for (int rank = 0; rank < ranks; rank++) {
        Map<String, String> variables =
            Map.of(
                "WINDLASS_RANK", String.valueOf(rank),
                "WINDLASS_WORLD_SIZE", String.valueOf(ranks),
                "WINDLASS_TARGET", Target.loaded().toString(),
                "WINDLASS_JOB", job + "-" + unique,
                "WINDLASS_MEETING", unique);
        processes.add(
            new JobProcess(
                WeightSyncJobs.class, List.of(role, job), variables, line -> say(job, line)));
      }
      say(job, "starts, of " + ranks + (ranks == 1 ? " process" : " processes"));
    }

    private void say(String job, String line) {
      double seconds = (System.nanoTime() - startNs) / 1e9;
      synchronized (said) {
        out.printf(Locale.ROOT, "%8.3f s  %-12s %s%n", seconds, job, line);
        said.add(job + ": " + line);
        said.notifyAll();
      }
    }

    /** Until a line that begins so has been said. */
    private void await(String begin) throws InterruptedException {
      long endNs = System.nanoTime() + LIMIT.toNanos();
      synchronized (said) {
        while (said.stream().noneMatch(line -> line.startsWith(begin))) {
          long leftMs = TimeUnit.NANOSECONDS.toMillis(endNs - System.nanoTime());
          boolean hasFailed =
              jobs.values().stream().flatMap(List::stream).anyMatch(JobProcess::hasFailed);
          if (leftMs <= 0 || hasFailed) {
            throw failure("nobody has said \"" + begin + "\"");
          }
          said.wait(Math.min(leftMs, 100));
        }
      }
    }

    private VerificationFailedException failure(String what) {
      synchronized (said) {
        return new VerificationFailedException(
            "weight-sync: " + what + "; the jobs have said: " + String.join(" | ", said));
      }
    }

    @Override
    public void close() {
      jobs.values().forEach(processes -> processes.forEach(JobProcess::close));
    }
  }
}
