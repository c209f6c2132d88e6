// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

/** A scene that is played by a process of its own, whose folder has what the blocks name. */
public interface InFolder {}
