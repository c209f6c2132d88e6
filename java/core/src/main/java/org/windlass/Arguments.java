// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.Objects;
import org.windlass.internal.Native;
import org.windlass.internal.SharedBytes;

/**
 * The checks of what the native side knows nothing of: tensors, and the lengths of lists. Each is
 * a few compares of fields; the text of a refusal is built apart from them.
 */
final class Arguments {
  private Arguments() {}

  /** The tensors of a collective: either may be null, where this rank has none. */
  static void buffers(int operation, Tensor in, Tensor out) {
    if ((in != null && !in.contiguous)
        || (out != null && (!out.contiguous || out.memory.readOnly))
        || (in != null && out != null && in.dtype != out.dtype)) {
      throw badBuffers(Native.wl_operation_name(operation), in, out);
    }
  }

  private static InvalidArgumentException badBuffers(String what, Tensor in, Tensor out) {
    requireContiguous(what, "out", out);
    requireContiguous(what, "in", in);
    if (out != null) {
      writable(what, "out", out);
    }
    return refused(
        what, "in has dtype " + in.dtype + ", out has " + out.dtype + "; they must agree");
  }

  /** Matrices of as many rows. */
  static void matrices(String what, Tensor in, Tensor out) {
    if (in.shape.length != 2 || out.shape.length != 2 || in.shape[0] != out.shape[0]) {
      throw refused(
          what, "in is " + in + ", out " + out + "; they must be matrices of as many rows");
    }
  }

  /** A list of one value for each rank. */
  static void list(String what, String name, long[] list, int size) {
    Objects.requireNonNull(list, name);
    if (list.length != size) {
      throw refused(
          what, name + " has " + list.length + " values; it must have one for each of " + size
              + " ranks");
    }
  }

  /** Both sides of a move between this rank's memory and a peer's part of {@code window}. */
  static void oneSided(
      String what, Window window, Tensor local, int peer, DistributedTensor remote) {
    if (local == null
        || remote == null
        || remote.window() != window
        || local.dtype != remote.dtype
        || !Arrays.equals(local.shape, remote.shape)
        || peer < 0
        || peer >= window.communicator().size()
        || (peer == window.communicator().rank() && shareBytes(local, remote))) {
      throw badOneSided(what, window, local, peer, remote);
    }
  }

  private static InvalidArgumentException badOneSided(
      String what, Window window, Tensor local, int peer, DistributedTensor remote) {
    Objects.requireNonNull(local, "local");
    Objects.requireNonNull(remote, "remote");
    peer(what, peer, window.communicator().size());
    if (remote.window() != window) {
      return refused(what, "remote (" + remote + ") lies in another window");
    }
    if (local.dtype != remote.dtype || !Arrays.equals(local.shape, remote.shape)) {
      return refused(
          what, "local is " + local + ", remote " + remote + "; dtypes and shapes must agree");
    }
    return refused(what, "local (" + local + ") overlaps remote (" + remote + ")");
  }

  static void peer(String what, int peer, int size) {
    if (peer < 0 || peer >= size) {
      throw refused(what, "peer is " + peer + "; it must lie in [0, " + size + ")");
    }
  }

  static void writable(String what, String name, Tensor tensor) {
    if (tensor.memory.readOnly) {
      throw refused(what, name + " (" + tensor + ") is read-only");
    }
  }

  private static void requireContiguous(String what, String name, Tensor tensor) {
    if (tensor != null && !tensor.contiguous) {
      throw refused(
          what, name + " (" + tensor + ") is not contiguous; copy it to a contiguous tensor first");
    }
  }

  private static InvalidArgumentException refused(String what, String why) {
    return new InvalidArgumentException(what + ": " + why);
  }

  /** Whether any element of {@code a} and any of {@code b} share a byte. */
  static boolean shareBytes(Tensor a, Tensor b) {
    return spansMeet(a, b)
        && (a.contiguous && b.contiguous || SharedBytes.between(where(a), where(b)));
  }

  private static SharedBytes.View where(Tensor tensor) {
    return new SharedBytes.View(
        tensor.address, tensor.shape, tensor.strides, tensor.dtype.bytes());
  }

  /** Whether the byte ranges from first to last element meet. */
  private static boolean spansMeet(Tensor a, Tensor b) {
    return SharedBytes.spansMeet(a.address, a.span, b.address, b.span);
  }
}
