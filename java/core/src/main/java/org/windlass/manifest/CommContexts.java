// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.windlass.Communicator;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;

/**
 * Contexts of a manifest as one rank of a communicator has them: a {@link CommContext} for each
 * group that it is a member of. A rank's number is its device's index.
 *
 * <pre>{@code
 * try (var contexts = manifest.open(comm, HostTensors.of("weights", mine))) {
 *   CommContext experts = contexts.get("experts");
 *   experts.communicator().allReduce(experts.tensor("weights"), ReduceOp.SUM);
 *   contexts.storeToHost();
 * }
 * }</pre>
 */
public final class CommContexts implements AutoCloseable {
  private final Communicator communicator;
  private final Bootstrap bootstrap;

  /** One for each group; null where this rank is no member. */
  private final List<CommContext> contexts;

  private final List<HostBinding> stores;
  private final AtomicBoolean closed = new AtomicBoolean();
  private volatile boolean stored;

  CommContexts(
      Communicator communicator,
      Bootstrap bootstrap,
      List<CommContext> contexts,
      List<HostBinding> hosts) {
    this.communicator = communicator;
    this.bootstrap = bootstrap;
    this.contexts = contexts;
    this.stores = hosts.stream().filter(host -> host.slot().storeToHost()).toList();
    this.stored = stores.isEmpty();
  }

  /** What the manifest means for the ranks of the communicator: members, slots, places. */
  public Bootstrap bootstrap() {
    return bootstrap;
  }

  /**
   * The group of that name.
   *
   * @throws InvalidArgumentException if the manifest has none, or this rank is no member of it
   */
  public CommContext get(String group) {
    return get(index("get", group));
  }

  /**
   * A group.
   *
   * @param group its index in the manifest
   * @throws InvalidArgumentException if the manifest has none, or this rank is no member of it
   */
  public CommContext get(int group) {
    CommContext context = contexts.get(requireIndex("get", group));
    if (context == null) {
      throw CommContext.noMember("get", bootstrap, group, communicator.rank());
    }
    return context;
  }

  /**
   * The group of that name; empty where this rank is no member of it.
   *
   * @throws InvalidArgumentException if the manifest has none
   */
  public Optional<CommContext> find(String group) {
    return Optional.ofNullable(contexts.get(index("find", group)));
  }

  /**
   * A group; empty where this rank is no member of it.
   *
   * @param group its index in the manifest
   * @throws InvalidArgumentException if the manifest has none
   */
  public Optional<CommContext> find(int group) {
    return Optional.ofNullable(contexts.get(requireIndex("find", group)));
  }

  private int index(String call, String name) {
    Optional<String> given = Optional.of(Objects.requireNonNull(name, "group"));
    List<Bootstrap.Group> groups = bootstrap.groups();
    return IntStream.range(0, groups.size())
        .filter(i -> groups.get(i).name().equals(given))
        .findFirst()
        .orElseThrow(
            () ->
                new InvalidArgumentException(
                    call + ": the manifest has no group " + ManifestNames.quoted(name) + "; it has "
                        + IntStream.range(0, groups.size())
                            .mapToObj(bootstrap::label)
                            .collect(Collectors.joining(", "))));
  }

  private int requireIndex(String call, int group) {
    if (group < 0 || group >= contexts.size()) {
      throw new InvalidArgumentException(
          call + ": group is " + group + "; it must lie in [0, " + contexts.size() + ")");
    }
    return group;
  }

  /** {@link #storeToHost(Duration)} within the communicator's deadline. */
  public void storeToHost() {
    storeToHost(communicator.deadline());
  }

  /**
   * Collective over the communicator that the manifest was opened on: once every rank has called it,
   * moves each slot of this rank that has {@code store_to_host} into its host tensor, and returns once
   * every rank has. Operations that were submitted, on groups' communicators too, are awaited first. It
   * may be called again.
   *
   * @throws WindlassException on every rank, if one has failed before, of the groups' communicators
   *     too, or the memory of a host tensor was closed: no rank's host tensors were written. What fails
   *     later says what it had written
   */
  public void storeToHost(Duration deadline) {
    Deadline until = Deadline.of(deadline);
    var agreement =
        new RankAgreement(communicator, Native.WL_OP_STORE_TO_HOST, "storeToHost", until);
    agreement.carryOut(() -> requireStorable(deadline));
    agreement.carryOut(this::store);
    stored = true;
  }

  /** That nothing is under way on the groups, none of them has failed, and host tensors are there. */
  private void requireStorable(Duration deadline) {
    for (CommContext context : contexts) {
      if (context != null) {
        // Behind what was submitted.
        context.communicator().runAsync(group -> {}).await(deadline);
        context.communicator().failure().ifPresent(CommContexts::fail);
      }
    }
    stores.forEach(HostBinding::requireUsable);
  }

  private static void fail(WindlassException failure) {
    throw failure;
  }

  private void store() {
    for (int i = 0; i < stores.size(); i++) {
      try {
        stores.get(i).store(contexts.get(stores.get(i).group()));
      } catch (WindlassException e) {
        throw WindlassException.of(
            e.code().number(),
            stores.get(i).what() + ": " + e.getMessage() + torn(i),
            e,
            e.operation(),
            e.faultyRanks());
      }
    }
  }

  /** What a message says of host tensors of which the one at {@code failed} was not written. */
  private String torn(int failed) {
    return "; written before it: "
        + (failed == 0
            ? "none"
            : stores.subList(0, failed).stream()
                .map(HostBinding::what)
                .collect(Collectors.joining(", ")));
  }

  /**
   * Closes the windows and communicators of the groups; their tensors end. It stores nothing: after
   * a failure what the slots hold is no result. Idempotent.
   *
   * @throws InvalidArgumentException if nothing has failed, and host tensors that slots with {@code
   *     store_to_host} are for were never stored; all is closed all the same
   * @throws WindlassException what closing a communicator throws; the others are closed all the same
   */
  @Override
  public void close() {
    if (closed.getAndSet(true)) {
      return;
    }
    boolean failed =
        communicator.failure().isPresent()
            || contexts.stream().anyMatch(c -> c != null && hasFailed(c.communicator()));
    close(contexts);
    if (!stored && !failed) {
      throw new InvalidArgumentException(
          "close: not stored were "
              + stores.stream().map(HostBinding::what).collect(Collectors.joining(", "))
              + "; call storeToHost() before it");
    }
  }

  private static boolean hasFailed(Communicator group) {
    return group.failure().isPresent();
  }

  /** Closes all, the last first, whatever closing one of them throws. */
  static void close(List<CommContext> contexts) {
    WindlassException first = null;
    CommContext[] all = contexts.toArray(new CommContext[0]);
    Collections.reverse(Arrays.asList(all));
    for (CommContext context : all) {
      if (context == null) {
        continue;
      }
      try {
        try {
          context.window().close();
        } finally {
          context.communicator().close();
        }
      } catch (WindlassException e) {
        if (first == null) {
          first = e;
        } else {
          first.addSuppressed(e);
        }
      }
    }
    if (first != null) {
      throw first;
    }
  }

  @Override
  public String toString() {
    return "contexts of " + contexts.stream().filter(Objects::nonNull).count() + " of "
        + contexts.size() + " groups, " + communicator;
  }
}
