// SPDX-License-Identifier: Apache-2.0
/**
 * Expert parallelism: ranks send tokens to the experts that a router chose. The ranks of these
 * experts return their results, which are multiplied by weights and added up for each token.
 */
@NullMarked
package org.windlass.experts;

import org.jspecify.annotations.NullMarked;
