// SPDX-License-Identifier: Apache-2.0
/**
 * Adapters between Windlass and Bytedeco's CUDA presets, which are Java classes for CUDA: {@code
 * org.bytedeco:cuda}. The adapters convert pointers to tensors and back, and accept streams. A
 * program that uses them needs its own dependency on the presets. The adapters themselves need
 * neither the presets' native libraries, nor the CUDA toolkit, nor a driver.
 */
@NullMarked
package org.windlass.cuda;

import org.jspecify.annotations.NullMarked;
