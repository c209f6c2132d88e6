// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.time.Duration;
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
 * The groups of a manifest on one rank of a communicator, with a {@link CommContext} for each group
 * that has this rank as a member. Rank {@code d} is the device with index {@code d}.
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

  /** Context of each group; null if this rank is not a member. */
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

  /** Returns the resolved manifest: members, slots and offsets. */
  public Bootstrap bootstrap() {
    return bootstrap;
  }

  /**
   * Returns the context of the group of that name.
   *
   * @throws InvalidArgumentException if the manifest has no such group, or this rank is not a
   *     member
   */
  public CommContext get(String group) {
    return get(index("get", group));
  }

  /**
   * Returns the context of a group.
   *
   * @param group its index in the manifest
   * @throws InvalidArgumentException if the manifest has no such group, or this rank is not a
   *     member
   */
  public CommContext get(int group) {
    CommContext context = contexts.get(requireIndex("get", group));
    if (context == null) {
      throw CommContext.noMember("get", bootstrap, group, communicator.rank());
    }
    return context;
  }

  /**
   * Returns the context of the group of that name; empty if this rank is not a member.
   *
   * @throws InvalidArgumentException if the manifest has no such group
   */
  public Optional<CommContext> find(String group) {
    return Optional.ofNullable(contexts.get(index("find", group)));
  }

  /**
   * Returns the context of a group; empty if this rank is not a member.
   *
   * @param group its index in the manifest
   * @throws InvalidArgumentException if the manifest has no such group
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

  /** Calls {@link #storeToHost(Duration)} with the communicator's deadline. */
  public void storeToHost() {
    storeToHost(communicator.deadline());
  }

  /**
   * Copies each slot of this rank with {@code store_to_host} into its host tensor. The call is
   * collective over the communicator that opened the manifest. The call first waits for operations
   * that were submitted before, on that communicator or on the groups' communicators. No rank
   * copies before every rank has called, and the call returns when every rank has copied. You may
   * call it again.
   *
   * @param deadline limit for the whole call
   * @throws WindlassException on every rank, if one of these communicators has failed or the memory
   *     of a host tensor was closed. Then no rank has written a host tensor. If the call fails
   *     later, the message says which tensors were written.
   */
  public void storeToHost(Duration deadline) {
    Deadline until = Deadline.of(deadline);
    var agreement =
        new RankAgreement(communicator, Native.WL_OP_STORE_TO_HOST, "storeToHost", until);
    agreement.carryOut(() -> requireStorable(deadline));
    agreement.carryOut(this::store);
    stored = true;
  }

  /** Throws if an operation runs on a group, a group has failed, or a host tensor was closed. */
  private void requireStorable(Duration deadline) {
    for (CommContext context : contexts) {
      if (context != null) {
        // Waits for the operations that were submitted earlier.
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
            stores.get(i).what() + ": " + e.getMessage() + "; written before it: "
                + (i == 0 ? "none" : names(stores.subList(0, i))),
            e,
            e.operation(),
            e.faultyRanks());
      }
    }
  }

  /**
   * Closes the windows and communicators of the groups, which ends their tensors. The call stores
   * nothing, because after a failure the slots hold no valid result. Further calls have no effect.
   *
   * @throws InvalidArgumentException if no operation has failed, and the program never stored the
   *     slots with {@code store_to_host}. Everything is closed in this case too.
   * @throws WindlassException if closing a communicator fails; the others are closed too
   */
  @Override
  public void close() {
    if (closed.getAndSet(true)) {
      return;
    }
    boolean failed =
        communicator.failure().isPresent()
            || contexts.stream().anyMatch(c -> c != null && c.communicator().failure().isPresent());
    close(contexts);
    if (!stored && !failed) {
      throw new InvalidArgumentException(
          "close: not stored were " + names(stores) + "; call storeToHost() before close");
    }
  }

  private static String names(List<HostBinding> bindings) {
    return bindings.stream().map(HostBinding::what).collect(Collectors.joining(", "));
  }

  static void close(List<CommContext> contexts) {
    WindlassException first = null;
    for (int i = contexts.size() - 1; i >= 0; i--) {
      CommContext context = contexts.get(i);
      if (context == null) {
        continue;
      }
      try {
        context.close();
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
