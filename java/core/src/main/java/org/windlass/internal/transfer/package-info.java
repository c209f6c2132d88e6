// SPDX-License-Identifier: Apache-2.0
/**
 * Code that transfers and links share. A tensor has these forms from its description to its move:
 *
 * <ul>
 *   <li>{@link org.windlass.layout.TensorSpec} is the whole tensor under the layout of the senders
 *       or of the receivers.
 *   <li>{@link org.windlass.internal.transfer.Offer} has the tensors of one rank of a link, for the
 *       other ranks.
 *   <li>{@link org.windlass.internal.transfer.BoundTensor} has the tensor under both layouts, the
 *       plan, and the views of this rank.
 *   <li>{@link org.windlass.internal.transfer.TransferWords} has the addresses of a rank's views
 *       and the steps of the plan as words. The rank may be a Python rank.
 *   <li>{@link org.windlass.internal.transfer.TransferConfig} has these words in native memory, for
 *       the native library.
 * </ul>
 */
@NullMarked
package org.windlass.internal.transfer;

import org.jspecify.annotations.NullMarked;
