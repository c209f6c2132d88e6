// SPDX-License-Identifier: Apache-2.0
/** The targets that kernels are compiled for, and kernels of other authors. */
package org.windlass.kernel;
