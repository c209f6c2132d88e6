// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.Objects;
import org.windlass.internal.SharedBytes;

/**
 * The checks of a collective's arguments that a rank can make by itself. Each check is a few
 * compares of fields; the text of a refusal is built apart from them.
 */
final class Arguments {
  private Arguments() {}

  static void allToAll(Tensor in, Tensor out, int size) {
    if (in == null
        || out == null
        || in.dtype != out.dtype
        || in.numel != out.numel
        || !in.contiguous
        || !out.contiguous
        || out.memory.readOnly
        || in.numel % size != 0
        || spansMeet(in, out)) {
      throw badAllToAll(in, out, size);
    }
  }

  private static InvalidArgumentException badAllToAll(Tensor in, Tensor out, int size) {
    String what = "allToAll";
    requireBuffer(what, "in", in, false);
    requireBuffer(what, "out", out, true);
    requireAlike(what, in, out);
    if (in.numel % size != 0) {
      return refused(
          what,
          "in has "
              + in.numel
              + " elements, which don't divide among "
              + size
              + " ranks; its"
              + " elements must be a multiple of the communicator's size");
    }
    return refused(what, "in (" + in + ") overlaps out (" + out + ")");
  }

  static void broadcast(Tensor in, Tensor out, int root, int rank, int size) {
    if (out == null || root < 0 || root >= size || !out.contiguous || out.memory.readOnly) {
      throw badBroadcast(in, out, root, rank, size);
    }
    if (rank == root
        && in != out
        && (in == null
            || in.dtype != out.dtype
            || in.numel != out.numel
            || !in.contiguous
            || (in.address != out.address && spansMeet(in, out)))) {
      throw badBroadcast(in, out, root, rank, size);
    }
  }

  private static InvalidArgumentException badBroadcast(
      Tensor in, Tensor out, int root, int rank, int size) {
    String what = "broadcast";
    root(what, root, size);
    requireBuffer(what, "out", out, true);
    if (rank == root) {
      requireBuffer(what, "in", in, false);
      requireAlike(what, in, out);
    }
    return refused(
        what, "in (" + in + ") overlaps out (" + out + "); in place, both are one tensor");
  }

  /**
   * A tensor of one part and one of the parts of all ranks. They overlap only in place: the one is
   * this rank's own part of the other.
   *
   * @param written which of the two the operation writes
   */
  static void parts(
      String what,
      Tensor part,
      String partName,
      Tensor whole,
      String wholeName,
      Tensor written,
      int rank,
      int size) {
    if (part == null
        || whole == null
        || part.dtype != whole.dtype
        || !part.contiguous
        || !whole.contiguous
        || written.memory.readOnly
        || part.numel != whole.numel / size
        || whole.numel % size != 0
        || (spansMeet(part, whole) && !isPart(part, whole, rank))) {
      throw badParts(what, part, partName, whole, wholeName, written, rank, size);
    }
  }

  private static boolean isPart(Tensor part, Tensor whole, int rank) {
    return part.address == whole.address + rank * part.numel * part.dtype.bytes();
  }

  private static InvalidArgumentException badParts(
      String what,
      Tensor part,
      String partName,
      Tensor whole,
      String wholeName,
      Tensor written,
      int rank,
      int size) {
    requireBuffer(what, partName, part, part == written);
    requireBuffer(what, wholeName, whole, whole == written);
    if (part.dtype != whole.dtype) {
      return refused(
          what,
          partName
              + " has dtype "
              + part.dtype
              + ", "
              + wholeName
              + " has "
              + whole.dtype
              + "; they must agree");
    }
    if (part.numel != whole.numel / size || whole.numel % size != 0) {
      return refused(
          what,
          wholeName
              + " has "
              + whole.numel
              + " elements, "
              + partName
              + " has "
              + part.numel
              + "; with "
              + size
              + " ranks, "
              + wholeName
              + " must have "
              + size
              + " times as many");
    }
    return refused(
        what,
        partName
            + " ("
            + part
            + ") overlaps "
            + wholeName
            + " ("
            + whole
            + "); in place, "
            + partName
            + " is part "
            + rank
            + " of "
            + wholeName);
  }

  /** Two tensors whose parts differ in size; lists of values say which. */
  static void buffers(String what, Tensor in, Tensor out) {
    if (in == null
        || out == null
        || in.dtype != out.dtype
        || !in.contiguous
        || !out.contiguous
        || out.memory.readOnly) {
      requireBuffer(what, "in", in, false);
      requireBuffer(what, "out", out, true);
      requireOneDType(what, in, out);
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

  /** Two tensors alike, which are one in place and don't overlap otherwise. */
  static void alike(String what, Tensor in, Tensor out) {
    if (in == null
        || out == null
        || in.dtype != out.dtype
        || in.numel != out.numel
        || !in.contiguous
        || !out.contiguous
        || out.memory.readOnly
        || (in.address != out.address && spansMeet(in, out))) {
      requireBuffer(what, "in", in, false);
      requireBuffer(what, "out", out, true);
      requireAlike(what, in, out);
      throw refused(
          what, "in (" + in + ") overlaps out (" + out + "); in place, both are one tensor");
    }
  }

  /** A tensor that the operation names alone on this rank. */
  static void single(String what, String name, Tensor tensor, boolean write) {
    if (tensor == null || !tensor.contiguous || (write && tensor.memory.readOnly)) {
      requireBuffer(what, name, tensor, write);
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

  static void root(String what, int root, int size) {
    if (root < 0 || root >= size) {
      throw refused(what, "root is " + root + "; it must lie in [0, " + size + ")");
    }
  }

  static void reducible(String what, Tensor tensor, ReduceOp op) {
    if (!tensor.dtype.canReduce(op)) {
      throw new UnsupportedException(
          what + ": dtype " + tensor.dtype + " doesn't reduce with " + op);
    }
  }

  private static void requireBuffer(String what, String name, Tensor tensor, boolean write) {
    Objects.requireNonNull(tensor, name);
    if (!tensor.contiguous) {
      throw refused(
          what, name + " (" + tensor + ") is not contiguous; copy it to a contiguous tensor first");
    }
    if (write) {
      writable(what, name, tensor);
    }
  }

  private static void requireOneDType(String what, Tensor in, Tensor out) {
    if (in.dtype != out.dtype) {
      throw refused(
          what, "in has dtype " + in.dtype + ", out has " + out.dtype + "; they must agree");
    }
  }

  private static void requireAlike(String what, Tensor in, Tensor out) {
    requireOneDType(what, in, out);
    if (in.numel != out.numel) {
      throw refused(
          what, "in has " + in.numel + " elements, out has " + out.numel + "; they must agree");
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
