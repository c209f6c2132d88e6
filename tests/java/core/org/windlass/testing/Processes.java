// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.windlass.internal.store.Token;

/**
 * The ranks of a test, each a JVM that runs a static method of a class of tests, with what a
 * launcher would tell it. Closing this ends those that are left; so does the end of the test's JVM.
 */
public final class Processes implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofSeconds(90);

  /** What a launcher around the tests may have set. */
  private static final String LAUNCHER =
      "(WINDLASS_)?(LOCAL_)?(RANK|WORLD_SIZE)"
          + "|WINDLASS_(HOST|HOST_SILENCE|(LINK_)?RENDEZVOUS|LAUNCHER_STORE|TOKEN|TOKEN_FILE|JOB"
          + "|PEER_MEMORY)"
          + "|(MASTER|TORCHELASTIC|OMPI|PMIX|SLURM)_.*";

  /** Of a process of ranks: what the test has sent to it. */
  private static final BlockingQueue<Object> RECEIVED = new LinkedBlockingQueue<>();

  private final Class<?> bodies;
  private final int size;
  private final Path token;
  private final String address = loopback();
  private final List<Rank> ranks = new ArrayList<>();
  private final Map<String, String> settings = new HashMap<>();
  private boolean isOfClassPath;

  /** {@code size} ranks that run static methods of {@code bodies}; the token lies in {@code folder}. */
  public Processes(Class<?> bodies, int size, Path folder) throws IOException {
    this.bodies = bodies;
    this.size = size;
    token =
        Files.createTempFile(
            folder,
            "token",
            null,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    Files.writeString(token, Token.random().digits());
  }

  /** Has the processes that start from now on have that in their environment. */
  public Processes with(String variable, String value) {
    settings.put(variable, value);
    return this;
  }

  /** Has them take the natives from the class path, as from the jar of this platform. */
  public Processes ofClassPath() {
    isOfClassPath = true;
    return this;
  }

  /** Those that were started. */
  public List<Rank> all() {
    return List.copyOf(ranks);
  }

  /** Where the ranks find each other. */
  public String address() {
    return address;
  }

  /** What says which token they have. */
  public Map<String, String> variables() {
    return Map.of("WINDLASS_TOKEN_FILE", token.toString());
  }

  /** HOST:PORT of the loopback interface, where nobody listens. */
  public static String loopback() {
    try {
      return "127.0.0.1:" + Ports.free();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** One of them, and what it has said so far. */
  public static final class Rank {
    private final int rank;
    private final Process process;
    private final List<Rank> all; // that were started with it
    private final StringBuilder said = new StringBuilder();
    private final Thread reader = new Thread(this::read, "test-output");
    private final ByteArrayOutputStream unsent = new ByteArrayOutputStream();
    private ObjectOutputStream objects;

    private Rank(int rank, Process process, List<Rank> all) {
      this.rank = rank;
      this.process = process;
      this.all = all;
      reader.setDaemon(true);
      reader.start();
    }

    private void read() {
      try (BufferedReader lines = process.inputReader()) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          synchronized (said) {
            said.append(line).append('\n');
            said.notifyAll();
          }
        }
      } catch (IOException e) {
        // It was ended.
      }
    }

    public long pid() {
      return process.pid();
    }

    public String said() {
      synchronized (said) {
        return said.toString();
      }
    }

    /** Forgets what it has said so far. */
    void forget() {
      synchronized (said) {
        said.setLength(0);
      }
    }

    /** For it to {@link #receive}. */
    void send(Serializable object) throws IOException, InterruptedException {
      if (objects == null) {
        objects = new ObjectOutputStream(unsent);
      }
      objects.reset();
      objects.writeObject(object);
      objects.flush();
      try {
        unsent.writeTo(process.getOutputStream());
        process.getOutputStream().flush();
        unsent.reset();
      } catch (IOException e) {
        reader.join(LIMIT.toMillis());
        throw new IOException("rank " + rank + " has ended; it said: " + said(), e);
      }
    }

    /** Until it has said {@code text}. */
    public void await(String text) throws InterruptedException {
      await(text, LIMIT);
    }

    void await(String text, Duration limit) throws InterruptedException {
      long start = System.nanoTime();
      synchronized (said) {
        while (said.indexOf(text) < 0) {
          long left = limit.toMillis() - (System.nanoTime() - start) / 1_000_000;
          assertThat(left > 0 && reader.isAlive()) // which reads to the end of a process
              .as(() -> "rank " + rank + " says \"" + text + "\"; it said: " + said + Threads.of(all))
              .isTrue();
          said.wait(Math.min(left, 100));
        }
      }
    }

    /** Sends it {@code SIGname}. */
    public void signal(String name) throws IOException, InterruptedException {
      int status = new ProcessBuilder("kill", "-" + name, "" + pid()).start().waitFor();
      assertThat(status).as("kill -%s %d", name, pid()).isZero();
    }

    /** SIGKILL. */
    public void kill() {
      process.destroyForcibly();
    }

    /** What it has said once it has ended, with status 0. */
    public String ended() throws InterruptedException {
      assertThat(process.waitFor(LIMIT.toMillis(), TimeUnit.MILLISECONDS))
          .as(() -> "rank " + rank + " ends; it said: " + said() + Threads.of(all))
          .isTrue();
      reader.join(LIMIT.toMillis());
      assertThat(process.exitValue())
          .as(() -> "rank " + rank + " said: " + said() + Threads.of(all))
          .isZero();
      return said();
    }
  }

  public Rank start(int rank, String body) throws IOException {
    return start(
        rank,
        body,
        Map.of(
            "WINDLASS_RANK", String.valueOf(rank),
            "WINDLASS_WORLD_SIZE", String.valueOf(size),
            "WINDLASS_RENDEZVOUS", address,
            "WINDLASS_TOKEN_FILE", token.toString()));
  }

  /** Ranks on several hosts: process p on the one that the p-th letter of {@code hosts} names. */
  public List<Rank> startOnHosts(String hosts, String body) throws IOException {
    List<Rank> all = new ArrayList<>();
    for (int process = 0; process < hosts.length(); process++) {
      all.add(startOnHost(hosts, process, body, Map.of()));
    }
    return all;
  }

  /** One of them, whose environment has {@code others} as well. */
  public Rank startOnHost(String hosts, int process, String body, Map<String, String> others)
      throws IOException {
    Map<String, String> variables = new HashMap<>(variables());
    variables.put("WINDLASS_RANK", "" + process);
    variables.put("WINDLASS_WORLD_SIZE", "" + hosts.length());
    variables.put("WINDLASS_RENDEZVOUS", address);
    variables.put("WINDLASS_HOST", "" + hosts.charAt(process));
    variables.putAll(others);
    return start(process, body, variables);
  }

  /** One that is told {@code variables}, and nothing else of a launcher's. */
  public Rank start(int rank, String body, Map<String, String> variables) throws IOException {
    return start(rank, command(body), variables);
  }

  /**
   * A command that starts as many as there are, each with what it says of it; they go where its
   * standard input ends, which it passes on.
   */
  public Rank launch(List<String> launcher, String body, Map<String, String> variables)
      throws IOException {
    List<String> command = new ArrayList<>(launcher);
    command.addAll(command(body));
    return start(0, command, variables);
  }

  /** A Python rank, which runs a function of tests/python/ranks.py, with words behind its name. */
  public Rank startPython(int rank, String function, Map<String, String> variables)
      throws IOException {
    Map<String, String> all = new HashMap<>(variables);
    all.put("WINDLASS_LIBRARY_PATH", System.getProperty("org.windlass.library.path"));
    Path program = Path.of(System.getProperty("windlass.root"), "tests/python/ranks.py");
    List<String> command = new ArrayList<>(List.of(Python.required(), program.toString()));
    command.addAll(List.of(function.split(" ")));
    return start(rank, command, all);
  }

  private List<String> command(String body) {
    String natives = System.getProperty("org.windlass.library.path");
    String classes = System.getProperty("java.class.path");
    // Resources lie beside the package that they are of.
    Path resources = Path.of(natives).resolve("../../../..").normalize();
    return List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseTransparentHugePages",
        "-Xshare:auto",
        "-XX:-UsePerfData",
        // The test's own JVM verifies the same classes.
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:-BytecodeVerificationRemote",
        "--enable-native-access=ALL-UNNAMED",
        "-Dwindlass.long=" + Boolean.getBoolean("windlass.long"),
        "-Dwindlass.root=" + System.getProperty("windlass.root"),
        isOfClassPath ? "-Dtest.natives=class.path" : "-Dorg.windlass.library.path=" + natives,
        "-cp",
        isOfClassPath ? resources + ":" + classes : classes,
        Processes.class.getName(),
        bodies.getName(),
        body);
  }

  private Rank start(int rank, List<String> command, Map<String, String> variables)
      throws IOException {
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(name -> name.matches(LAUNCHER));
    builder.environment().putAll(variables);
    builder.environment().putAll(settings);
    Rank started = new Rank(rank, builder.redirectErrorStream(true).start(), ranks);
    ranks.add(started);
    return started;
  }

  /** Starts all of them, and waits until they have ended with status 0. */
  public void run(String body) throws IOException, InterruptedException {
    for (Rank rank : start(body)) {
      rank.ended();
    }
  }

  /** All of them, in rank order. */
  public List<Rank> start(String body) throws IOException {
    List<Rank> all = new ArrayList<>();
    for (int rank = 0; rank < size; rank++) {
      all.add(start(rank, body));
    }
    return all;
  }

  @Override
  public void close() {
    ranks.forEach(Rank::kill);
    ranks.forEach(rank -> rank.process.onExit().orTimeout(90, TimeUnit.SECONDS).join());
  }

  /** Runs a method of a class in such a process. */
  public static void main(String[] arguments) throws Exception {
    Thread parent = new Thread(Processes::listen, "test-parent");
    parent.setDaemon(true);
    parent.start();
    Method body = Class.forName(arguments[0]).getDeclaredMethod(arguments[1]);
    body.setAccessible(true);
    try {
      body.invoke(null);
    } catch (InvocationTargetException e) {
      e.getCause().printStackTrace();
      Runtime.getRuntime().halt(1);
    }
    System.exit(0);
  }

  /** The next of what the test sends to this process. */
  static Object receive() throws InterruptedException {
    return RECEIVED.take();
  }

  /** Until the test's JVM ends, and this process with it. */
  private static void listen() {
    try (ObjectInputStream objects = new ObjectInputStream(System.in)) {
      while (true) {
        RECEIVED.add(objects.readObject());
      }
    } catch (EOFException e) {
      // It has ended.
    } catch (Throwable e) {
      e.printStackTrace();
    }
    Runtime.getRuntime().halt(2);
  }
}
