// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.nio.file.Path;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Tensor;
import org.windlass.internal.JsonText;
import org.windlass.internal.Memory;
import org.windlass.internal.TensorAccess;

/** A safetensors file whose tensors are views of the mapped file: nothing is copied. */
public abstract sealed class MappedTensors implements AutoCloseable
    permits SafetensorsFile, SafetensorsWriter {
  final Path path;
  final SafetensorsHeader header;

  MappedTensors(Path path, SafetensorsHeader header) {
    this.path = path;
    this.header = header;
  }

  /** Where the file is. */
  public final Path path() {
    return path;
  }

  /** What the file holds. */
  public final SafetensorsHeader header() {
    return header;
  }

  /** The tensor's entry in the header. */
  public final SafetensorsEntry entry(String name) {
    return header
        .find(name)
        .orElseThrow(
            () ->
                new InvalidArgumentException(path + ": holds no tensor " + JsonText.quoted(name)));
  }

  /**
   * Whether a tensor lies at a multiple of its element size, as {@link #tensor} needs it. The
   * format does not demand it.
   */
  public final boolean isAligned(String name) {
    return header.isAligned(entry(name));
  }

  /**
   * The tensor of that name, in the mapped file.
   *
   * @throws InvalidArgumentException if there is none, if it is not aligned, or if the file has
   *     another length by now
   * @throws org.windlass.UnsupportedException if its dtype has less than a byte
   */
  public final Tensor tensor(String name) {
    SafetensorsEntry entry = entry(name);
    return view(entry, entry.dtype(), entry.dims());
  }

  /**
   * The same memory as {@link #tensor} shows, as bytes: for dtypes of less than a byte, and for
   * unaligned ones.
   */
  public final Tensor bytes(String name) {
    SafetensorsEntry entry = entry(name);
    return view(entry, DType.U8, entry.bytes());
  }

  private Tensor view(SafetensorsEntry entry, DType dtype, long... shape) {
    if (entry.bytes() == 0) {
      return Tensor.allocate(dtype, shape);
    }
    return TensorAccess.tensor(mapping(), header.dataStart() + entry.begin(), dtype, shape);
  }

  /** The whole file, mapped. */
  abstract Memory mapping();

  /**
   * Lets go of the file. Later use of its tensors throws Closed; the mapping goes when the last
   * call that uses it is over.
   */
  @Override
  public abstract void close();
}
