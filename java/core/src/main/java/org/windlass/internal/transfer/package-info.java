// SPDX-License-Identifier: Apache-2.0
/**
 * Code that transfers and links share: bound tensors, the steps of a rank, and its words for the
 * native library.
 */
@NullMarked
package org.windlass.internal.transfer;

import org.jspecify.annotations.NullMarked;
