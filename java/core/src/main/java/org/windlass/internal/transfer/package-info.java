// SPDX-License-Identifier: Apache-2.0
/**
 * Code that transfers and links share. A tensor has these forms on its way to a move:
 *
 * <ul>
 *   <li>{@link org.windlass.layout.TensorSpec} is the whole tensor under the layout of one side.
 *   <li>{@link org.windlass.internal.transfer.Offer} has the tensors of one rank of a link, for the
 *       other ranks.
 *   <li>{@link org.windlass.internal.transfer.BoundTensor} is both sides of it, their plan, and the
 *       views of this rank.
 *   <li>{@link org.windlass.internal.transfer.TransferWords} has the addresses of the views and the
 *       steps of the plan as words, which may be those of a Python rank.
 *   <li>{@link org.windlass.internal.transfer.TransferConfig} has these words in native memory. The
 *       native library makes the items from it that a move runs.
 * </ul>
 */
@NullMarked
package org.windlass.internal.transfer;

import org.jspecify.annotations.NullMarked;
