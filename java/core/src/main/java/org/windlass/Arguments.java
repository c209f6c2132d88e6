// SPDX-License-Identifier: Apache-2.0
package org.windlass;

/**
 * What a rank can check of a collective's arguments by itself. Each check is a few compares of
 * fields; the text of a refusal is built apart from them.
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
        || SharedBytes.spansMeet(in, out)) {
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
            || (in.address != out.address && SharedBytes.spansMeet(in, out)))) {
      throw badBroadcast(in, out, root, rank, size);
    }
  }

  private static InvalidArgumentException badBroadcast(
      Tensor in, Tensor out, int root, int rank, int size) {
    String what = "broadcast";
    if (root < 0 || root >= size) {
      return refused(what, "root is " + root + "; it must lie in [0, " + size + ")");
    }
    requireBuffer(what, "out", out, true);
    if (rank == root) {
      requireBuffer(what, "in", in, false);
      requireAlike(what, in, out);
    }
    return refused(
        what, "in (" + in + ") overlaps out (" + out + "); in place, both are one tensor");
  }

  private static void requireBuffer(String what, String name, Tensor tensor, boolean write) {
    if (tensor == null) {
      throw refused(what, name + " is null");
    }
    if (!tensor.contiguous) {
      throw refused(
          what, name + " (" + tensor + ") is not contiguous; copy it to a contiguous tensor first");
    }
    if (write && tensor.memory.readOnly) {
      throw refused(what, name + " (" + tensor + ") is read-only");
    }
  }

  private static void requireAlike(String what, Tensor in, Tensor out) {
    if (in.dtype != out.dtype) {
      throw refused(
          what, "in has dtype " + in.dtype + ", out has " + out.dtype + "; they must agree");
    }
    if (in.numel != out.numel) {
      throw refused(
          what, "in has " + in.numel + " elements, out has " + out.numel + "; they must agree");
    }
  }

  private static InvalidArgumentException refused(String what, String why) {
    return new InvalidArgumentException(what + ": " + why);
  }
}
