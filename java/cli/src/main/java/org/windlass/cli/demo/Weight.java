// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.demo;

import java.util.stream.LongStream;
import org.windlass.layout.Layout;

/**
 * One weight of the demo's model.
 *
 * @param index number of the weight, which determines its values
 * @param group line of the demo's table that includes the weight
 * @param buffer name of the buffer that holds an inference rank's part of the weight
 * @param bufferRow first row of that part in the buffer
 */
record Weight(
    int index,
    String name,
    String group,
    long[] shape,
    Layout from,
    Layout to,
    String buffer,
    long bufferRow) {

  long elements() {
    return LongStream.of(shape).reduce(1, Math::multiplyExact);
  }
}
