// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import java.nio.ByteBuffer;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Structs;

/**
 * The native form of the options, with sizes and offsets in bytes. Each routing has a table of
 * counts, and each rank has a buffer with the rows of its experts.
 *
 * @param experts a {@code wl_experts_t}
 * @param startsAt offset in the table: first row of each local expert, as i32
 * @param getsAt offset in the table: number of rows of each local expert, as i32
 * @param scalesAt offset in the buffer: scales of quantised rows
 * @param recordsAt offset in the buffer: source and weight of each row, 4 words of 32 bits
 */
record ExpertLayout(
    ByteBuffer experts,
    long tableBytes,
    long startsAt,
    long getsAt,
    long bufferBytes,
    long scalesAt,
    long recordsAt) {

  /** Returns the layout for {@code ranks} ranks. Throws if this target does not support it. */
  static ExpertLayout of(ExpertOptions options, int ranks) {
    ByteBuffer experts =
        Structs.experts(
            options.dtype().code(),
            ranks,
            options.experts(),
            options.topK(),
            options.hidden(),
            options.tokens(),
            options.rows());
    experts.putInt(Structs.Experts.ALIGNMENT, options.alignment());
    experts.putInt(Structs.Experts.QUANTISED, options.quantised() ? 1 : 0);
    ByteBuffer layout = Structs.allocate(Structs.ExpertsLayout.SIZE);
    layout.putInt(0, Structs.ExpertsLayout.SIZE);
    Natives.call(
        (out, error) ->
            Native.wl_experts_lay_out(
                NativeMemory.address(experts), NativeMemory.address(layout), error));
    return new ExpertLayout(
        experts,
        layout.getLong(Structs.ExpertsLayout.TABLE_BYTES),
        layout.getLong(Structs.ExpertsLayout.STARTS_AT),
        layout.getLong(Structs.ExpertsLayout.GETS_AT),
        layout.getLong(Structs.ExpertsLayout.BUFFER_BYTES),
        layout.getLong(Structs.ExpertsLayout.SCALES_AT),
        layout.getLong(Structs.ExpertsLayout.RECORDS_AT));
  }
}
