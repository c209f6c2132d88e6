// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.Arrays;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.checkpoint.SafetensorsFile;

/** A tensor, or a rank's part of one, in a file that is read. */
record Stored(SafetensorsFile file, String name) {
  /** The tensor in the mapped file; it is aligned. */
  Tensor typed() {
    return file.tensor(name);
  }

  /** The same memory as bytes. */
  Tensor bytes() {
    return file.bytes(name);
  }

  /** Its bytes with the element's own as one dimension more. */
  Tensor byteElements() {
    long[] shape = Arrays.copyOf(shape(), shape().length + 1);
    shape[shape.length - 1] = dtype().bytes();
    return bytes().reshape(shape);
  }

  /** Whether it lies at a multiple of its element size. */
  boolean isAligned() {
    return file.isAligned(name);
  }

  DType dtype() {
    return file.entry(name).dtype();
  }

  long[] shape() {
    return file.entry(name).dims();
  }
}
