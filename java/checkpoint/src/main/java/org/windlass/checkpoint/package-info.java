// SPDX-License-Identifier: Apache-2.0
/**
 * Checkpoints on disk, in the safetensors format: {@link org.windlass.checkpoint.Checkpoint} reads
 * one, and {@link org.windlass.checkpoint.CheckpointWriter} makes one that appears complete or not
 * at all. Writers refuse what readers would.
 *
 * <p>{@link org.windlass Wrong calls} are those of {@code org.windlass}: null is a {@link
 * NullPointerException} that names the argument, use after close a {@link
 * org.windlass.error.ClosedException}, and the rest an {@link
 * org.windlass.error.InvalidArgumentException}. So is a file that is missing or malformed; one that
 * can't be read or written is a {@link org.windlass.error.ResourceException}.
 */
package org.windlass.checkpoint;
