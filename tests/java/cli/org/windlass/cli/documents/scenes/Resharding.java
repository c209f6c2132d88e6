// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;

/**
 * A folder with a checkpoint {@code step-1000} of layout 2x4:P,S0, which becomes {@code serving}.
 */
public abstract class Resharding extends Scene implements InFolder {
  @Override
  public final void play() throws Exception {
    fragment();
    for (String rank : List.of("08", "09", "10")) {
      assertThat(Path.of("serving", "rank-000" + rank + ".safetensors")).isRegularFile();
    }
  }
}
