// SPDX-License-Identifier: Apache-2.0
/**
 * Expert parallelism: ranks send tokens to the experts that a router chose. The results return to
 * the tokens' ranks, multiplied by weights and added up.
 */
@NullMarked
package org.windlass.experts;

import org.jspecify.annotations.NullMarked;
