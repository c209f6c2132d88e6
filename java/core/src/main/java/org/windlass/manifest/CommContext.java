// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.windlass.Communicator;
import org.windlass.DistributedTensor;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.InvalidArgumentException;

/**
 * A group of a manifest as one of its members has it: the communicator of its ranks, their window,
 * and each slot as a tensor in it. It lives as long as its {@link CommContexts}.
 */
public final class CommContext {
  private final Bootstrap bootstrap;
  private final int index;
  private final Communicator communicator;
  private final Window window;
  private final Map<String, DistributedTensor> tensors = new LinkedHashMap<>();

  CommContext(Bootstrap bootstrap, int index, Communicator communicator, Window window) {
    this.bootstrap = bootstrap;
    this.index = index;
    this.communicator = communicator;
    this.window = window;
    for (Bootstrap.Place place : group().slots()) {
      Slot slot = place.slot();
      long elements = slot.bytes() / slot.dtype().bytes();
      tensors.put(slot.name(), window.tensorAt(place.offset(), slot.dtype(), elements));
    }
  }

  /** What the manifest says of it: members, slots and where they lie. */
  public Bootstrap.Group group() {
    return bootstrap.groups().get(index);
  }

  /** Its members, as dense ranks in the order of the manifest's list. */
  public Communicator communicator() {
    return communicator;
  }

  /** The window of its members, which the slots fill. */
  public Window window() {
    return window;
  }

  /**
   * The slot of that name on this rank, which peers reach at the same place of the window.
   *
   * @return of one dimension: as many elements as the slot has; the bytes, as u8, of a slot of bytes
   *     or of elements of 4 bits
   * @throws InvalidArgumentException if the group has no such slot
   */
  public DistributedTensor tensor(String slot) {
    DistributedTensor tensor = tensors.get(Objects.requireNonNull(slot, "slot"));
    if (tensor == null) {
      throw new InvalidArgumentException(
          "tensor: " + bootstrap.label(index) + " has no slot " + ManifestNames.quoted(slot)
              + "; it has "
              + (tensors.isEmpty()
                  ? "none"
                  : tensors.keySet().stream()
                      .map(ManifestNames::quoted)
                      .collect(Collectors.joining(", "))));
    }
    return tensor;
  }

  /**
   * The rank in {@link #communicator} of a device, which is a rank of the communicator that the
   * manifest was opened on.
   *
   * @throws InvalidArgumentException if it is no member; it names the members
   */
  public int rankOf(int device) {
    return group().rankOf(device).orElseThrow(() -> noMember("rankOf", bootstrap, index, device));
  }

  static InvalidArgumentException noMember(
      String call, Bootstrap bootstrap, int index, int device) {
    List<Integer> members = bootstrap.groups().get(index).members();
    return new InvalidArgumentException(
        call + ": device " + device + " is no member of " + bootstrap.label(index)
            + "; its members are "
            + members.stream().map(String::valueOf).collect(Collectors.joining(", ")));
  }

  /** Copies a host tensor that fits it into a slot of this rank: by its device, where that has it. */
  void load(Slot slot, Tensor host) {
    DistributedTensor own = as(slot, host);
    if (window.isOnDevice()) {
      window.put(host, communicator.rank(), own);
    } else {
      own.copyFrom(host);
    }
  }

  /** Copies a slot of this rank into a host tensor that fits it. */
  void store(Slot slot, Tensor host) {
    DistributedTensor own = as(slot, host);
    if (window.isOnDevice()) {
      window.get(host, communicator.rank(), own);
    } else {
      host.copyFrom(own);
    }
  }

  /** A slot in the dtype and shape of a host tensor that fits it. */
  private DistributedTensor as(Slot slot, Tensor host) {
    return window.tensorAt(tensors.get(slot.name()).offset(), host.dtype(), host.shape());
  }

  /** Such as {@code group 0 ("experts"), rank 1 of 2}. */
  @Override
  public String toString() {
    return bootstrap.label(index) + ", " + communicator;
  }
}
