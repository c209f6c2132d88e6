// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.Arrays;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.checkpoint.SafetensorsEntry;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.checkpoint.SafetensorsWriter;

/** One tensor in one file, of either end. */
interface Stored {
  /** The tensor in the mapped file; it is aligned. */
  Tensor typed();

  /** The same memory as bytes. */
  Tensor bytes();

  /** Whether it lies at a multiple of its element size. */
  boolean isAligned();

  DType dtype();

  long[] shape();

  /** A tensor of a checkpoint that is read. */
  static Stored of(SafetensorsFile file, String name) {
    SafetensorsEntry entry = file.entry(name);
    return new InFile(
        entry.dtype(),
        entry.dims(),
        file.isAligned(name),
        () -> file.tensor(name),
        () -> file.bytes(name));
  }

  /** A tensor of a checkpoint that is written. */
  static Stored of(SafetensorsWriter file, String name) {
    SafetensorsEntry entry = file.header().find(name).orElseThrow();
    return new InFile(
        entry.dtype(),
        entry.dims(),
        file.isAligned(name),
        () -> file.tensor(name),
        () -> file.bytes(name));
  }

  /** Its bytes with the element's own as one dimension more. */
  default Tensor byteElements() {
    long[] shape = Arrays.copyOf(shape(), shape().length + 1);
    shape[shape.length - 1] = dtype().bytes();
    return bytes().reshape(shape);
  }

  default boolean isEmpty() {
    return Arrays.stream(shape()).anyMatch(extent -> extent == 0);
  }

  /** What both kinds of file say of a tensor. */
  record InFile(
      DType dtype,
      long[] shape,
      boolean isAligned,
      java.util.function.Supplier<Tensor> typedView,
      java.util.function.Supplier<Tensor> byteView)
      implements Stored {
    @Override
    public Tensor typed() {
      return typedView.get();
    }

    @Override
    public Tensor bytes() {
      return byteView.get();
    }
  }
}
