// SPDX-License-Identifier: Apache-2.0
/**
 * What transfers and links share: bound tensors, the steps of a rank, and its words for the
 * native library.
 */
package org.windlass.internal.transfer;
