// SPDX-License-Identifier: Apache-2.0
/** The GPUs of this host, as the CUDA driver describes them. */
package org.windlass.gpu;
