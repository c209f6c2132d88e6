// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;

/**
 * A slot of this rank and the host tensor that is copied to or from it. Both have the same size.
 *
 * @param group index of the group in the manifest
 * @param what the tensor's name in messages
 */
record HostBinding(int group, Slot slot, String what, Tensor tensor) {
  /**
   * A slot that is copied to or from a host tensor; {@code isOwn} is true if this rank has the
   * slot.
   */
  private record Asking(int group, Slot slot, boolean isOwn) {
    String text(Bootstrap bootstrap) {
      return "slot " + ManifestNames.quoted(slot.name()) + " of " + bootstrap.label(group);
    }

    boolean matches(Bootstrap bootstrap, HostTensors.Given given) {
      return slot.name().equals(given.slot())
          && (given.index() < 0 || given.index() == group)
          && (given.group() == null
              || bootstrap.groups().get(group).name().filter(given.group()::equals).isPresent());
    }
  }

  /** Returns a binding for each slot of {@code device} that needs a host tensor, or throws. */
  static List<HostBinding> of(Bootstrap bootstrap, int device, HostTensors hosts) {
    List<Asking> asking = asking(bootstrap, device);
    Map<Asking, HostBinding> bound = new LinkedHashMap<>();
    for (HostTensors.Given given : hosts.given()) {
      List<Asking> own =
          requireAsked(bootstrap, asking, given).stream().filter(Asking::isOwn).toList();
      if (own.size() > 1) {
        throw new InvalidArgumentException(
            given + " may go to "
                + own.stream().map(each -> each.text(bootstrap)).collect(Collectors.joining(" or "))
                + "; say which by HostTensors.and(group, slot, tensor)");
      }
      for (Asking slot : own) {
        check(slot.text(bootstrap), slot.slot, given);
        HostBinding binding =
            new HostBinding(slot.group, slot.slot, given.toString(), given.tensor());
        HostBinding before = bound.putIfAbsent(slot, binding);
        if (before != null) {
          throw new InvalidArgumentException(
              slot.text(bootstrap) + " has two tensors: " + before.what + " and " + given);
        }
      }
    }
    for (Asking slot : asking) {
      if (slot.isOwn && !bound.containsKey(slot)) {
        throw new InvalidArgumentException(
            slot.text(bootstrap) + (slot.slot.loadFromHost() ? " is loaded from" : " is stored to")
                + " the host, and there is no host tensor " + ManifestNames.quoted(slot.slot.name())
                + "; give one by HostTensors");
      }
    }
    return List.copyOf(bound.values());
  }

  private static List<Asking> asking(Bootstrap bootstrap, int device) {
    List<Asking> asking = new ArrayList<>();
    for (int group = 0; group < bootstrap.groups().size(); group++) {
      boolean isOwn = bootstrap.groups().get(group).rankOf(device).isPresent();
      for (Bootstrap.Place place : bootstrap.groups().get(group).slots()) {
        if (place.slot().loadFromHost() || place.slot().storeToHost()) {
          asking.add(new Asking(group, place.slot(), isOwn));
        }
      }
    }
    return asking;
  }

  /** Returns the slots, on any device, to which {@code given} belongs. Throws if there is none. */
  private static List<Asking> requireAsked(
      Bootstrap bootstrap, List<Asking> asking, HostTensors.Given given) {
    List<Asking> matching =
        asking.stream().filter(slot -> slot.matches(bootstrap, given)).toList();
    if (matching.isEmpty()) {
      throw new InvalidArgumentException(
          given + " is not asked for by any slot; the slots with load_from_host or store_to_host"
              + " are "
              + (asking.isEmpty()
                  ? "none"
                  : asking.stream()
                      .map(each -> each.text(bootstrap))
                      .collect(Collectors.joining(", "))));
    }
    return matching;
  }

  private static void check(String name, Slot slot, HostTensors.Given given) {
    Tensor tensor = given.tensor();
    boolean isBytes = slot.extent() instanceof Slot.Bytes;
    DType dtype = isBytes ? tensor.dtype() : slot.dtype();
    if (tensor.dtype() != dtype || tensor.bytes() != slot.bytes()) {
      throw new InvalidArgumentException(
          given + " is " + tensor + ", of " + tensor.bytes() + " bytes; " + name + " takes "
              + (isBytes ? "" : slot.bytes() / dtype.bytes() + " elements of " + dtype + ", ")
              + slot.bytes() + " bytes");
    }
    if (slot.storeToHost() && tensor.isReadOnly()) {
      throw new InvalidArgumentException(
          given + " (" + tensor + ") is read-only; " + name + " is stored to it");
    }
    requireUsable(given.toString(), tensor);
  }

  private static void requireUsable(String what, Tensor tensor) {
    if (!tensor.memory().usable()) {
      throw new ClosedException(what + " (" + tensor + ") is over memory that was closed");
    }
  }

  void requireUsable() {
    requireUsable(what, tensor);
  }

  void load(CommContext context) {
    DistributedTensor own = context.as(slot, tensor);
    if (own.isOnDevice()) {
      context.window().put(tensor, context.communicator().rank(), own);
    } else {
      own.copyFrom(tensor);
    }
  }

  void store(CommContext context) {
    DistributedTensor own = context.as(slot, tensor);
    if (own.isOnDevice()) {
      context.window().get(tensor, context.communicator().rank(), own);
    } else {
      tensor.copyFrom(own);
    }
  }
}
