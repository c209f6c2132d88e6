// SPDX-License-Identifier: Apache-2.0
/** The GPUs of this host, as the CUDA driver describes them. */
@NullMarked
package org.windlass.gpu;

import org.jspecify.annotations.NullMarked;
