// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.windlass.DType;
import org.windlass.Layout;
import org.windlass.Plan;

/**
 * One tensor's way from layout to layout.
 *
 * @param name the tensor's name
 * @param shape the global shape
 * @param source the dtype that it has
 * @param target the dtype that it gets
 * @param wire the dtype between them, if it was asked for and the tensor is floating
 * @param from the source layout as it applies to this tensor
 * @param to the target layout as it applies to this tensor
 * @param defaulted whether a default layout shards a dimension that the tensor lacks
 */
record TensorMove(
    String name,
    long[] shape,
    DType source,
    DType target,
    Optional<DType> wire,
    Layout from,
    Layout to,
    boolean defaulted) {

  /** The dtype in which it crosses ranks. */
  DType effectiveWire() {
    return wire.orElseGet(() -> Plan.defaultWire(source, target));
  }

  /** Whether target bits are source bits: nothing is cast and nothing reduced. */
  boolean keepsBits() {
    return source == target && wire.orElse(source) == source && !from.hasPartial();
  }

  /** Elements of the whole tensor. */
  long elements() {
    long elements = 1;
    for (long extent : shape) {
      elements *= extent;
    }
    return elements;
  }

  /** Bytes of that many target elements, which fill whole bytes. */
  long targetBytes(long elements) {
    return target.bytesOf(elements);
  }

  /** Elements that the target ranks hold in all. */
  long targetElements() {
    long elements = 0;
    for (int rank : to.mesh().ranks()) {
      long local = 1;
      for (long extent : to.localShape(shape, rank)) {
        local *= extent;
      }
      elements += local;
    }
    return elements;
  }

  List<Long> shapeList() {
    return Arrays.stream(shape).boxed().toList();
  }
}
