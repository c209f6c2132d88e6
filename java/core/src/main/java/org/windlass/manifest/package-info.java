// SPDX-License-Identifier: Apache-2.0
/**
 * The comm manifest: a JSON file that says ahead of time which groups communicate and what lies in
 * their windows. {@link org.windlass.manifest.CommManifest} is what it says, {@link
 * org.windlass.manifest.Bootstrap} what that means for a number of devices, {@link
 * org.windlass.manifest.CommContexts} what a rank gets by it: communicators, windows, tensors.
 *
 * <p>{@link org.windlass Wrong calls} are those of {@code org.windlass}.
 */
package org.windlass.manifest;
