// SPDX-License-Identifier: Apache-2.0
/**
 * Converts checkpoints from one layout to another. {@link org.windlass.reshard.Reshard#from} sets
 * the source layout, {@link org.windlass.reshard.Reshard#run} converts the checkpoint, and {@link
 * org.windlass.reshard.ReshardResult} reports the results.
 */
@NullMarked
package org.windlass.reshard;

import org.jspecify.annotations.NullMarked;
