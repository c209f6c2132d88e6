// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import java.lang.reflect.Executable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

/**
 * Sessions of random calls of a whole public API with random arguments, most of them wrong: each
 * call ends soon, with a result or a documented exception, and leaves nothing. A test of a module
 * makes what its calls are made on.
 */
public abstract class RandomSessions {
  /** How many sessions a test runs at least. */
  protected static final int SESSIONS = 20;

  private static final int CALLS_A_SESSION = 400;

  /** Sessions until the runtime has made what it keeps. */
  private static final int WARM_UP_SESSIONS = SESSIONS / 2;

  @TempDir private Path folder;

  private final RandomCalls calls;
  private int sessions;
  private Resources before;

  protected RandomSessions(List<Executable> calls) {
    this.calls = new RandomCalls(calls);
  }

  /**
   * Keeps in {@code arguments} what the calls need, makes them, and closes what it made.
   *
   * @param folder where files may be made, which are gone afterwards
   */
  protected abstract void session(RandomArguments arguments, Path folder, Runnable calls)
      throws IOException;

  /** One session. */
  protected final void run(long seed) throws IOException {
    if (sessions++ == WARM_UP_SESSIONS) {
      before = Resources.settled();
    }
    RandomArguments arguments = new RandomArguments(new Random(seed), folder);
    session(
        arguments,
        folder,
        () -> {
          for (int i = 0; i < CALLS_A_SESSION; i++) {
            calls.next(i, arguments);
          }
        });
    arguments.close();
    Thread.interrupted();
    try (Stream<Path> left = Files.walk(folder)) {
      for (Path path : left.sorted(Comparator.reverseOrder()).toList()) {
        if (!path.equals(folder)) {
          Files.delete(path);
        }
      }
    }
  }

  @AfterEach
  void nothingIsLeftAndMostWereAnswered() {
    if (before != null) {
      before.requireNoMoreNow();
      calls.requireMostAnswered(sessions * CALLS_A_SESSION);
    }
  }
}
