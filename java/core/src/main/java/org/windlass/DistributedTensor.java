// SPDX-License-Identifier: Apache-2.0
package org.windlass;

/** A tensor in a window, so that peers can access it. A view of such a tensor is one too. */
public final class DistributedTensor extends Tensor {
  private final Window window;

  DistributedTensor(Window window, long address, DType dtype, long[] shape, long[] strides) {
    super(window.memory(), address, dtype, shape, strides);
    this.window = window;
  }

  /** Returns the window that contains the tensor. */
  public Window window() {
    return window;
  }

  /** Returns the number of bytes from the window's start to the first element. */
  public long offset() {
    return address - memory.address;
  }

  @Override
  DistributedTensor view(long viewAddress, long[] viewShape, long[] viewStrides) {
    return new DistributedTensor(window, viewAddress, dtype, viewShape, viewStrides);
  }

  @Override
  public DistributedTensor narrow(int dim, long start, long length) {
    return (DistributedTensor) super.narrow(dim, start, length);
  }

  @Override
  public DistributedTensor select(int dim, long index) {
    return (DistributedTensor) super.select(dim, index);
  }

  @Override
  public DistributedTensor transpose(int dim0, int dim1) {
    return (DistributedTensor) super.transpose(dim0, dim1);
  }

  @Override
  public DistributedTensor splitDim(int dim, long... sizes) {
    return (DistributedTensor) super.splitDim(dim, sizes);
  }

  @Override
  public DistributedTensor reshape(long... shape) {
    return (DistributedTensor) super.reshape(shape);
  }

  /** Does nothing: the memory is freed with the window. */
  @Override
  public void close() {}
}
