// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.internal.Native;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.SocketStore;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;
import org.windlass.testing.NothingLeft;

/**
 * The jobs of a test, all of whose ranks are threads of its JVM. They end with it, and it fails
 * where they have left something behind.
 */
public final class JobThreads implements BeforeEachCallback, AfterEachCallback {
  public static final Duration SOON = Duration.ofSeconds(40);

  private static final CommunicatorOptions OPTIONS =
      CommunicatorOptions.defaults().withDeadline(SOON);

  private final boolean hasServer;
  private final Token token = Token.random();
  private final NothingLeft left = new NothingLeft();
  private final List<LocalGroup> groups = new ArrayList<>();
  private Path folder;
  private StoreServer server;
  private Map<String, String> environment;

  /** What each rank of a job does. */
  @FunctionalInterface
  public interface Body {
    void run(Job job) throws Exception;
  }

  private JobThreads(boolean hasServer) {
    this.hasServer = hasServer;
  }

  /** Those that meet by a name of their own. */
  public static JobThreads byFile() {
    return new JobThreads(false);
  }

  /** Those that meet at the server of a store, which no job has. */
  public static JobThreads atServer() {
    return new JobThreads(true);
  }

  @Override
  public void beforeEach(ExtensionContext context) throws IOException {
    if (hasServer) {
      server =
          StoreServer.open(
              StoreServer.loopback(), token, Native.wl_version(), StoreServer.Bounds.defaults());
      environment = withToken(token);
    } else {
      folder = Files.createTempDirectory("windlass-jobs");
      environment =
          Map.of(
              "WINDLASS_MEETING", "test-" + UUID.randomUUID(), "XDG_RUNTIME_DIR", "" + folder);
    }
    left.beforeEach(context);
  }

  /** That of jobs that meet at the server, or would with its token. */
  public Map<String, String> withToken(Token shown) {
    String address = "127.0.0.1:" + server.address().getPort();
    return Map.of("WINDLASS_MEETING", address, "WINDLASS_TOKEN", shown.digits());
  }

  public StoreServer server() {
    return server;
  }

  /** The server's. */
  public Token token() {
    return token;
  }

  /** A way into it of somebody who is none of the jobs. */
  public Store store() {
    return SocketStore.connect(
        server.address(), token, new Member("test", 0, 1, Native.wl_version()), SOON);
  }

  /** A job that runs until {@link #end} of what this gives. */
  public FutureTask<Void> start(String name, int ranks, Body body) {
    return start(name, ranks, OPTIONS, body);
  }

  /** The same with options of its own. */
  public FutureTask<Void> start(String name, int ranks, CommunicatorOptions options, Body body) {
    LocalGroup group = LocalGroup.of(ranks, OPTIONS);
    groups.add(group);
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              try (group) {
                group.run(
                    comm -> {
                      try (Job job = Job.of(name, comm, options, environment, SOON)) {
                        body.run(job);
                      } catch (RuntimeException | Error e) {
                        throw e;
                      } catch (Exception e) {
                        throw new IllegalStateException(e);
                      }
                    });
              }
              return null;
            });
    new Thread(task, "job-" + name).start();
    return task;
  }

  /** Until all have ended, each without a failure. */
  @SafeVarargs
  public static void end(FutureTask<Void>... jobs) throws Exception {
    for (FutureTask<Void> job : jobs) {
      job.get(2 * SOON.toSeconds(), TimeUnit.SECONDS);
    }
  }

  @Override
  public void afterEach(ExtensionContext context) throws IOException {
    if (hasServer) {
      server.close();
    }
    groups.forEach(LocalGroup::close);
    left.afterEach(context);
    if (folder != null) {
      try (Stream<Path> files = Files.list(folder)) {
        for (Path file : files.toList()) {
          Files.delete(file);
        }
      }
      Files.delete(folder);
    }
  }
}
