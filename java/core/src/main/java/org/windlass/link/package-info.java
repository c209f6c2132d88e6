// SPDX-License-Identifier: Apache-2.0
/**
 * Sends versions of tensors from one group of ranks to another. A {@link org.windlass.link.Link}
 * joins two groups of ranks of one communicator, or two {@linkplain org.windlass.job.Job jobs}.
 * Each side knows only its own layouts.
 */
@NullMarked
package org.windlass.link;

import org.jspecify.annotations.NullMarked;
