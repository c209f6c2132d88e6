// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.nio.ByteBuffer;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Structs;

/** Holds the words of a {@link TransferWords} in native memory for the C ABI. */
public final class TransferConfig {
  private static final int[][] SECTIONS = {
    {Structs.TransferConfig.SOURCE_BINDINGS, Structs.TransferConfig.SOURCE_BINDING_WORDS},
    {Structs.TransferConfig.TARGET_BINDINGS, Structs.TransferConfig.TARGET_BINDING_WORDS},
    {Structs.TransferConfig.CHUNKS, Structs.TransferConfig.CHUNK_WORDS},
    {Structs.TransferConfig.STAGES, Structs.TransferConfig.STAGE_WORDS}
  };
  private static final int HEADER = 1 + 2 * SECTIONS.length;

  private final ByteBuffer config = Structs.allocate(Structs.TransferConfig.SIZE);
  private final ByteBuffer memory;

  public TransferConfig(long[] words) {
    memory = Structs.allocate(Math.multiplyExact(words.length, Long.BYTES));
    memory.asLongBuffer().put(words);
    config.putInt(0, Structs.TransferConfig.SIZE);
    config.putLong(Structs.TransferConfig.FINGERPRINT, words[0]);
    config.putInt(Structs.TransferConfig.SOURCE_BINDING_COUNT, (int) words[1]);
    config.putInt(Structs.TransferConfig.TARGET_BINDING_COUNT, (int) words[3]);
    config.putLong(Structs.TransferConfig.CHUNK_COUNT, words[5]);
    config.putLong(Structs.TransferConfig.STAGE_COUNT, words[7]);
    long at = NativeMemory.address(memory) + HEADER * (long) Long.BYTES;
    for (int section = 0; section < SECTIONS.length; section++) {
      long size = words[2 + 2 * section];
      config.putLong(SECTIONS[section][0], at);
      config.putLong(SECTIONS[section][1], size);
      at += size * Long.BYTES;
    }
  }

  public long address() {
    return NativeMemory.address(config);
  }
}
