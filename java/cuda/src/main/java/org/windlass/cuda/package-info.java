// SPDX-License-Identifier: Apache-2.0
/**
 * Adapters between the CUDA presets of Bytedeco, {@code org.bytedeco:cuda}, and Windlass: pointers as
 * tensors and back, and streams to call on. The presets are the program's own dependency; nothing
 * here needs their natives, the CUDA toolkit or a driver.
 */
package org.windlass.cuda;
