// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import org.windlass.DType;
import org.windlass.layout.Layout;

/**
 * A tensor of the checkpoint that is read.
 *
 * @param name its name
 * @param shape the global shape
 * @param dtype its dtype
 * @param from the layout as it applies to this tensor
 * @param defaulted whether a default layout shards a dimension that the tensor lacks
 */
record SourceTensor(String name, long[] shape, DType dtype, Layout from, boolean defaulted) {}
