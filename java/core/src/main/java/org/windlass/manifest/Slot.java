// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.Objects;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;

/**
 * A named piece of the window of a group, of the same size on each of the group's ranks.
 *
 * @param name name of the slot; not empty, and unique in its group
 * @param extent size of the slot
 * @param loadFromHost whether a host tensor of that name is copied into the slot when the manifest
 *     is opened
 * @param storeToHost whether {@link CommContexts#storeToHost()} copies the slot to a host tensor
 */
public record Slot(String name, Extent extent, boolean loadFromHost, boolean storeToHost) {
  /**
   * Creates a slot.
   *
   * @throws InvalidArgumentException if the name is not valid
   */
  public Slot {
    ManifestNames.require("name", name);
    Objects.requireNonNull(extent, "extent");
  }

  /** Returns the slot's size on each rank, in bytes. */
  public long bytes() {
    return extent.bytes();
  }

  /** Returns the dtype of the slot's tensor; u8 for bytes and for 4-bit elements. */
  public DType dtype() {
    if (extent instanceof Elements elements && elements.bitsPerElement() == elements.type().bits()) {
      return elements.type().dtype().orElse(DType.U8);
    }
    return DType.U8;
  }

  /** The size of a slot: a number of elements, or of bytes. */
  public sealed interface Extent {
    /** Returns the number of bytes, rounded up to whole bytes. */
    long bytes();
  }

  /**
   * A number of elements without gaps between them.
   *
   * @param type type of each element
   * @param size number of elements
   * @param bitsPerElement size of an element in bits: the size of the type, or 4 for {@code int8}
   *     and {@code uint8}, with two elements in a byte
   */
  public record Elements(ElementType type, long size, int bitsPerElement) implements Extent {
    /**
     * Creates an extent.
     *
     * @throws InvalidArgumentException if the size is out of range, or the type does not have
     *     elements of that many bits
     */
    public Elements {
      Objects.requireNonNull(type, "type");
      if (!type.takes(bitsPerElement)) {
        throw new InvalidArgumentException(
            "bits_per_element is " + bitsPerElement + "; elements of dtype " + type + " have "
                + type.widths());
      }
      requireSize("size", size, Long.MAX_VALUE / bitsPerElement - 7);
    }

    /** Creates an extent whose elements have the size of their type. */
    public Elements(ElementType type, long size) {
      this(type, size, Objects.requireNonNull(type, "type").bits());
    }

    @Override
    public long bytes() {
      return (size * bitsPerElement + 7) / 8;
    }

    @Override
    public String toString() {
      return size + " x " + type + (bitsPerElement == type.bits() ? "" : ":" + bitsPerElement);
    }
  }

  /**
   * A number of bytes, of any content.
   *
   * @param bytes number of bytes
   */
  public record Bytes(long bytes) implements Extent {
    /**
     * Creates an extent.
     *
     * @throws InvalidArgumentException if the number is out of range
     */
    public Bytes {
      requireSize("nbytes", bytes, Long.MAX_VALUE / 8);
    }

    @Override
    public String toString() {
      return "bytes";
    }
  }

  private static void requireSize(String what, long size, long most) {
    if (size < 0 || size > most) {
      throw new InvalidArgumentException(
          what + " is " + size + "; it must be 0 or more and at most " + most);
    }
  }
}
