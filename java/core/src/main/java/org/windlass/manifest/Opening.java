// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.OptionalInt;
import org.windlass.Communicator;
import org.windlass.InvalidArgumentException;
import org.windlass.ResourceException;
import org.windlass.Target;
import org.windlass.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;

/**
 * The opening of a manifest on one rank. All ranks agree that nothing is refused before a window is
 * made, and that all has been made and loaded before the contexts are given out.
 */
final class Opening {
  /** What windows are made of. */
  private static final long PAGE = 4096;

  private final CommManifest manifest;
  private final Communicator communicator;
  private final HostTensors hosts;
  private final Deadline until;

  private Bootstrap bootstrap;
  private List<HostBinding> bindings;

  /** Of each group; null where this rank is no member, or before it is made. */
  private List<Communicator> communicators = List.of();

  private List<CommContext> contexts = List.of();

  Opening(CommManifest manifest, Communicator communicator, HostTensors hosts, Deadline until) {
    this.manifest = manifest;
    this.communicator = communicator;
    this.hosts = hosts;
    this.until = until;
  }

  CommContexts open() {
    RankAgreement agreement =
        new RankAgreement(communicator, Native.WL_OP_MANIFEST_OPEN, "open", until);
    agreement.requireSame(manifest);
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
        communicator, bootstrap, Collections.unmodifiableList(contexts), bindings);
  }

  private void check() {
    int ranks = communicator.size();
    try {
      bootstrap = manifest.bootstrap(ranks);
    } catch (InvalidArgumentException e) {
      throw new InvalidArgumentException(
          e.getMessage() + ", the " + ranks + " ranks of the communicator", e);
    }
    requireMemory();
    bindings = HostBinding.of(bootstrap, communicator.rank(), hosts);
  }

  /** All ranks live on this machine, and on these targets windows lie in its memory. */
  private void requireMemory() {
    Target target = communicator.target();
    if (target != Target.SIM && target != Target.A2A3SIM && target != Target.A5SIM) {
      return;
    }
    long available = Native.wl_memory_available();
    long free = available < 0 ? Long.MAX_VALUE : available;
    long taken = 0;
    for (int index = 0; index < bootstrap.groups().size(); index++) {
      Bootstrap.Group group = bootstrap.groups().get(index);
      int members = group.members().size();
      for (Bootstrap.Place place : group.slots()) {
        // Sizes are at most 2^60.
        long end = (place.offset() + place.slot().bytes() + PAGE - 1) / PAGE * PAGE;
        if (end > (free - taken) / members) {
          throw new ResourceException(
              "slot "
                  + ManifestNames.quoted(place.slot().name())
                  + " of "
                  + bootstrap.label(index)
                  + " is too large: it takes "
                  + place.slot().bytes()
                  + " bytes on each of "
                  + members
                  + (members == 1 ? " rank" : " ranks")
                  + ", and beside the slots before it "
                  + Math.max(0, (free - taken) / members - place.offset())
                  + " are left of the "
                  + free
                  + " that are free on this machine; make it smaller, or free some");
        }
      }
      taken += (group.windowBytes() + PAGE - 1) / PAGE * PAGE * members;
    }
  }

  /** Makes all communicators, then all windows, in one order on all ranks; loads the slots. */
  private void make() {
    try {
      List<Bootstrap.Group> groups = bootstrap.groups();
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
                  bootstrap, i, group, group.window(groups.get(i).windowBytes(), until.left())));
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

  /** Leaves what was made; what a peer has failed with is told elsewhere. */
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
          // The agreement tells of it.
        }
      }
    }
  }
}
