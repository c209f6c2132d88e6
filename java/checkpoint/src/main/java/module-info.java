// SPDX-License-Identifier: Apache-2.0
/** Checkpoints on disk: safetensors files, and what redistributes them from one layout to another. */
module org.windlass.checkpoint {
  requires transitive org.windlass;
  requires com.fasterxml.jackson.core;

  exports org.windlass.checkpoint;
  exports org.windlass.reshard;
}
