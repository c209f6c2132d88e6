// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.windlass.testing.NullArguments;
import org.windlass.testing.PublicApi;
import org.windlass.testing.SampleValues;

class NullArgumentsTest extends NullArguments {
  NullArgumentsTest() {
    super(
        Communicator.class,
        Set.of(
            "Tensor.of(owner)",
            "Tensor.ofDevice(owner)",
            "Communicator.abort(reason)",
            "Communicator.abortAll(reason)",
            "ExpertParallel.dispatch(weights)",
            "ExpertParallel.dispatchAsync(weights)"));
  }

  @Override
  protected SampleValues samples(Path folder) {
    return new Samples(folder);
  }

  @Test
  void everyCallIsMet() {
    assertThat(arguments().map(PublicApi.Argument::text))
        .contains("Region.Box(start)", "Placement.partial(op)")
        .hasSizeGreaterThan(150);
    assertThat(holders()).hasSizeGreaterThan(15);
  }
}
