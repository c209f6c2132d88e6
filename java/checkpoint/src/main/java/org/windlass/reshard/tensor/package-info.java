// SPDX-License-Identifier: Apache-2.0
/** Describes the tensors that are read and written, the rules between them, and the moves. */
@NullMarked
package org.windlass.reshard.tensor;

import org.jspecify.annotations.NullMarked;
