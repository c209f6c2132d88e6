// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.options.GetOption;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Store;
import org.windlass.testing.Ports;

/**
 * Debian's etcd on a loopback port, its data in a folder that goes with it. It ends with this, and
 * with this JVM. Where it isn't installed, the test is skipped.
 */
public final class Etcd implements AutoCloseable {
  static final String LIBRARY = "1.2.3";
  static final String PREFIX = "windlass-test";

  /** Of members that are to stay, however long this machine holds them up. */
  static final long LEASE_SECONDS = 60;

  /** Of those whose lease is to run out: twice the least that etcd takes by default. */
  static final long SHORT_LEASE_SECONDS = 4;

  private static final Path PROGRAM = Path.of("/usr/bin/etcd");
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final String RUN =
      "\"$@\" >>etcd.log 2>&1 & child=$!; echo $child; cat; kill -9 $child";

  private static Etcd shared;

  private final Path folder;
  private final int port = freePort();
  private final int peerPort = freePort();
  private final String protocol;
  private final List<String> options;
  private Process shell;
  private ProcessHandle process;

  /** One for all tests of this JVM that don't end it. */
  public static synchronized Etcd shared() {
    if (shared == null) {
      shared = new Etcd();
      Runtime.getRuntime().addShutdownHook(new Thread(shared::close, "test-etcd"));
    }
    return shared;
  }

  /** A new one, told {@code options} too; with {@code --auto-tls} among them it takes TLS alone. */
  Etcd(String... options) {
    assumeTrue(
        Files.isExecutable(PROGRAM), "there is no " + PROGRAM + "; install Debian's etcd-server");
    this.options = List.of(options);
    protocol = this.options.contains("--auto-tls") ? "https" : "http";
    try {
      folder = Files.createTempDirectory("windlass-etcd-");
      Files.createFile(folder.resolve("etcd.log"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    start();
  }

  /** Starts it, again where it was killed: what it had is there. */
  void start() {
    String client = protocol + "://127.0.0.1:" + port;
    String peer = "http://127.0.0.1:" + peerPort;
    List<String> command = new ArrayList<>(List.of("sh", "-c", RUN, "sh", PROGRAM.toString()));
    // It outlives no power cut, and never waits for a busy disk.
    command.addAll(List.of("--data-dir", "data", "--unsafe-no-fsync"));
    command.addAll(List.of("--listen-client-urls", client, "--advertise-client-urls", client));
    command.addAll(List.of("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer));
    command.addAll(List.of("--initial-cluster", "default=" + peer));
    command.addAll(options);
    try {
      ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile());
      builder.environment().keySet().removeIf(name -> name.startsWith("ETCD_"));
      shell = builder.redirectError(ProcessBuilder.Redirect.DISCARD).start();
      BufferedReader said = shell.inputReader();
      process = ProcessHandle.of(Long.parseLong(said.readLine())).orElseThrow();
      awaitListening();
    } catch (IOException | InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private void awaitListening() throws IOException, InterruptedException {
    long begin = System.nanoTime();
    while (true) {
      try {
        new Socket(InetAddress.getLoopbackAddress(), port).close();
        return;
      } catch (IOException e) {
        assertThat(process.isAlive() && System.nanoTime() - begin < LIMIT.toNanos())
            .as("etcd listens; it said: %s", Files.readString(folder.resolve("etcd.log")))
            .isTrue();
        Thread.sleep(20);
      }
    }
  }

  /** SIGKILL. */
  void kill() {
    process.destroyForcibly();
    process.onExit().orTimeout(60, TimeUnit.SECONDS).join();
    shell.destroyForcibly();
  }

  /** Its certificate, which vouches for itself, where it takes TLS. */
  Path certificate() {
    return folder.resolve("data/fixtures/client/cert.pem");
  }

  String address() {
    return "etcd://127.0.0.1:" + port + "/" + PREFIX;
  }

  /** A name that no store had before. */
  public static String newName() {
    return "name-" + UUID.randomUUID();
  }

  /** A way into the store {@code name}, of a rank, or of an observer where that is -1. */
  public Store connect(String name, int rank, int size, Duration deadline) {
    return connect(address(), name, rank, size, deadline);
  }

  /** The same, from another process than that which has it. */
  static Store connect(String address, String name, int rank, int size, Duration deadline) {
    return connect(address, name, rank, size, LEASE_SECONDS, deadline);
  }

  /** The same with a lease of its own. */
  static Store connect(
      String address, String name, int rank, int size, long leaseSeconds, Duration deadline) {
    Member member = new Member("test", rank, size, LIBRARY);
    return new EtcdProvider(leaseSeconds)
        .connect(address, name, member, Map.of(), deadline);
  }

  /**
   * Comes and goes once, with a long lease. A busy machine may take longer than a lease to load what
   * renews one; a process that has called this has loaded it.
   */
  static void load(String address) {
    connect(address, newName(), 0, 1, LEASE_SECONDS, Duration.ofSeconds(60)).close();
  }

  /** Another client of it, as nobody. */
  Client client() {
    return Client.builder().endpoints("http://127.0.0.1:" + port).build();
  }

  /** All keys that begin with {@code prefix}. */
  List<String> keys(String prefix) throws Exception {
    try (Client client = client()) {
      return client
          .getKVClient()
          .get(bytes(prefix), GetOption.builder().isPrefix(true).withKeysOnly(true).build())
          .get(60, TimeUnit.SECONDS)
          .getKvs()
          .stream()
          .map(KeyValue::getKey)
          .map(key -> key.toString(StandardCharsets.UTF_8))
          .toList();
    }
  }

  static ByteSequence bytes(String text) {
    return ByteSequence.from(text, StandardCharsets.UTF_8);
  }

  private static int freePort() {
    try {
      return Ports.free();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() {
    kill();
    try (Stream<Path> all = Files.walk(folder)) {
      all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
