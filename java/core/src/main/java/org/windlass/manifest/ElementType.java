// SPDX-License-Identifier: Apache-2.0
package org.windlass.manifest;

import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Named;

/** The dtypes of a manifest, with the names that a manifest uses. */
public enum ElementType {
  /** IEEE 754 binary32. */
  FLOAT32(DType.F32),
  /** IEEE 754 binary16. */
  FLOAT16(DType.F16),
  /** The upper half of a float32. */
  BFLOAT16(DType.BF16),
  /** Signed, 8 bits, or 4 bits if the manifest says so. */
  INT8(DType.I8),
  /** Signed, 16 bits. */
  INT16(DType.I16),
  /** Signed, 32 bits. */
  INT32(DType.I32),
  /** Signed, 64 bits. */
  INT64(DType.I64),
  /** Unsigned, 8 bits, or 4 bits if the manifest says so. */
  UINT8(DType.U8),
  /** Signed, 4 bits, two to a byte. */
  INT4(null),
  /** Unsigned, 4 bits, two to a byte. */
  UINT4(null);

  private static final int HALF_BYTE = 4;

  /** Dtype of tensors with these elements; null for elements of 4 bits. */
  private final @Nullable DType dtype;

  ElementType(@Nullable DType dtype) {
    this.dtype = dtype;
  }

  /** Returns the dtype of tensors with these elements; empty for elements of 4 bits. */
  public Optional<DType> dtype() {
    return Optional.ofNullable(dtype);
  }

  /** Returns the size of an element in bits. */
  public int bits() {
    return dtype == null ? HALF_BYTE : dtype.bits();
  }

  boolean takes(int bitsPerElement) {
    return bitsPerElement == bits()
        || (bitsPerElement == HALF_BYTE && (this == INT8 || this == UINT8));
  }

  String widths() {
    return this == INT8 || this == UINT8 ? "8 or 4" : Integer.toString(bits());
  }

  /**
   * Returns the type of that name, such as {@code float32}.
   *
   * @throws InvalidArgumentException if no type has that name
   */
  public static ElementType parse(String name) {
    Objects.requireNonNull(name, "name");
    return Named.of(
        name, List.of(values()), "dtype is " + ManifestNames.quoted(name) + "; known are ");
  }

  /** Returns the name that a manifest uses for this type. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
