// SPDX-License-Identifier: Apache-2.0
/**
 * Adapters between Bytedeco's CUDA presets, {@code org.bytedeco:cuda}, and Windlass: pointers as
 * tensors and back, and streams for calls. The program itself depends on the presets. Nothing here
 * needs their natives, the CUDA toolkit or a driver.
 */
package org.windlass.cuda;
