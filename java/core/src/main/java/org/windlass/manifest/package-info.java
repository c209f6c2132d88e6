// SPDX-License-Identifier: Apache-2.0
/**
 * The comm manifest: a JSON file that says ahead of time which groups communicate, and which slots
 * their windows have.
 *
 * <ul>
 *   <li>{@link org.windlass.manifest.CommManifest} is the content of the file.
 *   <li>{@link org.windlass.manifest.Bootstrap} is the manifest resolved for a number of devices.
 *   <li>{@link org.windlass.manifest.CommContexts} holds a rank's communicators, windows and
 *       tensors.
 * </ul>
 *
 * <p>{@link org.windlass Invalid calls} throw the exceptions that {@code org.windlass} describes.
 */
@NullMarked
package org.windlass.manifest;

import org.jspecify.annotations.NullMarked;
