// SPDX-License-Identifier: Apache-2.0
/**
 * Connects jobs that were launched separately and send tensors to one another. A
 * {@link org.windlass.job.Job} connects to another by name, which makes a
 * {@link org.windlass.link.Link}. {@link org.windlass.job.Followers} are jobs that each receive at
 * their own pace.
 */
package org.windlass.job;
