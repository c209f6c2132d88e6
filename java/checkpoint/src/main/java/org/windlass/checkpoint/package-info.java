// SPDX-License-Identifier: Apache-2.0
/**
 * Reads and writes checkpoints on disk, in the safetensors format. {@link
 * org.windlass.checkpoint.Checkpoint} reads one. {@link org.windlass.checkpoint.CheckpointWriter}
 * writes one that appears complete or not at all. A writer accepts only what a reader accepts.
 *
 * <p>Wrong calls throw as described in {@link org.windlass}. A null argument throws a {@link
 * NullPointerException} that names it, and use after close throws {@link
 * org.windlass.error.ClosedException}. Other wrong calls throw {@link
 * org.windlass.error.InvalidArgumentException}, and so does a file that is missing or malformed. A
 * file that can't be read or written throws {@link org.windlass.error.ResourceException}.
 */
@NullMarked
package org.windlass.checkpoint;

import org.jspecify.annotations.NullMarked;
