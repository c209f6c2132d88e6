// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.demo;

import org.windlass.layout.Layout;

/**
 * One weight of the demo's model.
 *
 * @param index its number, from which its values come
 * @param name its name in a checkpoint
 * @param group the line of the table that it counts in
 * @param shape the global shape
 * @param from how the trainer holds it
 * @param to how the inference ranks hold it
 * @param buffer the inference rank's buffer that holds its part
 * @param bufferRow the first row of its part in that buffer
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
    long elements = 1;
    for (long extent : shape) {
      elements *= extent;
    }
    return elements;
  }
}
