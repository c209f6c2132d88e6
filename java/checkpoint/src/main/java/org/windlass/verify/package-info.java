// SPDX-License-Identifier: Apache-2.0
/** Checks written tensors against the definitions, without the code that wrote them. */
@NullMarked
package org.windlass.verify;

import org.jspecify.annotations.NullMarked;
