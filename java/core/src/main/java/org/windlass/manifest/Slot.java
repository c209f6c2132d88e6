// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.Objects;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;

/**
 * A named piece of a group's window, as large on each of its ranks.
 *
 * @param name by which a program asks for it; not empty, and no other slot's of its group
 * @param extent how large it is
 * @param loadFromHost whether a host tensor of that name is moved in before the program
 * @param storeToHost whether it is moved out to one after the program
 */
public record Slot(String name, Extent extent, boolean loadFromHost, boolean storeToHost) {
  /** Checks the components. */
  public Slot {
    ManifestNames.require("name", name);
    Objects.requireNonNull(extent, "extent");
  }

  /** Its size on each rank, in bytes. */
  public long bytes() {
    return extent.bytes();
  }

  /** The dtype of the tensor that it becomes: u8 for bytes, and for elements of 4 bits. */
  public DType dtype() {
    if (extent instanceof Elements elements && elements.bitsPerElement() == elements.type().bits()) {
      return elements.type().dtype().orElse(DType.U8);
    }
    return DType.U8;
  }

  /** How large a slot is: a number of elements, or of bytes. */
  public sealed interface Extent {
    /** Bytes, the last one filled up. */
    long bytes();
  }

  /**
   * Elements that lie close together.
   *
   * @param type of each
   * @param size how many
   * @param bitsPerElement what each takes: as many as the type has, or 4 of {@code int8} and {@code
   *     uint8}, two to a byte
   */
  public record Elements(ElementType type, long size, int bitsPerElement) implements Extent {
    /** Checks the components. */
    public Elements {
      Objects.requireNonNull(type, "type");
      if (!type.takes(bitsPerElement)) {
        throw new InvalidArgumentException(
            "bits_per_element is " + bitsPerElement + "; elements of dtype " + type + " have "
                + type.widths());
      }
      requireSize("size", size, Long.MAX_VALUE / bitsPerElement - 7);
    }

    /** Of as many bits as the type has. */
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
   * Bytes of whatever kind.
   *
   * @param bytes how many
   */
  public record Bytes(long bytes) implements Extent {
    /** Checks the component. */
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
