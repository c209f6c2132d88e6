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
 * A group of a manifest, as one of its members sees it. It has the group's communicator and window,
 * and a tensor in the window for each slot. It is valid until its {@link CommContexts} is closed.
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

  /** Returns the group: its members, its slots and their offsets. */
  public Bootstrap.Group group() {
    return bootstrap.groups().get(index);
  }

  /** Returns the group's communicator. Its ranks are in the order of the group's device list. */
  public Communicator communicator() {
    return communicator;
  }

  /** Returns the window of the group, in which the slots are. */
  public Window window() {
    return window;
  }

  /**
   * Returns the slot of that name on this rank. It has the same offset in the windows of all
   * members.
   *
   * @return a tensor of one dimension with the slot's elements. A slot of bytes or of 4-bit
   *     elements gives its bytes as u8.
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
   * Returns the rank in {@link #communicator} of a device.
   *
   * @param device index of the device: its rank in the communicator that opened the manifest
   * @throws InvalidArgumentException if the device is not a member; the message names the members
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

  /** Returns a view of the slot with the dtype and shape of {@code host}. */
  DistributedTensor as(Slot slot, Tensor host) {
    return window.tensorAt(tensor(slot.name()).offset(), host.dtype(), host.shape());
  }

  /** Closes the window, then the communicator. */
  void close() {
    try {
      window.close();
    } finally {
      communicator.close();
    }
  }

  /** Returns text such as {@code group 0 ("experts"), rank 1 of 2}. */
  @Override
  public String toString() {
    return bootstrap.label(index) + ", " + communicator;
  }
}
