// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Two ranks that have started as those of two processes do, though both live in this one. */
public final class PairOfRanks implements AutoCloseable {
  private static final Duration SOON = Duration.ofSeconds(60);

  private final Communicator first;
  private final Communicator second;

  /** At {@code address}, with what says which token. */
  public PairOfRanks(String address, Map<String, String> token) {
    CompletableFuture<Communicator> other =
        CompletableFuture.supplyAsync(() -> join(1, address, token));
    first = join(0, address, token);
    second = other.join();
  }

  private static Communicator join(int rank, String address, Map<String, String> token) {
    Map<String, String> variables = new HashMap<>(token);
    variables.put("WINDLASS_RANK", "" + rank);
    variables.put("WINDLASS_WORLD_SIZE", "2");
    variables.put("WINDLASS_RENDEZVOUS", address);
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(SOON);
    return new EnvironmentStart(variables, 1, options, SOON).join();
  }

  public boolean isOpen() {
    return first.failure().isEmpty() && second.failure().isEmpty();
  }

  /** Closes both. Idempotent. */
  public void leave() {
    second.close();
    first.close();
  }

  @Override
  public void close() {
    leave();
  }
}
