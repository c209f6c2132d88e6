// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;

/** Opens a manifest on one rank. Each step begins only if the last one succeeded on all ranks. */
final class Opening {
  private final CommManifest manifest;
  private final Communicator communicator;
  private final SlotMemory memory;
  private final HostTensors hosts;
  private final Deadline until;

  private @Nullable Bootstrap bootstrap;
  private List<HostBinding> bindings = List.of();

  /** The group's communicator for each group; null if this rank is not a member. */
  private List<@Nullable Communicator> communicators = List.of();

  private List<@Nullable CommContext> contexts = List.of();

  Opening(
      CommManifest manifest,
      Communicator communicator,
      SlotMemory memory,
      HostTensors hosts,
      Deadline until) {
    this.manifest = manifest;
    this.communicator = communicator;
    this.memory = memory;
    this.hosts = hosts;
    this.until = until;
  }

  CommContexts open() {
    RankAgreement agreement =
        new RankAgreement(communicator, Native.WL_OP_MANIFEST_OPEN, "open", until);
    agreement.requireSame(memory, manifest);
    agreement.carryOut(this::check);
    boolean isOpen = false;
    try {
      agreement.carryOut(this::make);
      isOpen = true;
    } finally {
      if (!isOpen) {
        leave();
      }
    }
    return new CommContexts(
        communicator,
        Objects.requireNonNull(bootstrap),
        Collections.unmodifiableList(contexts),
        bindings);
  }

  private void check() {
    int ranks = communicator.size();
    try {
      bootstrap = manifest.bootstrap(ranks);
    } catch (InvalidArgumentException e) {
      throw new InvalidArgumentException(
          e.getMessage() + ", the " + ranks + " ranks of the communicator", e);
    }
    memory.check(communicator.target(), bootstrap);
    bindings = HostBinding.of(bootstrap, communicator.rank(), hosts);
  }

  /**
   * Makes all communicators, then all windows, then loads the slots. All ranks do this in the same
   * order.
   */
  private void make() {
    try {
      Bootstrap checked = Objects.requireNonNull(bootstrap);
      List<Bootstrap.Group> groups = checked.groups();
      communicators = new ArrayList<>(Collections.nCopies(groups.size(), null));
      contexts = new ArrayList<>(Collections.nCopies(groups.size(), null));
      for (int i = 0; i < groups.size(); i++) {
        OptionalInt rank = groups.get(i).rankOf(communicator.rank());
        communicators.set(
            i, communicator.split(rank.isPresent() ? 0 : -1, rank.orElse(0), until.left()));
      }
      for (int i = 0; i < groups.size(); i++) {
        Communicator group = communicators.get(i);
        if (group != null) {
          contexts.set(
              i,
              new CommContext(
                  checked,
                  i,
                  group,
                  memory.window(group, groups.get(i).windowBytes(), until.left())));
        }
      }
      for (HostBinding binding : bindings) {
        if (binding.slot().loadFromHost()) {
          binding.load(contexts.get(binding.group()));
        }
      }
    } catch (RuntimeException | Error e) {
      leave(); // so that no peer waits for this rank
      throw e;
    }
  }

  /**
   * Closes everything that was made. Ignores failures, since the caller throws an earlier failure.
   */
  private void leave() {
    for (CommContext context : contexts) {
      if (context != null) {
        context.window().close();
      }
    }
    for (Communicator group : communicators) {
      if (group != null) {
        try {
          group.close();
        } catch (WindlassException e) {
          // RankAgreement reports the failure.
        }
      }
    }
  }
}
