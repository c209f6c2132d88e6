// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.testing.PublicApi;
import org.windlass.testing.SampleValues;

/** Indices before the first, one past the last and far out, for every parameter that is one. */
class IndexArgumentsTest {
  private static final Set<String> INDICES = Set.of("dim", "index", "rank");

  /** By the call, those that are refused. */
  private static final Map<String, LongStream> WRONG =
      Map.of(
          "Checkpoint.rankFile(rank)",
          LongStream.of(-1, DeviceMesh.MAX_RANKS, Integer.MIN_VALUE, Integer.MAX_VALUE),
          // A dimension of tensors to come.
          "LayoutFile.Parts(dim)",
          LongStream.of(-1, Integer.MIN_VALUE));

  @TempDir Path folder;

  @Test
  void isRefused() throws ReflectiveOperationException {
    List<PublicApi.Argument> indices =
        PublicApi.arguments(Checkpoint.class).stream()
            .filter(argument -> INDICES.contains(argument.name()))
            .toList();
    assertThat(indices)
        .extracting(PublicApi.Argument::text)
        .containsExactlyInAnyOrderElementsOf(WRONG.keySet());
    try (SampleValues samples = new Samples(folder)) {
      for (PublicApi.Argument argument : indices) {
        for (long index : WRONG.get(argument.text()).toArray()) {
          assertThat(argument.failure(samples, (int) index).orElse(null))
              .as("%s: %d", argument, index)
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContaining(Long.toString(index));
        }
      }
    }
  }
}
