// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

/**
 * A scene whose class has its own name and is run by a block of commands, as {@code java Trainer}.
 */
public interface Launched {}
