// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import org.windlass.DType;
import org.windlass.layout.Layout;

/**
 * A tensor of the checkpoint that is read.
 *
 * @param name its name
 * @param stored the name under which the files hold it: another one where metadata tie it to that
 * @param shape the global shape
 * @param dtype its dtype
 * @param from the layout as it applies to this tensor
 * @param defaulted whether a default layout shards a dimension that the tensor lacks
 */
public record SourceTensor(
    String name, String stored, long[] shape, DType dtype, Layout from, boolean defaulted) {
  /** The same tensor under a name that is tied to it. */
  public SourceTensor tied(String name) {
    return new SourceTensor(name, stored, shape, dtype, from, defaulted);
  }
}
