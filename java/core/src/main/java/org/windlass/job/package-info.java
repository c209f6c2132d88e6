// SPDX-License-Identifier: Apache-2.0
/**
 * Connects jobs that were launched separately and send tensors to one another. A
 * {@link org.windlass.job.Job} connects to another by name, which makes a
 * {@link org.windlass.link.Link}. Use {@link org.windlass.job.Job#connect} for one target, and
 * {@link org.windlass.job.Job#followers} for targets that come and go.
 */
@NullMarked
package org.windlass.job;

import org.jspecify.annotations.NullMarked;
