// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.windlass.testing.NullArguments;
import org.windlass.testing.PublicApi;
import org.windlass.testing.SampleValues;

class NullArgumentsTest extends NullArguments {
  NullArgumentsTest() {
    super(Checkpoint.class, Set.of());
  }

  @Override
  protected SampleValues samples(Path folder) {
    return new Samples(folder);
  }

  @Test
  void everyCallIsMet() {
    assertThat(arguments().map(PublicApi.Argument::text))
        .contains("Checkpoint.open(path)", "LayoutFile.Entry(layout)")
        .hasSizeGreaterThan(40);
    assertThat(holders()).hasSizeGreaterThan(5);
  }
}
