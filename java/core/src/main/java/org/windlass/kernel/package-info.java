// SPDX-License-Identifier: Apache-2.0
/** The targets for which kernels are compiled, and libraries of user-defined kernels. */
@NullMarked
package org.windlass.kernel;

import org.jspecify.annotations.NullMarked;
