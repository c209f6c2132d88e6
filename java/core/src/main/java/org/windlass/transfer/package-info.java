// SPDX-License-Identifier: Apache-2.0
/**
 * Moves tensors of one communicator from one layout to another. A {@link
 * org.windlass.transfer.TransferBuilder} binds tensors to memory, and its {@link
 * org.windlass.transfer.Transfer} moves them, any number of times.
 */
@NullMarked
package org.windlass.transfer;

import org.jspecify.annotations.NullMarked;
