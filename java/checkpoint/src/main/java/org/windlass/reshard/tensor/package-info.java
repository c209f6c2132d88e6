// SPDX-License-Identifier: Apache-2.0
/** Describes the tensors that are read and written, the rules between them, and the moves. */
package org.windlass.reshard.tensor;
