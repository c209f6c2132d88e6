// SPDX-License-Identifier: Apache-2.0
/** Reads and writes safetensors checkpoints, and redistributes them from one layout to another. */
module org.windlass.checkpoint {
  requires transitive org.windlass;
  requires com.fasterxml.jackson.core;
  requires static org.jspecify;

  exports org.windlass.checkpoint;
  exports org.windlass.reshard;
}
