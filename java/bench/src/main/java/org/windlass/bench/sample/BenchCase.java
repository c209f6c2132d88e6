// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import org.windlass.DType;
import org.windlass.kernel.Target;

/**
 * The subject of a measurement, without the size.
 *
 * @param launch kind of ranks, {@code threads} or {@code processes}
 * @param buffers location of tensors: {@code window}, {@code plain} or {@code device}
 */
public record BenchCase(
    String op, Target target, String launch, String buffers, DType dtype) {}
