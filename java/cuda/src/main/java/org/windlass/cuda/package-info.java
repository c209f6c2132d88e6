// SPDX-License-Identifier: Apache-2.0
/**
 * Adapters between Windlass and Bytedeco's CUDA presets, which are Java classes for CUDA: {@code
 * org.bytedeco:cuda}. They convert pointers to tensors and back, and take streams. Programs that
 * use them depend on the presets themselves. Nothing here needs the presets' native libraries, the
 * CUDA toolkit or a driver.
 */
@NullMarked
package org.windlass.cuda;

import org.jspecify.annotations.NullMarked;
