// SPDX-License-Identifier: Apache-2.0
/**
 * The tensors that are read and written, the rules that lead from one to the other, and the
 * moves.
 */
package org.windlass.reshard.tensor;
